WITH failed AS (
    UPDATE hapax.operations AS o
    SET (state, until, changed_at, expires_at, request, bucket, response, filed_at) = (
        SELECT 4, 0, c.now, e.expires_at, NULL::bytea, hapax.bucket(e.expires_at), nextval('hapax.response_ids'), c.now
        FROM (SELECT hapax.clock() AS now) AS c,
             LATERAL (SELECT c.now + (o.expires_at - o.created_at) AS expires_at) AS e
    )
    FROM unnest($1::uuid[], $2::bytea[], $3::bytea[], $4::bytea[]) AS i(id, head, body, digest)
    WHERE o.id = i.id AND o.format = 1 AND o.state = 1 AND o.expires_at <= (SELECT hapax.trusted_clock())
    RETURNING o.id, o.watched, o.bucket, o.response, i.head, i.body, i.digest
),
stored AS (
    INSERT INTO hapax.responses (bucket, id, head, body, digest)
    SELECT bucket, response, head, body, digest FROM failed
)
SELECT id, watched FROM failed
