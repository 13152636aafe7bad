UPDATE hapax.inbox_offsets AS o
SET next = $6::int8 + 1
WHERE o.consumer = $1::int8::int4 AND o.source = $2::text AND o.partition = $3::int8::int4
  AND o.fence = $4::int8 AND (o.next IS NULL OR o.next <= $5::int8)
RETURNING 1::int8
