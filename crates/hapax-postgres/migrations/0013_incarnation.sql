-- Which database this is, and who is at work on it: so that one that has forgotten commits, after a failover to
-- a standby that lagged or a restore from a backup, is noticed.

-- Which database answers. Its origin changes where it is made anew (by initdb, pg_upgrade, a restored dump), its
-- timeline where a standby is promoted or a recovery ends. What the server does not tell is said to be unknown.
CREATE FUNCTION hapax.incarnation_now(OUT origin text, OUT timeline bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    system text;
BEGIN
    BEGIN
        SELECT c.system_identifier::text INTO STRICT system FROM pg_control_system() AS c;
    EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported THEN
        system := 'unknown';
    END;
    BEGIN
        -- The timeline that is written to, which pg_control_checkpoint() tells only after the next checkpoint.
        timeline := ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint;
    EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported THEN
        timeline := 0;
    END;
    origin := format('system %s, database %s, schema %s', system,
        (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()),
        to_regclass('hapax.meta')::oid);
END
$$;

REVOKE ALL ON FUNCTION hapax.incarnation_now FROM PUBLIC;

-- What is kept about the past of this database. Every write of it moves `position` on.
CREATE TABLE hapax.incarnation (
    only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    origin            text NOT NULL,
    timeline          bigint NOT NULL,
    position          bigint NOT NULL,
    -- The position at which the present incarnation took over.
    began             bigint NOT NULL,
    -- Since when keys that are not here are not run; NULL if they are.
    quarantined_since bigint,
    -- 1 failover, 2 restore, 3 declared by a person.
    cause             bigint,
    before_origin     text,
    before_timeline   bigint,
    seen_before       bigint,
    -- Who last let them be run again, and why.
    lifted_at         bigint,
    lifted_by         text,
    lifted_why        text
) WITH (fillfactor = 50);

-- Processes that run operations whose effects are elsewhere, and their last sign of life.
CREATE TABLE hapax.processes (
    process           bigint PRIMARY KEY,
    origin            text NOT NULL,
    timeline          bigint NOT NULL,
    seen_at           bigint NOT NULL,
    -- Whether its commits wait for a standby.
    is_synchronous    boolean NOT NULL,
    -- Whether it lived through the change to this incarnation, and everything it had been told is here.
    vouches           boolean NOT NULL
) WITH (fillfactor = 50);

UPDATE hapax.meta SET version = 13;
