-- Segments that hold something and are not written into.
SELECT s.segment::smallint
FROM generate_series(0, 15) AS s(segment)
WHERE s.segment <> (coalesce(pg_sequence_last_value('hapax.outbox_positions'), 0) >> 16) & 15
  AND EXISTS (SELECT FROM hapax.outbox AS o WHERE o.segment = s.segment::smallint)
  AND NOT EXISTS (SELECT FROM hapax.outbox AS o WHERE o.segment = s.segment::smallint
                  AND (o.position > (SELECT min(l.low) FROM hapax.outbox_lanes AS l)) IS NOT FALSE)
ORDER BY s.segment
