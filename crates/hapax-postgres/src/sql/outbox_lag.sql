WITH destination AS MATERIALIZED (
    SELECT d.topics, d.paused, hapax.clock() AS now,
           (SELECT count(*) FROM hapax.outbox_parked AS p WHERE p.destination = $1) AS parked,
           (SELECT count(*) FROM hapax.outbox_relays AS r WHERE r.destination = $1 AND r.until > hapax.clock()) AS relays,
           (SELECT min(l.low) FROM hapax.outbox_lanes AS l WHERE l.destination = $1) AS lowest,
           ARRAY(SELECT l.low FROM hapax.outbox_lanes AS l WHERE l.destination = $1 ORDER BY l.lane) AS lows
    FROM hapax.outbox_destinations AS d WHERE d.name = $1
), behind AS (
    SELECT o.lane, count(*) AS events, min(o.at) AS oldest
    FROM destination AS d, hapax.outbox AS o
    WHERE o.position > d.lowest AND o.position > d.lows[o.lane + 1] AND hapax.outbox_wants(d.topics, o.topic)
    GROUP BY o.lane
)
SELECT d.now, d.paused, d.relays, d.parked, l.lane, r.owner, l.low, coalesce(b.events, 0), b.oldest
FROM destination AS d
JOIN hapax.outbox_lanes AS l ON l.destination = $1
LEFT JOIN behind AS b ON b.lane = l.lane
LEFT JOIN hapax.outbox_relays AS r ON r.destination = $1 AND r.owner = l.owner AND r.until > d.now
ORDER BY l.lane
