DELETE FROM hapax.inbox_dead
WHERE consumer = $1::int8::int4 AND message_id = $2::text AND content = $3::bytea AND dead_at = $4::int8
RETURNING 1::int8
