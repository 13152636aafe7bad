INSERT INTO hapax.inbox (received_at, consumer, state, content, message_id)
SELECT hapax.clock(), $1::int8::int4, 1, $3::bytea, $2::text
FROM hapax.meta AS m
WHERE pg_try_advisory_xact_lock(hapax.lock_number(m.salt, 'message', $1::int8 || E'\n' || $2::text))
ON CONFLICT (consumer, message_id) DO NOTHING
RETURNING 1::int8
