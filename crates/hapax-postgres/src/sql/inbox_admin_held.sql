-- From key to key, and not over the messages between them.
WITH RECURSIVE keys AS (
    SELECT CASE WHEN $2::text IS NULL
           THEN (SELECT min(h.key) FROM hapax.inbox_held AS h WHERE h.consumer = $1::int8::int4)
           ELSE (SELECT min(h.key) FROM hapax.inbox_held AS h WHERE h.consumer = $1::int8::int4 AND h.key > $2::text)
           END AS key, 1 AS nth
    UNION ALL
    SELECT (SELECT min(h.key) FROM hapax.inbox_held AS h
            WHERE h.consumer = $1::int8::int4 AND h.key > k.key), k.nth + 1
    FROM keys AS k WHERE k.key IS NOT NULL AND k.nth < $3::int8)
SELECT k.key,
       (SELECT count(*) FROM (SELECT FROM hapax.inbox_held AS h WHERE h.consumer = $1::int8::int4 AND h.key = k.key
                              ORDER BY h.version LIMIT $4::int8) AS counted),
       l.version, l.held_at, v.version
FROM keys AS k
CROSS JOIN LATERAL (
    SELECT h.version, h.held_at FROM hapax.inbox_held AS h WHERE h.consumer = $1::int8::int4 AND h.key = k.key
    ORDER BY h.version, h.message_id LIMIT 1) AS l
LEFT JOIN hapax.inbox_versions AS v ON v.consumer = $1::int8::int4 AND v.key = k.key
ORDER BY k.key
