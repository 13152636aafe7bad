doubted AS (
    INSERT INTO hapax.doubts AS d (id, since)
    SELECT id, changed_at FROM settled WHERE state = 5 ORDER BY id
    ON CONFLICT (id) DO UPDATE SET since = excluded.since
)
