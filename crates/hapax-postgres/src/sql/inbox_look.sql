SELECT hashtextextended($2::text, $1::int8),
       pg_try_advisory_xact_lock(hashtextextended($2::text, $1::int8))::int4::int8,
       i.content, i.state::int8, i.reason, i.received_at,
       least(hapax.clock(), (SELECT m.trusted_until FROM hapax.clock_mark AS m))
FROM (VALUES (0)) AS always(there)
LEFT JOIN hapax.inbox AS i ON i.consumer = $1::int8::int4 AND i.message_id = $2::text
