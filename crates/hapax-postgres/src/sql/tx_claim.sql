INSERT INTO hapax.operations (id, format, tenant, scope, key, fingerprint, fence, owner, recovery, doubt, state,
    tombstone, created_at, changed_at, expires_at, until)
SELECT c.id::uuid, 1, $2::text, $3::text, $4::text, $5::bytea, 1, $6::int8, $7::int2, 0, 3,
       $9::int8, c.now, c.now, c.now + $8::int8, 0
FROM (SELECT hapax.clock() AS now, m.salt, encode($1::bytea, 'hex') AS id FROM hapax.meta AS m) AS c
WHERE pg_try_advisory_xact_lock(hapax.lock_number(c.salt, 'operation', c.id))
ON CONFLICT (id) DO NOTHING
RETURNING expires_at
