SELECT p.position, p.format, p.lane, p.id, p.at, p.topic, p.key, p.content_type, p.payload,
       ARRAY(SELECT h.key FROM jsonb_each_text(p.headers) AS h ORDER BY h.key),
       ARRAY(SELECT h.value FROM jsonb_each_text(p.headers) AS h ORDER BY h.key),
       p.holds_key, p.replaying, p.attempts, p.reason, p.parked_at
FROM hapax.outbox_parked AS p
WHERE p.destination = $1 AND p.position > $5
  AND ($2::text IS NULL OR p.topic = $2) AND ($3::text IS NULL OR p.key = $3) AND ($4::bigint IS NULL OR p.position = $4)
ORDER BY p.position LIMIT $6
