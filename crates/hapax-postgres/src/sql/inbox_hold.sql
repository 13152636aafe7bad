INSERT INTO hapax.inbox_held (consumer, key, version, message_id, business_id, source, headers, payload, held_at)
VALUES ($1::int8::int4, $2::text, $3::int8, $4::text, $5::int8 = 1, $6::text, $7::bytea, $8::bytea, hapax.clock())
ON CONFLICT DO NOTHING
RETURNING 1::int8
