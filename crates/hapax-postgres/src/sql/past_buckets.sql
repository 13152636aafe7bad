SELECT c.relname::text, i.inhrelid IS NOT NULL, coalesce(i.inhdetachpending, false)
FROM pg_class AS c LEFT JOIN pg_inherits AS i ON i.inhrelid = c.oid
WHERE c.relnamespace = 'hapax'::regnamespace AND c.relkind = 'r'
  AND CASE WHEN c.relname ~ '^responses_[0-9]{1,9}$'
           THEN substr(c.relname, 11)::int4 + $1::int4 < (SELECT hapax.bucket(hapax.trusted_clock())) END
