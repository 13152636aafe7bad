-- One snapshot: what was missing, and what lies above. Were they read one after the other, an event
-- could be seen above and its key's earlier one be missed below.
WITH destination AS MATERIALIZED (
    -- The rules of hapax.outbox_wants, spelled out: a call for each row costs more than reading it.
    SELECT d.topics, d.topics @> '{*}' AS everything,
           ARRAY(SELECT left(t.pattern, -1) FROM unnest(d.topics) AS t(pattern) WHERE right(t.pattern, 1) = '*') AS beginnings,
           EXISTS (SELECT FROM hapax.outbox_parked AS p WHERE p.destination = $1) AS parked,
           EXISTS (SELECT FROM hapax.outbox_parked AS p WHERE p.destination = $1 AND p.replaying) AS replaying
    FROM hapax.outbox_destinations AS d WHERE d.name = $1
), visible AS (
    (SELECT o.* FROM unnest($4::bigint[], $5::bigint[]) AS g(first, last), LATERAL (
        SELECT * FROM hapax.outbox AS o
        WHERE o.position BETWEEN g.first AND g.last {segments}
        ORDER BY o.position LIMIT $9) AS o)
    UNION ALL
    (SELECT * FROM hapax.outbox AS o WHERE o.position > $2 AND o.position <= $3 ORDER BY o.position LIMIT $9)
), judged AS MATERIALIZED (
    SELECT v.*, d.parked AS any_parked,
           ($8::bigint[])[v.lane + 1] IS NOT NULL
           AND (v.position > ($8::bigint[])[v.lane + 1] OR v.position <= $2 OR EXISTS (
               SELECT FROM unnest($6::bigint[], $7::bigint[]) AS late(first, last)
               WHERE v.position BETWEEN late.first AND late.last))
           AND (d.everything OR v.topic = ANY (d.topics) OR EXISTS (
               SELECT FROM unnest(d.beginnings) AS b(beginning) WHERE starts_with(v.topic, b.beginning)))
           AND NOT (d.parked AND EXISTS (
               SELECT FROM hapax.outbox_parked AS p WHERE p.destination = $1 AND p.position = v.position)) AS wanted
    FROM destination AS d, (SELECT * FROM visible ORDER BY position LIMIT $9) AS v
), measured AS (
    SELECT j.*, count(*) OVER () AS total,
           sum(CASE WHEN j.wanted THEN octet_length(j.payload) + octet_length(j.topic) + octet_length(j.key)
                                       + pg_column_size(j.headers) ELSE 0 END)
               OVER (ORDER BY j.position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM judged AS j
)
SELECT hapax.clock(), d.replaying, m.total, m.position, m.format, m.lane, m.id, m.at,
       CASE WHEN m.wanted THEN m.topic END, CASE WHEN m.wanted THEN m.key END,
       CASE WHEN m.wanted THEN m.content_type END, CASE WHEN m.wanted THEN m.payload END,
       CASE WHEN m.wanted AND m.headers <> '{}' THEN ARRAY(SELECT h.key FROM jsonb_each_text(m.headers) AS h ORDER BY h.key) END,
       CASE WHEN m.wanted AND m.headers <> '{}' THEN ARRAY(SELECT h.value FROM jsonb_each_text(m.headers) AS h ORDER BY h.key) END,
       m.wanted,
       m.wanted AND m.any_parked AND EXISTS (
           SELECT FROM hapax.outbox_parked AS p
           WHERE p.destination = $1 AND p.topic = m.topic AND p.key = m.key AND p.holds_key)
FROM destination AS d LEFT JOIN measured AS m ON coalesce(m.bytes_before, 0) < $10
ORDER BY m.position
