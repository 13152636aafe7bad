WITH ended AS (
    UPDATE hapax.operations AS o
    SET state = $4::int2, until = 0, doubt = 0, changed_at = c.now, request = NULL,
        expires_at = greatest(o.expires_at, c.now + $5::int8),
        bucket = hapax.bucket(greatest(o.expires_at, c.now + $5)),
        response = coalesce(o.response, nextval('hapax.response_ids'))
    FROM (SELECT hapax.clock() AS now) AS c
    WHERE o.id = encode($1::bytea, 'hex')::uuid AND o.format = 1 AND o.fence = $2::int8 AND o.owner = $3::int8
      AND o.state IN (2, 3)
    RETURNING o.bucket, o.response
)
INSERT INTO hapax.responses (bucket, id, head, body, digest)
SELECT bucket, response, $6::bytea, $7::bytea, $8::bytea FROM ended
