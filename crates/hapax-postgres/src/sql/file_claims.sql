WITH clock AS MATERIALIZED (SELECT hapax.clock() AS now),
looked AS MATERIALIZED (
    SELECT l.ctid AS place FROM clock AS c, hapax.claim_log AS l
    -- What is ahead of the clock was written before it was set back.
    WHERE l.at <= c.now - $1::int8 OR l.at > c.now
    LIMIT $2 FOR UPDATE OF l SKIP LOCKED
),
removed AS (
    DELETE FROM hapax.claim_log AS l USING looked AS x WHERE l.ctid = x.place RETURNING l.places
),
filed AS (
    INSERT INTO hapax.unfinished (id, look_at)
    SELECT o.id, o.until
    FROM removed AS r, unnest(r.places) AS p(place), hapax.operations AS o
    WHERE o.ctid = p.place AND o.state IN (1, 2)
    ORDER BY o.id
    ON CONFLICT (id) DO NOTHING
)
SELECT count(*) FROM removed
