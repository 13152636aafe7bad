INSERT INTO hapax.inbox_offsets AS o (consumer, source, partition, fence)
VALUES ($1::int8::int4, $2::text, $3::int8::int4, 1)
ON CONFLICT (consumer, source, partition) DO UPDATE SET fence = o.fence + 1
RETURNING o.fence, o.next
