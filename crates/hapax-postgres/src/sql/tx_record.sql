-- A plain insert: a record that is there already is an error, and the commit behind it rolls back. Plain values, too:
-- reading the clock several times costs less than a query to read it once.
INSERT INTO hapax.operations (id, format, tenant, scope, key, fingerprint, fence, owner, recovery, doubt,
    tombstone, state, created_at, changed_at, expires_at, until, answer)
VALUES (encode($2::bytea, 'hex')::uuid, 1, $3::text, $4::text, $5::text, $6::bytea, 1, $7::int8, $8::int8, 0,
    $10::int8, CASE WHEN pg_try_advisory_xact_lock($1::int8) THEN $11::int8 ELSE hapax.refuse_taken() END,
    hapax.clock() - hapax.transaction_age(), hapax.clock(),
    hapax.clock() + greatest($9::int8 - hapax.transaction_age(), $12::int8), 0, $13::bytea)
RETURNING expires_at
