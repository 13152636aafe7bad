-- Each count goes along the primary key and ends at $4: an order that only this index gives keeps the planner
-- from reading a whole table for a consumer that has next to nothing in it.
SELECT c.number::int8, c.tenant, c.name, c.retention,
       (SELECT count(*) FROM (SELECT FROM hapax.inbox AS i WHERE i.consumer = c.number
                              ORDER BY i.consumer, i.message_id LIMIT $4::int8) AS counted),
       a.seen, a.again,
       (SELECT count(*) FROM (SELECT FROM hapax.inbox_held AS h WHERE h.consumer = c.number
                              ORDER BY h.consumer, h.key, h.version, h.message_id LIMIT $4::int8) AS counted),
       (SELECT count(*) FROM (SELECT FROM hapax.inbox_dead AS d WHERE d.consumer = c.number
                              ORDER BY d.consumer, d.message_id, d.content LIMIT $4::int8) AS counted),
       EXISTS (SELECT FROM hapax.inbox_offsets AS o WHERE o.consumer = c.number)
FROM (SELECT * FROM hapax.inbox_consumers AS k WHERE (k.tenant, k.name) >= ($1::text, $2::text)
      ORDER BY k.tenant, k.name LIMIT $3::int8) AS c
CROSS JOIN (SELECT hapax.trusted_clock() AS now) AS t
CROSS JOIN LATERAL (
    SELECT count(*) AS seen, count(*) FILTER (WHERE NOT EXISTS (
        SELECT FROM hapax.inbox AS i WHERE i.consumer = c.number AND i.message_id = s.message_id
          AND i.state <> 3 AND i.received_at + c.retention > t.now)) AS again
    FROM (SELECT m.message_id FROM hapax.inbox_attempts AS m WHERE m.consumer = c.number
          ORDER BY m.consumer, m.message_id LIMIT $4::int8) AS s) AS a
ORDER BY c.tenant, c.name
