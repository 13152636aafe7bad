WITH clock AS MATERIALIZED (SELECT hapax.trusted_clock() AS now),
spent AS MATERIALIZED (
    SELECT o.ctid AS place, o.id, o.state, o.tombstone <= c.now - o.expires_at AS forgotten
    FROM clock AS c, hapax.operations AS o
    WHERE o.ctid >= $1::text::tid AND o.ctid < $2::text::tid AND o.format = 1 AND o.expires_at <= c.now
      AND (o.state IN (1, 3, 4, 6) OR (o.state = 7 AND o.tombstone <= c.now - o.expires_at))
    LIMIT $3
    FOR UPDATE OF o SKIP LOCKED
),
deleted AS (
    DELETE FROM hapax.operations AS o USING spent AS x
    WHERE o.ctid = x.place AND x.state <> 1 AND x.forgotten
    RETURNING 1
),
buried AS (
    UPDATE hapax.operations AS o
    SET state = 7, changed_at = c.now, answer = NULL
    FROM clock AS c, spent AS x
    WHERE o.ctid = x.place AND x.state <> 1 AND NOT x.forgotten
    RETURNING 1
),
forgotten AS (
    DELETE FROM hapax.steps AS s USING spent AS x
    WHERE s.id = x.id AND x.state <> 1
)
SELECT (SELECT count(*) FROM deleted), (SELECT count(*) FROM buried),
       (SELECT array_agg(id) FROM spent WHERE state = 1), (SELECT count(*) FROM spent)
