WITH marked AS (
    UPDATE hapax.operations SET watched = true
    WHERE id = $1 AND format = 1 AND state IN (1, 2, 5)
    RETURNING id, state, until
),
filed AS (
    INSERT INTO hapax.unfinished (id, look_at) SELECT id, until FROM marked WHERE state IN (1, 2)
    ON CONFLICT (id) DO NOTHING
)
SELECT 1 FROM marked
