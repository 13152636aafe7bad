WITH RECURSIVE class AS (
    SELECT min(retention) AS retention FROM hapax.operations WHERE retention >= 0
    UNION ALL
    SELECT (SELECT min(o.retention) FROM hapax.operations AS o WHERE o.retention > c.retention)
    FROM class AS c WHERE c.retention IS NOT NULL
),
new AS (
    INSERT INTO hapax.sweep_cursors (retention)
    SELECT c.retention FROM class AS c
    WHERE c.retention IS NOT NULL
      AND NOT EXISTS (SELECT FROM hapax.sweep_cursors AS s WHERE s.retention = c.retention)
    ON CONFLICT DO NOTHING
    RETURNING retention, frontier, lap
)
SELECT s.retention, s.frontier, s.lap, hapax.clock()
FROM class AS c JOIN hapax.sweep_cursors AS s ON s.retention = c.retention
UNION ALL
SELECT retention, frontier, lap, hapax.clock() FROM new
