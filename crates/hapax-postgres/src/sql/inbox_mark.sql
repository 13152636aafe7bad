UPDATE hapax.inbox AS i
SET state = $3::int8::int2
WHERE i.consumer = $1::int8::int4 AND i.message_id = $2::text
RETURNING 1::int8
