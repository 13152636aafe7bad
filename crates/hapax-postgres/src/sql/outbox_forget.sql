DELETE FROM hapax.outbox_parked AS p
WHERE p.destination = $1
  AND ($2::text IS NULL OR p.topic = $2) AND ($3::text IS NULL OR p.key = $3) AND ($4::bigint IS NULL OR p.position = $4)
RETURNING 1
