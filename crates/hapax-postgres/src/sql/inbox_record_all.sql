INSERT INTO hapax.inbox (received_at, consumer, state, content, message_id)
SELECT hapax.clock(), $1::int8::int4, 1, d.content, d.message_id
FROM hapax.meta AS m
CROSS JOIN unnest($2::text[], $3::bytea[]) AS d(message_id, content)
WHERE pg_try_advisory_xact_lock(hapax.lock_number(m.salt, 'message', $1::int8 || E'\n' || d.message_id))
ON CONFLICT (consumer, message_id) DO NOTHING
RETURNING 1::int8
