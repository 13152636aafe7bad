SELECT (SELECT v.version FROM hapax.inbox_versions AS v WHERE v.consumer = $1::int8::int4 AND v.key = $2::text),
       (SELECT count(*) FROM hapax.inbox_held AS h WHERE h.consumer = $1::int8::int4 AND h.key = $2::text)
