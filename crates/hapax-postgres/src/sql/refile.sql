WITH looked AS MATERIALIZED (
    SELECT u.id, x.next
    FROM (SELECT unnest($1::uuid[]) AS id, unnest($2::int8[]) AS seen, unnest($3::int8[]) AS next) AS x
    -- Whoever made a record run again meanwhile filed it under another time: that is not undone.
    JOIN hapax.unfinished AS u ON u.id = x.id AND u.look_at = x.seen
    FOR UPDATE OF u SKIP LOCKED
),
ended AS (
    DELETE FROM hapax.unfinished AS u USING looked AS x WHERE u.id = x.id AND x.next IS NULL
)
UPDATE hapax.unfinished AS u SET look_at = x.next FROM looked AS x WHERE u.id = x.id AND x.next IS NOT NULL
