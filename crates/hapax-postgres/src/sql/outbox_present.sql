-- What a destination wants, and where the server's log ends: no commit that this snapshot shows is
-- after that.
SELECT hapax.clock(), d.topics,
       EXISTS (SELECT FROM hapax.outbox_parked AS p WHERE p.destination = $1),
       pg_current_snapshot()::text,
       (pg_current_wal_flush_lsn() - '0/0')::bigint, (pg_current_wal_insert_lsn() - '0/0')::bigint,
       EXISTS (SELECT FROM pg_catalog.pg_replication_slots AS s WHERE s.slot_name = $2::text)
FROM hapax.outbox_destinations AS d WHERE d.name = $1
