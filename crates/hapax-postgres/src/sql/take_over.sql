taken AS (
    UPDATE hapax.operations AS o
    SET (fence, owner, state, until, changed_at, doubt, answer, request, created_at, expires_at,
         tombstone, recovery, fingerprint) = (
        SELECT i.fence, i.owner, i.state, c.now + i.lease, c.now, 0, NULL::bytea,
               CASE WHEN i.spent THEN i.request ELSE coalesce(i.request, o.request) END,
               CASE WHEN i.spent THEN c.now ELSE o.created_at END,
               CASE WHEN i.spent THEN c.now + i.retention ELSE o.expires_at END,
               CASE WHEN i.spent THEN i.tombstone ELSE o.tombstone END,
               CASE WHEN i.spent THEN i.recovery ELSE o.recovery END,
               CASE WHEN i.spent THEN i.fingerprint ELSE o.fingerprint END
        FROM (SELECT hapax.clock() AS now) AS c
    )
    FROM (
        SELECT unnest($1::uuid[]) AS id, unnest($2::int8[]) AS seen_fence, unnest($3::int8[]) AS seen_owner,
               unnest($4::int2[]) AS seen, unnest($5::int8[]) AS until, unnest($6::bool[]) AS spent,
               unnest($7::int8[]) AS fence, unnest($8::int8[]) AS owner, unnest($9::int2[]) AS state,
               unnest($10::int8[]) AS lease, unnest($11::bytea[]) AS request, unnest($12::int8[]) AS retention,
               unnest($13::int8[]) AS tombstone, unnest($14::int2[]) AS recovery, unnest($15::bytea[]) AS fingerprint
    ) AS i
    WHERE o.id = i.id AND o.format = 1 AND o.fence = i.seen_fence AND o.owner = i.seen_owner AND o.until = i.until
      AND o.state = i.seen
    RETURNING o.id, o.changed_at, o.until
)
