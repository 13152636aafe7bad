SELECT o.source, o.partition::int8, o.fence, o.next
FROM hapax.inbox_offsets AS o
WHERE o.consumer = $1::int8::int4
ORDER BY o.consumer, o.source, o.partition
LIMIT $2::int8
