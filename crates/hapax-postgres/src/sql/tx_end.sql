WITH ended AS (
    UPDATE hapax.operations AS o
    SET state = $4::int2, until = 0, doubt = 0, changed_at = c.now, request = NULL,
        expires_at = greatest(o.expires_at, c.now + $5::int8), answer = $6::bytea
    FROM (SELECT hapax.clock() AS now) AS c
    WHERE o.id = encode($1::bytea, 'hex')::uuid AND o.format = 1 AND o.fence = $2::int8 AND o.owner = $3::int8
      AND o.state IN (2, 3)
    RETURNING 1
)
-- Without a row of ours this divides by zero, so that a commit sent along with it commits nothing.
SELECT 1 / count(*) FROM ended
