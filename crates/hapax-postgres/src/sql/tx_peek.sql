SELECT false, least(hapax.clock(), (SELECT m.trusted_until FROM hapax.clock_mark AS m)),
       o.format, o.tenant, o.scope, o.key, o.fingerprint, o.state, o.fence, o.owner, o.recovery, o.doubt, o.until,
       o.created_at, o.changed_at, o.expires_at, o.tombstone, o.request, o.answer
FROM hapax.operations AS o WHERE o.id = encode($1::bytea, 'hex')::uuid
UNION ALL
SELECT false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
LIMIT 1
