WITH walked AS MATERIALIZED (
    SELECT id, filed_at, format = 1 AND state IN (1, 2) AND (until <= $4 OR until > $4 + 3600000000) AS overdue
    FROM hapax.operations
    WHERE retention = $1 AND filed_at >= $2 AND filed_at <= $3
    ORDER BY filed_at LIMIT $5
)
SELECT count(*), max(filed_at), array_agg(id ORDER BY filed_at) FILTER (WHERE overdue) FROM walked
