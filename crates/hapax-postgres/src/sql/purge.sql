WITH clock AS MATERIALIZED (SELECT hapax.trusted_clock() AS now),
oldest AS MATERIALIZED (
    SELECT id, state, filed_at, expires_at
    FROM hapax.operations
    WHERE retention = $1 AND filed_at < 9223372036854775807 AND format = 1
    ORDER BY filed_at LIMIT $2
),
spent AS MATERIALIZED (
    SELECT o.id, o.state, o.expires_at, o.tombstone <= c.now - o.expires_at AS forgotten
    FROM clock AS c, oldest AS x
    JOIN hapax.operations AS o ON o.id = x.id
    WHERE o.format = 1 AND o.expires_at <= c.now
      AND (o.state IN (1, 3, 4, 6) OR (o.state = 7 AND o.tombstone <= c.now - o.expires_at))
    LIMIT $3
    FOR UPDATE OF o SKIP LOCKED
),
deleted AS (
    DELETE FROM hapax.operations AS o USING spent AS x
    WHERE o.id = x.id AND x.state <> 1 AND x.forgotten
    RETURNING o.id
),
buried AS (
    UPDATE hapax.operations AS o
    SET state = 7, changed_at = c.now, answer = NULL, retention = -o.tombstone, filed_at = o.expires_at
    FROM clock AS c, spent AS x
    WHERE o.id = x.id AND x.state <> 1 AND NOT x.forgotten
    RETURNING o.id
),
forgotten AS (
    DELETE FROM hapax.steps AS s USING spent AS x
    WHERE s.id = x.id AND x.state <> 1
),
-- What is due and still needed is filed anew, or it would hide what lies behind it.
kept AS MATERIALIZED (
    SELECT o.id, o.state, o.expires_at, c.now
    FROM clock AS c, oldest AS x
    JOIN hapax.operations AS o ON o.id = x.id
    WHERE x.filed_at <= c.now - $1
      AND o.format = 1 AND (o.state = 2 OR (o.state IN (3, 4, 6) AND o.expires_at > c.now))
    FOR UPDATE OF o SKIP LOCKED
),
refiled AS (
    UPDATE hapax.operations AS o
    SET filed_at = CASE WHEN x.state = 2 THEN hapax.clock() ELSE o.expires_at - o.retention END
    FROM kept AS x WHERE o.id = x.id
)
SELECT (SELECT count(*) FROM deleted), (SELECT count(*) FROM buried),
       (SELECT array_agg(id) FROM spent WHERE state = 1)
