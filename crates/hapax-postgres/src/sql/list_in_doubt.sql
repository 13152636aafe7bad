WITH RECURSIVE class AS (
    SELECT min(retention) AS retention FROM hapax.operations
    UNION ALL
    SELECT (SELECT min(o.retention) FROM hapax.operations AS o WHERE o.retention > c.retention)
    FROM class AS c WHERE c.retention IS NOT NULL
)
SELECT NULL, NULL, o.id, o.format, o.tenant, o.scope, o.key, o.fingerprint, o.state, o.fence, o.owner,
       o.recovery, o.doubt, o.until, o.created_at, o.changed_at, o.expires_at, o.tombstone, NULL::bytea
FROM class AS c JOIN hapax.operations AS o ON o.retention = c.retention AND o.filed_at = 9223372036854775807
WHERE ($1::uuid IS NULL OR o.id > $1)
  AND ($2::text IS NULL OR o.tenant = $2)
  AND ($3::text IS NULL OR o.scope = $3)
  AND o.state = $4
ORDER BY o.id LIMIT $5
