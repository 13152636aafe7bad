SELECT hapax.create_bucket(needed.bucket)
FROM (
    SELECT DISTINCT hapax.bucket(c.now + r.retention) + ahead AS bucket
    FROM (SELECT hapax.clock() AS now) AS c, unnest($1::int8[]) AS r(retention), generate_series(0, 1) AS ahead
    WHERE r.retention >= 0
) AS needed
WHERE to_regclass('hapax.responses_' || needed.bucket) IS NULL
