-- Who holds, or waits for, the lock by which a writer announces itself. Its table is one of sixteen, so all
-- segments that share it count, down to the oldest that somebody has not finished with. A prepared
-- transaction has no session, and its virtual transaction begins with -1.
SELECT s.segment, l.virtualtransaction, l.virtualtransaction LIKE '-1/%'
FROM (SELECT coalesce(pg_sequence_last_value('hapax.outbox_positions'), 0) >> 16 AS newest,
             coalesce((SELECT min(n.low) FROM hapax.outbox_lanes AS n), 0) >> 16 AS oldest) AS log
CROSS JOIN pg_catalog.pg_locks AS l
JOIN pg_catalog.pg_class AS c ON c.oid = l.relation AND c.relispartition
JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = c.oid AND i.inhparent = 'hapax.outbox'::regclass
CROSS JOIN LATERAL generate_series(log.oldest, log.newest + 1) AS s(segment)
WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock'
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())
  AND s.segment & 15 = substr(c.relname, 8)::int8
