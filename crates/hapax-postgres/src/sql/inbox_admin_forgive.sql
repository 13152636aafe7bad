-- Whoever forgives the same letter at the same time waits for the lock of its failure, and finds it gone.
WITH failure AS (
    DELETE FROM hapax.inbox AS i
    WHERE i.consumer = $1::int8::int4 AND i.message_id = $2::text AND i.content = $3::bytea AND i.state = 2
      AND EXISTS (SELECT FROM hapax.inbox_dead AS d
                  WHERE d.consumer = $1::int8::int4 AND d.message_id = $2::text AND d.content = $3::bytea
                    AND d.dead_at = $4::int8)
    RETURNING 1
), letter AS (
    DELETE FROM hapax.inbox_dead AS d
    WHERE d.consumer = $1::int8::int4 AND d.message_id = $2::text AND d.content = $3::bytea
      AND EXISTS (SELECT FROM failure)
), attempts AS (
    DELETE FROM hapax.inbox_attempts AS a
    WHERE a.consumer = $1::int8::int4 AND a.message_id = $2::text AND EXISTS (SELECT FROM failure)
)
SELECT 1::int8 FROM failure
