-- Naming the segment's own table is the announcement: its lock is taken before anything below runs, so before a
-- position is. A position is taken under the lock of its key, and CASE keeps to that order. Nothing is written if a
-- position lies in another segment: then the caller names that one.
INSERT INTO hapax.outbox_{table} (position, at, id, segment, lane, format, topic, key, content_type, headers, payload)
SELECT e.position, hapax.clock(), gen_random_uuid(), {table}, ($3::int8[])[e.n], 1,
       ($4::text[])[e.n], ($5::text[])[e.n], ($6::text[])[e.n], ($7::text[])[e.n]::jsonb, ($8::bytea[])[e.n]
FROM (SELECT p.n, p.position, min(p.position) OVER () AS first, max(p.position) OVER () AS last
      FROM (SELECT l.n, CASE WHEN pg_advisory_xact_lock(l.number) IS NULL THEN NULL
                             ELSE nextval('hapax.outbox_positions') END AS position
            FROM unnest($2::int8[]) WITH ORDINALITY AS l(number, n)) AS p) AS e
WHERE e.first >> 16 = $1::int8 AND e.last >> 16 = $1
RETURNING position
