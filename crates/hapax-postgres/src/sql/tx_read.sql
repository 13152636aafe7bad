SELECT least(hapax.clock(), (SELECT m.trusted_until FROM hapax.clock_mark AS m)),
       o.bucket, o.response, o.format, o.tenant, o.scope, o.key, o.fingerprint, o.state, o.fence, o.owner,
       o.recovery, o.doubt, o.until, o.created_at, o.changed_at, o.expires_at, o.tombstone, o.request,
       r.head, r.body, r.digest
FROM hapax.operations AS o
LEFT JOIN hapax.responses AS r ON r.bucket = o.bucket AND r.id = o.response
WHERE o.id = encode($1::bytea, 'hex')::uuid
