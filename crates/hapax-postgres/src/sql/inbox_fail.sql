INSERT INTO hapax.inbox (received_at, consumer, state, content, message_id, reason)
VALUES (hapax.clock(), $1::int8::int4, 2, $3::bytea, $2::text, $4::text)
ON CONFLICT (consumer, message_id) DO UPDATE SET state = 2, reason = excluded.reason
RETURNING 1::int8
