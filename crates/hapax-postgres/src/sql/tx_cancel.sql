SELECT pg_cancel_backend(l.pid)
FROM (SELECT hapax.lock_number(m.salt, $1::text, $2::text) AS number FROM hapax.meta AS m) AS w
JOIN pg_catalog.pg_locks AS l
  ON l.classid::int8 = ((w.number >> 32) & 4294967295) AND l.objid::int8 = (w.number & 4294967295)
JOIN pg_catalog.pg_database AS d ON d.oid = l.database
WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
