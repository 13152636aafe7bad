WITH RECURSIVE class AS (
    SELECT min(retention) AS retention FROM hapax.operations
    UNION ALL
    SELECT (SELECT min(o.retention) FROM hapax.operations AS o WHERE o.retention > c.retention)
    FROM class AS c WHERE c.retention IS NOT NULL
)
SELECT retention FROM class WHERE retention IS NOT NULL
