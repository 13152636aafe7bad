SELECT s.message_id, s.attempts::int8, s.changed_at, NOT EXISTS (
    SELECT FROM hapax.inbox AS i WHERE i.consumer = s.consumer AND i.message_id = s.message_id
      AND i.state <> 3 AND i.received_at + c.retention > t.now)
FROM (SELECT * FROM hapax.inbox_attempts AS m
      WHERE m.consumer = $1::int8::int4 AND m.message_id > $2::text
      ORDER BY m.consumer, m.message_id LIMIT $3::int8) AS s
JOIN hapax.inbox_consumers AS c ON c.number = s.consumer
CROSS JOIN (SELECT hapax.trusted_clock() AS now) AS t
ORDER BY s.message_id
