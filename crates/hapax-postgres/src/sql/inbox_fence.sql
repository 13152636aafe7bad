SELECT o.fence
FROM hapax.inbox_offsets AS o
WHERE o.consumer = $1::int8::int4 AND o.source = $2::text AND o.partition = $3::int8::int4
