SELECT NULL, NULL, o.format, o.tenant, o.scope, o.key, o.fingerprint, o.state, o.fence, o.owner, o.recovery, o.doubt, o.until,
       o.created_at, o.changed_at, o.expires_at, o.tombstone, NULL::bytea, NULL::bytea, o.id
FROM hapax.doubts AS d,
     -- From the doubts to their operations, and never the other way round.
     LATERAL (SELECT x.* FROM hapax.operations AS x WHERE x.id = d.id OFFSET 0) AS o
WHERE d.id >= coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid) AND d.id IS DISTINCT FROM $1
  AND ($2::text IS NULL OR o.tenant = $2)
  AND ($3::text IS NULL OR o.scope = $3)
  AND o.state = $4
ORDER BY d.id LIMIT $5
