SELECT hapax.emit_bytes(e.topic, e.key, e.payload, e.headers::jsonb, e.content_type)
FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::text[]) AS e(topic, key, payload, headers, content_type)
