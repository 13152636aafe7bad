-- The relays are those before this one's sign of life: what it may take depends on the others.
WITH renewed AS (
    INSERT INTO hapax.outbox_relays AS r (destination, owner, until)
    SELECT d.name, $2, hapax.clock() + $3 FROM hapax.outbox_destinations AS d WHERE d.name = $1
    ON CONFLICT (destination, owner) DO UPDATE SET until = excluded.until
    RETURNING r.until
)
SELECT r.until - $3, r.until, d.paused,
       ARRAY(SELECT o.owner FROM hapax.outbox_relays AS o WHERE o.destination = $1 ORDER BY o.owner),
       ARRAY(SELECT o.until FROM hapax.outbox_relays AS o WHERE o.destination = $1 ORDER BY o.owner),
       ARRAY(SELECT l.owner FROM hapax.outbox_lanes AS l WHERE l.destination = $1 ORDER BY l.lane),
       ARRAY(SELECT l.fence FROM hapax.outbox_lanes AS l WHERE l.destination = $1 ORDER BY l.lane),
       ARRAY(SELECT l.low FROM hapax.outbox_lanes AS l WHERE l.destination = $1 ORDER BY l.lane)
FROM renewed AS r, hapax.outbox_destinations AS d
WHERE d.name = $1
