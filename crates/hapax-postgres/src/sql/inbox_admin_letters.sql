SELECT d.message_id, d.content, d.dead_at, d.reason, d.detail, d.source, d.key, v.version, octet_length(d.payload)::int8,
       c.retention, t.now, i.content, i.state::int8, i.received_at
FROM (SELECT * FROM hapax.inbox_dead AS k
      WHERE k.consumer = $1::int8::int4 AND (k.message_id, k.content) > ($2::text, $3::bytea)
      ORDER BY k.consumer, k.message_id, k.content LIMIT $4::int8) AS d
JOIN hapax.inbox_consumers AS c ON c.number = d.consumer
CROSS JOIN (SELECT hapax.trusted_clock() AS now) AS t
LEFT JOIN hapax.inbox AS i ON i.consumer = d.consumer AND i.message_id = d.message_id
LEFT JOIN hapax.inbox_versions AS v ON v.consumer = d.consumer AND v.key = d.key
ORDER BY d.message_id, d.content
