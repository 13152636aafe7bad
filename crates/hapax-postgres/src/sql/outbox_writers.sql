-- A prepared transaction has no session, and its virtual transaction begins with -1.
SELECT l.objid::bigint, l.virtualtransaction, l.virtualtransaction LIKE '-1/%'
FROM pg_catalog.pg_locks AS l
WHERE l.locktype = 'advisory' AND l.classid = 1212239960 AND l.objsubid = 2 AND l.mode = 'ShareLock'
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())
