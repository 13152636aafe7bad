claimed AS (
    INSERT INTO hapax.operations (id, format, tenant, scope, key, fingerprint, fence, owner, recovery, doubt, state,
        tombstone, request, created_at, changed_at, expires_at, until)
    SELECT id, 1, tenant, scope, key, fingerprint, fence, owner, recovery, 0, state,
           tombstone, request, now, now, now + retention, now + lease
    FROM (
        SELECT unnest($1::uuid[]) AS id, unnest($2::text[]) AS tenant, unnest($3::text[]) AS scope,
               unnest($4::text[]) AS key, unnest($5::bytea[]) AS fingerprint, term($6::int8[]) AS fence,
               term($7::int8[]) AS owner, term($8::int2[]) AS recovery, term($9::int8[]) AS retention,
               term($10::int8[]) AS tombstone, term($11::int2[]) AS state, term($12::int8[]) AS lease,
               unnest($13::bytea[]) AS request, (SELECT hapax.clock()) AS now
    ) AS i
    ON CONFLICT (id) DO NOTHING
    RETURNING id, created_at, ctid AS place
),
logged AS (
    INSERT INTO hapax.claim_log (at, places)
    SELECT max(created_at), array_agg(place) FROM claimed HAVING count(*) > 0
)
