UPDATE hapax.operations AS o
SET fence = $6::int8, owner = $7::int8, state = 2, doubt = 0, answer = NULL,
    until = c.now + 30000000, changed_at = c.now,
    request = CASE WHEN NOT $8::bool THEN o.request END,
    created_at = CASE WHEN $8 THEN c.now ELSE o.created_at END,
    expires_at = CASE WHEN $8 THEN c.now + $9::int8 ELSE o.expires_at END,
    tombstone = CASE WHEN $8 THEN $10::int8 ELSE o.tombstone END,
    recovery = CASE WHEN $8 THEN $11::int2 ELSE o.recovery END,
    fingerprint = CASE WHEN $8 THEN $12::bytea ELSE o.fingerprint END
FROM (SELECT hapax.clock() AS now) AS c
WHERE o.id = encode($1::bytea, 'hex')::uuid AND o.format = 1 AND o.fence = $2::int8 AND o.owner = $3::int8
  AND o.until = $5::int8
  AND o.state = $4::int2
RETURNING o.expires_at
