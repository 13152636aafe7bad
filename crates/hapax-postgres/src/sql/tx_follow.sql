UPDATE hapax.operations AS o
SET fence = $8::int8, owner = $9::int8, state = $13::int8, doubt = 0, until = 0, changed_at = c.now,
    request = NULL, answer = $15::bytea,
    created_at = CASE WHEN c.spent THEN c.since ELSE o.created_at END,
    expires_at = greatest(CASE WHEN c.spent THEN c.since + $11::int8 ELSE o.expires_at END, c.now + $14::int8),
    tombstone = CASE WHEN c.spent THEN $12::int8 ELSE o.tombstone END,
    recovery = CASE WHEN c.spent THEN $10::int8 ELSE o.recovery END,
    fingerprint = CASE WHEN c.spent THEN $7::bytea ELSE o.fingerprint END
FROM (SELECT hapax.clock() AS now, hapax.clock() - hapax.transaction_age() AS since, $6::int8 = 1 AS spent OFFSET 0) AS c
WHERE o.id = encode($1::bytea, 'hex')::uuid AND o.format = 1 AND o.fence = $2::int8 AND o.owner = $3::int8
  AND o.state = $4::int8 AND o.until = $5::int8
RETURNING o.expires_at
