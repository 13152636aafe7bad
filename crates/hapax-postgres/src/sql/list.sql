SELECT NULL, NULL, o.format, o.tenant, o.scope, o.key, o.fingerprint, o.state, o.fence, o.owner, o.recovery, o.doubt, o.until,
       o.created_at, o.changed_at, o.expires_at, o.tombstone, NULL::bytea, NULL::bytea, o.id
FROM hapax.operations AS o
WHERE o.id >= coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid) AND o.id IS DISTINCT FROM $1
  AND ($2::text IS NULL OR o.tenant = $2)
  AND ($3::text IS NULL OR o.scope = $3)
  AND ($4::int2 IS NULL OR o.state = $4)
ORDER BY o.id LIMIT $5
