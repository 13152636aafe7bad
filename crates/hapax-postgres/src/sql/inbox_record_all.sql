INSERT INTO hapax.inbox (received_at, consumer, state, content, message_id)
SELECT hapax.clock(), $1::int8::int4, 1, d.content, d.message_id
FROM unnest($2::text[], $3::bytea[], $4::int8[]) AS d(message_id, content, lock)
WHERE pg_try_advisory_xact_lock(d.lock)
ON CONFLICT (consumer, message_id) DO NOTHING
RETURNING 1::int8
