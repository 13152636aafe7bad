INSERT INTO hapax.inbox_versions AS v (consumer, key, version)
VALUES ($1::int8::int4, $2::text, $3::int8)
ON CONFLICT (consumer, key) DO UPDATE SET version = greatest(v.version, excluded.version)
RETURNING 1::int8
