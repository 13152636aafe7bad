SELECT pg_cancel_backend(l.pid)
FROM pg_locks AS l
JOIN pg_database AS d ON d.oid = l.database
WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND l.classid::int8 = (($1::int8 >> 32) & 4294967295) AND l.objid::int8 = ($1::int8 & 4294967295)
