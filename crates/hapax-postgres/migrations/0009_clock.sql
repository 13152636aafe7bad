-- How far the clock of this database is trusted. Nothing expires, is buried or removed by an instant after
-- `trusted_until`, which only those move on who have watched the clock go steadily for a while.
CREATE TABLE hapax.clock_mark (
    only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    steady_since  bigint NOT NULL,
    seen_at       bigint NOT NULL,
    trusted_until bigint NOT NULL
) WITH (fillfactor = 50);

-- The clock by which retention is judged. One that nobody ever watched is taken at its word.
CREATE FUNCTION hapax.trusted_clock() RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$ SELECT least(hapax.clock(), (SELECT m.trusted_until FROM hapax.clock_mark AS m)) $$;

REVOKE ALL ON FUNCTION hapax.trusted_clock FROM PUBLIC;

-- The functions that compare with the clock stay as they are, but for the clock they compare with.
DO $$
DECLARE
    change record;
    changes integer := 0;
BEGIN
    FOR change IN
        SELECT p.oid, c.before, c.after
        FROM (VALUES
            ('begin_contended', 'hapax.decide(now,', 'hapax.decide(hapax.trusted_clock(),'),
            ('first_delivery_bytes', 'o.expires_at > hapax.clock()', 'o.expires_at > hapax.trusted_clock()'),
            ('first_delivery_bytes', 'kept <= hapax.clock()', 'kept <= hapax.trusted_clock()'),
            ('inbox_forget', 'now bigint := hapax.clock()', 'now bigint := hapax.trusted_clock()')
        ) AS c(name, before, after)
        JOIN pg_catalog.pg_proc AS p ON p.proname = c.name AND p.pronamespace = 'hapax'::regnamespace
        WHERE position(c.before IN p.prosrc) > 0
    LOOP
        EXECUTE replace(pg_get_functiondef(change.oid), change.before, change.after);
        changes := changes + 1;
    END LOOP;
    IF changes < 4 THEN
        RAISE EXCEPTION 'a function that judges retention is not as it was written';
    END IF;
END
$$;

-- Older code keeps no mark and reads none.
UPDATE hapax.meta SET version = 9;
