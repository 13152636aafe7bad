UPDATE hapax.inbox AS i
SET received_at = hapax.clock(), state = 1, content = $3::bytea, reason = NULL
WHERE i.consumer = $1::int8::int4 AND i.message_id = $2::text AND i.received_at = $4::int8
RETURNING 1::int8
