WITH here AS MATERIALIZED (SELECT n.origin, n.timeline FROM hapax.incarnation_now() AS n),
made AS (
    INSERT INTO hapax.incarnation AS i
        (origin, timeline, position, began, quarantined_since, cause, before_origin, before_timeline, seen_before,
         lifted_at, lifted_by, lifted_why)
    SELECT $2::text, $3::int8, $4::int8, $5::int8, $6::int8, $7::int8, $8::text, $9::int8, $10::int8,
           $11::int8, $12::text, $13::text
    FROM here WHERE $1::int8 IS NULL AND here.origin = $2::text AND here.timeline = $3::int8
    ON CONFLICT (only_row) DO NOTHING RETURNING 1
),
moved AS (
    UPDATE hapax.incarnation AS i
    SET origin = $2::text, timeline = $3::int8, position = $4::int8, began = $5::int8,
        quarantined_since = $6::int8, cause = $7::int8, before_origin = $8::text, before_timeline = $9::int8,
        seen_before = $10::int8, lifted_at = $11::int8, lifted_by = $12::text, lifted_why = $13::text
    FROM here
    WHERE i.position = $1::int8 AND here.origin = $2::text AND here.timeline = $3::int8 RETURNING 1
),
kept AS (SELECT 1 FROM made UNION ALL SELECT 1 FROM moved),
gone AS (
    DELETE FROM hapax.processes WHERE process = ANY ($14::int8[]) AND EXISTS (SELECT FROM kept)
),
present AS (
    INSERT INTO hapax.processes AS p (process, origin, timeline, seen_at, is_synchronous, vouches)
    SELECT $15::int8, $2::text, $3::int8, $16::int8, $17::bool, $18::bool
    FROM kept WHERE $15::int8 IS NOT NULL
    ON CONFLICT (process) DO UPDATE
    SET origin = excluded.origin, timeline = excluded.timeline, seen_at = excluded.seen_at,
        is_synchronous = excluded.is_synchronous, vouches = excluded.vouches
)
SELECT count(*) FROM kept
