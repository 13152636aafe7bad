SELECT pg_try_advisory_xact_lock(hapax.lock_number(s.salt, 'message', $1::int8 || E'\n' || $2::text))::int4::int8,
       i.content, i.state::int8, i.reason, i.received_at,
       least(hapax.clock(), (SELECT m.trusted_until FROM hapax.clock_mark AS m))
FROM hapax.meta AS s
LEFT JOIN hapax.inbox AS i ON i.consumer = $1::int8::int4 AND i.message_id = $2::text
