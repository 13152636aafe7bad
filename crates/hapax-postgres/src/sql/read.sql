SELECT i.at, hapax.clock(), o.format, o.tenant, o.scope, o.key, o.fingerprint, o.state, o.fence, o.owner, o.recovery, o.doubt, o.until,
       o.created_at, o.changed_at, o.expires_at, o.tombstone, o.request, o.answer, o.id
FROM unnest($1::uuid[]) WITH ORDINALITY AS i(id, at)
LEFT JOIN hapax.operations AS o ON o.id = i.id
