SELECT h.message_id, h.business_id::int4::int8, h.source, h.key, h.version, h.headers, h.payload
FROM (SELECT hapax.trusted_clock() AS now) AS t
CROSS JOIN hapax.inbox_held AS h
LEFT JOIN hapax.inbox_versions AS v ON v.consumer = h.consumer AND v.key = h.key
WHERE h.consumer = $1::int8::int4 AND ($2::text IS NULL OR h.key = $2::text)
  AND (h.version <= coalesce(v.version + 1, $3::int8) OR h.held_at <= t.now - $4::int8)
  AND NOT EXISTS (SELECT FROM hapax.inbox_held AS l
                  WHERE l.consumer = h.consumer AND l.key = h.key AND l.version < h.version)
ORDER BY h.held_at
LIMIT $5::int8
