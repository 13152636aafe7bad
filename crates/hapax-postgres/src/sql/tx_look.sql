SELECT pg_try_advisory_xact_lock($1::int8),
       CASE WHEN o.id IS NOT NULL THEN least(hapax.clock(), (SELECT m.trusted_until FROM hapax.clock_mark AS m)) END,
       o.format, o.tenant, o.scope, o.key, o.fingerprint, o.state, o.fence, o.owner, o.recovery, o.doubt, o.until,
       o.created_at, o.changed_at, o.expires_at, o.tombstone, o.request, o.answer
FROM (SELECT encode($2::bytea, 'hex')::uuid AS id) AS i
LEFT JOIN hapax.operations AS o ON o.id = i.id
