DELETE FROM hapax.inbox_held AS h
WHERE h.consumer = $1::int8::int4 AND h.key = $2::text AND h.version = $3::int8 AND h.message_id = $4::text
RETURNING 1::int8
