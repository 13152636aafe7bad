INSERT INTO hapax.inbox_dead (consumer, message_id, content, reason, detail, source, key, headers, payload, dead_at)
VALUES ($1::int8::int4, $2::text, $3::bytea, $4::text, $5::text, $6::text, $7::text, $8::bytea, $9::bytea, hapax.clock())
ON CONFLICT (consumer, message_id, content) DO NOTHING
RETURNING 1::int8
