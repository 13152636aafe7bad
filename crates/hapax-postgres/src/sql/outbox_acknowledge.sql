WITH given AS (
    SELECT g.lane, g.fence, g.low FROM unnest($2::smallint[], $3::bigint[], $4::bigint[]) AS g(lane, fence, low)
), sent AS (
    SELECT s.lane, s.fence, s.position FROM unnest($5::smallint[], $6::bigint[], $7::bigint[]) AS s(lane, fence, position)
), stored AS (
    UPDATE hapax.outbox_lanes AS l SET low = greatest(l.low, g.low)
    FROM given AS g
    WHERE l.destination = $1 AND l.lane = g.lane AND l.fence = g.fence
    RETURNING l.lane
), removed AS (
    DELETE FROM hapax.outbox_parked AS p
    USING sent AS s, hapax.outbox_lanes AS l
    WHERE p.destination = $1 AND p.position = s.position AND l.destination = $1 AND l.lane = s.lane AND l.fence = s.fence
)
SELECT g.lane FROM given AS g WHERE g.lane NOT IN (SELECT s.lane FROM stored AS s)
UNION
SELECT s.lane FROM sent AS s
WHERE NOT EXISTS (SELECT FROM hapax.outbox_lanes AS l WHERE l.destination = $1 AND l.lane = s.lane AND l.fence = s.fence)
