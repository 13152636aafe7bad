INSERT INTO hapax.inbox (received_at, consumer, state, content, message_id)
SELECT hapax.clock(), $1::int8::int4, 1, $3::bytea, $2::text
WHERE pg_try_advisory_xact_lock($4::int8)
ON CONFLICT (consumer, message_id) DO NOTHING
RETURNING 1::int8
