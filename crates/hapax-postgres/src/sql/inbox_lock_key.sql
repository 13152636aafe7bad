SELECT pg_try_advisory_xact_lock(hapax.lock_number(m.salt, 'turn', $1::int8 || E'\n' || $2::text))::int4::int8
FROM hapax.meta AS m
