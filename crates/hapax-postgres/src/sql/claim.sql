claimed AS (
    INSERT INTO hapax.operations (id, format, tenant, scope, key, fingerprint, fence, owner, recovery, doubt, state,
        retention, tombstone, request, created_at, changed_at, expires_at, until, filed_at)
    SELECT id, 1, tenant, scope, key, fingerprint, fence, owner, recovery, 0, state,
           retention, tombstone, request, now, now, now + retention, now + lease, now + lease
    FROM (
        SELECT i.*, hapax.clock() AS now
        FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::int8[], $7::int8[],
                    $8::int2[], $9::int8[], $10::int8[], $11::int2[], $12::int8[], $13::bytea[])
             AS i(id, tenant, scope, key, fingerprint, fence, owner,
                  recovery, retention, tombstone, state, lease, request)
    ) AS i
    ON CONFLICT (id) DO NOTHING
    RETURNING id, created_at
)
