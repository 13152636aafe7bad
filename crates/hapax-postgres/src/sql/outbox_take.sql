UPDATE hapax.outbox_lanes AS l SET owner = $2, fence = l.fence + 1
FROM unnest($3::smallint[], $4::bigint[]) AS t(lane, fence)
WHERE l.destination = $1 AND l.lane = t.lane AND l.fence = t.fence
  AND NOT EXISTS (SELECT FROM hapax.outbox_relays AS r
                  WHERE r.destination = $1 AND r.owner = l.owner AND r.owner <> $2 AND r.until > hapax.clock())
RETURNING l.lane, l.fence, l.low
