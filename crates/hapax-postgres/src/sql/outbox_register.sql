WITH registered AS (
    INSERT INTO hapax.outbox_destinations (name, topics, created_at) VALUES ($1, $2, hapax.clock())
    ON CONFLICT (name) DO UPDATE SET topics = excluded.topics
    RETURNING name
)
INSERT INTO hapax.outbox_lanes (destination, lane, fence, low)
SELECT r.name, lane, 0, CASE WHEN $3 THEN coalesce(pg_sequence_last_value('hapax.outbox_positions'), 0) ELSE 0 END
FROM registered AS r, generate_series(0, 63) AS lane
ON CONFLICT (destination, lane) DO NOTHING
