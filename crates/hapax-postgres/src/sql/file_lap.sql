INSERT INTO hapax.unfinished (id, look_at)
SELECT o.id, o.until
FROM (SELECT hapax.clock() AS now) AS c, hapax.operations AS o
WHERE o.ctid >= $1::text::tid AND o.ctid < $2::text::tid AND o.state IN (1, 2)
  AND (o.changed_at <= c.now - $3::int8 OR o.changed_at > c.now)
ORDER BY o.id
ON CONFLICT (id) DO NOTHING
