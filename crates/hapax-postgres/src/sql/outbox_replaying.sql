SELECT p.position, p.format, p.lane, p.id, p.at, p.topic, p.key, p.content_type, p.payload,
       ARRAY(SELECT h.key FROM jsonb_each_text(p.headers) AS h ORDER BY h.key),
       ARRAY(SELECT h.value FROM jsonb_each_text(p.headers) AS h ORDER BY h.key)
FROM (SELECT q.*, sum(octet_length(q.payload)) OVER (ORDER BY q.position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
      FROM (SELECT * FROM hapax.outbox_parked AS r
            WHERE r.destination = $1 AND r.replaying AND r.lane = ANY($2::smallint[])
            ORDER BY r.position LIMIT $3) AS q) AS p
WHERE coalesce(p.bytes_before, 0) < $4
ORDER BY p.position
