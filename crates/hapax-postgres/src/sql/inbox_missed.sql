INSERT INTO hapax.inbox_attempts AS a (consumer, message_id, attempts, changed_at)
VALUES ($1::int8::int4, $2::text, 1, hapax.clock())
ON CONFLICT (consumer, message_id) DO UPDATE SET attempts = a.attempts + 1, changed_at = excluded.changed_at
RETURNING a.attempts::int8
