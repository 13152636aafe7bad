-- Version 11: a database that looks after itself, whenever pg_cron or anybody else calls hapax.tend.
--
-- This only adds, so that programs of version 10 go on: `works_with` stays. The functions here have their caller's
-- rights, and only the owner of the schema has the tables; each has a search path of its own, but hapax.tend, which
-- commits and therefore may not: it looks up nothing.
--
-- They do what the sweeper and the purger of an engine do that cannot finish anything itself. The decisions are
-- hapax.sweeps_to (`settle::sweep` of the core), the statement of hapax.purge (`apply::purge`) and hapax.clock_trust
-- (`ClockTrust::first`). Nobody is waited for: what another one holds is left to it, or to the next call.

-- How far the walks over the table of operations have come, as numbers of blocks.
CREATE TABLE hapax.laps (
    name          text PRIMARY KEY,
    next          bigint NOT NULL
);

INSERT INTO hapax.laps (name, next) VALUES ('sweep', 0), ('purge', 0);

-- The next piece of a walk: so many blocks at most, the last not among them; all of them where there are no more.
-- Whoever finds another one at the same walk begins anywhere.
CREATE FUNCTION hapax.lap_piece(lap text, most bigint, OUT blocks bigint, OUT first bigint, OUT last bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    place bigint;
BEGIN
    blocks := pg_relation_size('hapax.operations') / current_setting('block_size')::bigint;
    first := 0;
    last := blocks;
    IF blocks > most THEN
        SELECT l.next INTO place FROM hapax.laps AS l WHERE l.name = lap FOR UPDATE SKIP LOCKED;
        first := CASE WHEN FOUND THEN place % blocks ELSE floor(random() * blocks)::bigint END;
        last := least(first + most, blocks);
        PERFORM hapax.lap_goes_on(lap, last);
    END IF;
END
$$;

-- Has a walk go on from here, unless another one is at it.
CREATE FUNCTION hapax.lap_goes_on(lap text, place bigint) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE hapax.laps AS l SET next = $2
    WHERE l.name = (SELECT f.name FROM hapax.laps AS f WHERE f.name = $1 FOR UPDATE SKIP LOCKED)
$$;

-- What somebody who comes by at `now` makes of what is kept of the clock (NULL if nothing is): since when it has gone
-- steadily, up to where it is trusted, and whether that has to be kept.
CREATE FUNCTION hapax.clock_trust(
    now bigint, steady_since bigint, seen_at bigint, trusted_until bigint,
    OUT steady bigint, OUT until bigint, OUT is_news boolean)
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    stays CONSTANT bigint := 600000000;
    step CONSTANT bigint := 5000000;
    ahead CONSTANT bigint := 60000000;
    kept_every CONSTANT bigint := 20000000;
BEGIN
    IF seen_at IS NULL THEN
        steady := now - stays;
        until := now;
    ELSIF now NOT BETWEEN seen_at - step AND seen_at + stays THEN
        -- Trust that was new is taken back: nobody knows which of the two times was right.
        steady := now;
        until := CASE WHEN seen_at < steady_since + 2 * stays THEN least(trusted_until, now) ELSE trusted_until END;
    ELSE
        steady := steady_since;
        until := CASE WHEN steady_since + stays <= now THEN now ELSE trusted_until END;
    END IF;
    IF until = now THEN
        until := until + ahead;
    END IF;
    is_news := (now BETWEEN seen_at - step AND seen_at + kept_every AND trusted_until BETWEEN now AND until) IS NOT TRUE;
END
$$;

-- Looks at the clock and keeps how far it is trusted; whether leases may be judged by it, which takes a minute after it
-- was set. Nothing is kept while another one keeps something.
CREATE FUNCTION hapax.keep_clock() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    mark record;
    trust record;
    is_ours boolean;
    now bigint;
BEGIN
    SELECT m.steady_since, m.seen_at, m.trusted_until INTO mark FROM hapax.clock_mark AS m FOR UPDATE SKIP LOCKED;
    is_ours := FOUND;
    IF NOT FOUND THEN
        SELECT m.steady_since, m.seen_at, m.trusted_until INTO mark FROM hapax.clock_mark AS m;
        is_ours := NOT FOUND;
    END IF;
    now := hapax.clock();
    SELECT * INTO STRICT trust FROM hapax.clock_trust(now, mark.steady_since, mark.seen_at, mark.trusted_until);
    IF is_ours AND trust.is_news THEN
        INSERT INTO hapax.clock_mark AS m (steady_since, seen_at, trusted_until) VALUES (trust.steady, now, trust.until)
        ON CONFLICT (only_row) DO UPDATE
        SET steady_since = excluded.steady_since, seen_at = excluded.seen_at, trusted_until = excluded.trusted_until;
    END IF;
    RETURN trust.steady + 60000000 <= now;
END
$$;

-- Refuses a number of records that is none.
CREATE FUNCTION hapax.check_most(most bigint) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (most > 0) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = format('the most is %s', coalesce(most::text, 'NULL')),
            HINT = 'Give how many records may be changed at once, one at least.';
    END IF;
END
$$;

-- What an overdue record becomes: 5 in doubt, 6 released, NULL if it is left. Whoever stored the request can finish it,
-- and is waited for. A new life would forget finished steps.
CREATE FUNCTION hapax.sweeps_to(state smallint, recovery smallint, has_request boolean, has_steps boolean)
RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN state <> 2 OR has_request THEN NULL
            WHEN recovery = 1 AND NOT has_steps THEN 6
            WHEN recovery IN (1, 2, 3) THEN 5 END::smallint;

-- Files what claims left unfinished, as src/overdue.rs does: by the places they were written to, and by a walk.
CREATE FUNCTION hapax.file_unfinished() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    margin CONSTANT bigint := 2000000;
    looked bigint;
    piece record;
BEGIN
    FOR turn IN 1 .. 32 LOOP
        WITH clock AS MATERIALIZED (SELECT hapax.clock() AS now),
        looked_at AS MATERIALIZED (
            SELECT l.ctid AS place FROM clock AS c, hapax.claim_log AS l
            WHERE l.at <= c.now - margin OR l.at > c.now
            LIMIT 1024 FOR UPDATE OF l SKIP LOCKED
        ),
        removed AS (
            DELETE FROM hapax.claim_log AS l USING looked_at AS x WHERE l.ctid = x.place RETURNING l.places
        ),
        filed AS (
            INSERT INTO hapax.unfinished (id, look_at)
            SELECT o.id, o.until
            FROM removed AS r, unnest(r.places) AS p(place), hapax.operations AS o
            WHERE o.ctid = p.place AND o.state IN (1, 2)
            ORDER BY o.id
            ON CONFLICT (id) DO NOTHING
        )
        SELECT count(*) INTO looked FROM removed;
        EXIT WHEN looked < 1024;
    END LOOP;
    SELECT * INTO STRICT piece FROM hapax.lap_piece('sweep', 2048);
    INSERT INTO hapax.unfinished (id, look_at)
    SELECT o.id, o.until
    FROM (SELECT hapax.clock() AS now) AS c, hapax.operations AS o
    WHERE o.ctid >= format('(%s,0)', piece.first)::tid AND o.ctid < format('(%s,0)', piece.last)::tid
      AND o.state IN (1, 2) AND (o.changed_at <= c.now - margin OR o.changed_at > c.now)
    ORDER BY o.id
    ON CONFLICT (id) DO NOTHING;
END
$$;

-- Settles an overdue record that is locked by this transaction; says as what, NULL if it is left.
CREATE FUNCTION hapax.settle_overdue(operation uuid) RETURNS smallint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    became record;
BEGIN
    UPDATE hapax.operations AS o
    SET state = x.becomes, doubt = CASE WHEN x.becomes = 5 THEN 3 ELSE 0 END, until = 0, changed_at = x.now,
        expires_at = greatest(o.expires_at, x.now), request = CASE WHEN x.becomes = 5 THEN o.request END, answer = NULL
    FROM (SELECT f.id, hapax.clock() AS now, hapax.sweeps_to(f.state, f.recovery, f.request IS NOT NULL, EXISTS (
              SELECT FROM hapax.steps AS s WHERE s.id = f.id AND s.life = f.created_at)) AS becomes
          FROM hapax.operations AS f WHERE f.id = operation) AS x
    WHERE o.id = x.id AND x.becomes IS NOT NULL
    RETURNING o.state, o.changed_at, o.watched INTO became;
    IF became.state = 5 THEN
        INSERT INTO hapax.doubts AS d (id, since) VALUES (operation, became.changed_at)
        ON CONFLICT (id) DO UPDATE SET since = excluded.since;
    END IF;
    IF became.watched THEN
        PERFORM pg_notify('hapax_settled', replace(operation::text, '-', ''));
    END IF;
    RETURN became.state;
END
$$;

-- Public. Looks after up to `most` operations whose owner is overdue: nobody knows what became of them, or, where
-- sending again is harmless, the next arrival runs them. How many of each.
CREATE FUNCTION hapax.sweep(most bigint DEFAULT 1000, OUT in_doubt bigint, OUT released bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    longest CONSTANT bigint := 3600000000;
    due record;
    seen record;
    next bigint;
    became smallint;
    leases_count boolean;
BEGIN
    PERFORM hapax.check_most(most);
    in_doubt := 0;
    released := 0;
    leases_count := hapax.keep_clock();
    PERFORM hapax.file_unfinished();
    IF NOT leases_count THEN
        RETURN;
    END IF;
    FOR due IN
        (SELECT u.id, u.look_at FROM hapax.unfinished AS u WHERE u.look_at <= hapax.clock() ORDER BY u.look_at LIMIT most)
        UNION ALL
        -- No lease ends as late as this, unless it was given by a clock that was ahead.
        (SELECT u.id, u.look_at FROM hapax.unfinished AS u WHERE u.look_at > hapax.clock() + longest
         ORDER BY u.look_at DESC LIMIT most)
    LOOP
        EXIT WHEN in_doubt + released >= most;
        -- Whoever made it run again meanwhile filed it under another time.
        PERFORM FROM hapax.unfinished AS u WHERE u.id = due.id AND u.look_at = due.look_at FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        SELECT o.format, o.state, o.until, hapax.clock() AS now INTO seen
        FROM hapax.operations AS o WHERE o.id = due.id FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            -- Another one is at it, or it is gone.
            CONTINUE WHEN EXISTS (SELECT FROM hapax.operations AS o WHERE o.id = due.id);
            next := NULL;
        ELSIF seen.format <> 1 OR seen.state NOT BETWEEN 1 AND 7 THEN
            next := due.look_at + 60000000;
        ELSIF seen.state NOT IN (1, 2) THEN
            next := NULL;
        ELSIF seen.until > seen.now AND seen.until <= seen.now + longest THEN
            next := seen.until;
        ELSE
            became := hapax.settle_overdue(due.id);
            in_doubt := in_doubt + (became IS NOT DISTINCT FROM 5::smallint)::integer;
            released := released + (became IS NOT DISTINCT FROM 6::smallint)::integer;
            next := CASE WHEN became IS NULL THEN seen.now END;
        END IF;
        IF next IS NULL THEN
            DELETE FROM hapax.unfinished AS u WHERE u.id = due.id;
        ELSE
            UPDATE hapax.unfinished AS u SET look_at = next WHERE u.id = due.id;
        END IF;
    END LOOP;
END
$$;

-- Removes, buries or fails up to `most` records between two blocks; how many of each, and how many were past their time.
CREATE FUNCTION hapax.purge_piece(
    first bigint, last bigint, most bigint,
    OUT removed bigint, OUT buried bigint, OUT timed_out bigint, OUT spent bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    pending uuid[];
BEGIN
    WITH clock AS MATERIALIZED (SELECT hapax.trusted_clock() AS now),
    due AS MATERIALIZED (
        SELECT o.ctid AS place, o.id, o.state, o.tombstone <= c.now - o.expires_at AS forgotten
        FROM clock AS c, hapax.operations AS o
        WHERE o.ctid >= format('(%s,0)', first)::tid AND o.ctid < format('(%s,0)', last)::tid
          AND o.format = 1 AND o.expires_at <= c.now
          AND (o.state IN (1, 3, 4, 6) OR (o.state = 7 AND o.tombstone <= c.now - o.expires_at))
        LIMIT most
        FOR UPDATE OF o SKIP LOCKED
    ),
    deleted AS (
        DELETE FROM hapax.operations AS o USING due AS x
        WHERE o.ctid = x.place AND x.state <> 1 AND x.forgotten
        RETURNING 1
    ),
    put_away AS (
        UPDATE hapax.operations AS o
        SET state = 7, changed_at = c.now, answer = NULL
        FROM clock AS c, due AS x
        WHERE o.ctid = x.place AND x.state <> 1 AND NOT x.forgotten
        RETURNING 1
    ),
    stepped AS (
        DELETE FROM hapax.steps AS s USING due AS x
        WHERE s.id = x.id AND x.state <> 1
    )
    SELECT (SELECT count(*) FROM deleted), (SELECT count(*) FROM put_away),
           (SELECT array_agg(x.id) FROM due AS x WHERE x.state = 1), (SELECT count(*) FROM due)
    INTO removed, buried, pending, spent;
    WITH failed AS (
        UPDATE hapax.operations AS o
        SET state = 4, until = 0, changed_at = c.now, expires_at = c.now + (o.expires_at - o.created_at), request = NULL,
            answer = hapax.plain_answer(o.id, 504, ''::bytea)
        FROM (SELECT hapax.clock() AS now) AS c
        WHERE o.id = ANY (pending) AND o.format = 1 AND o.state = 1
        RETURNING o.id, o.watched
    )
    SELECT count(*), count(CASE WHEN f.watched THEN pg_notify('hapax_settled', replace(f.id::text, '-', '')) END)
    INTO timed_out FROM failed AS f;
END
$$;

-- Public. Removes, buries or fails up to `most` records that are past their retention, as far as the clock is trusted,
-- and forgets as many messages and notes; how many of each.
CREATE FUNCTION hapax.purge(
    most bigint DEFAULT 1000,
    OUT removed bigint, OUT buried bigint, OUT timed_out bigint, OUT messages bigint, OUT notes bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    piece record;
    part record;
    walked bigint := 0;
    idle bigint := 0;
    remaining bigint := most;
    some_id uuid;
BEGIN
    PERFORM hapax.check_most(most);
    removed := 0;
    buried := 0;
    timed_out := 0;
    PERFORM hapax.keep_clock();
    LOOP
        SELECT * INTO STRICT piece FROM hapax.lap_piece('purge', 256);
        SELECT * INTO STRICT part FROM hapax.purge_piece(piece.first, piece.last, remaining);
        removed := removed + part.removed;
        buried := buried + part.buried;
        timed_out := timed_out + part.timed_out;
        walked := walked + piece.last - piece.first;
        idle := idle + CASE WHEN part.spent = 0 THEN piece.last - piece.first ELSE 0 END;
        IF part.spent >= remaining THEN
            -- There may be more where it stopped.
            PERFORM hapax.lap_goes_on('purge', piece.first);
            EXIT;
        END IF;
        remaining := remaining - part.spent;
        EXIT WHEN walked >= least(piece.blocks, 16384) OR idle >= 1024;
    END LOOP;
    messages := hapax.inbox_forget(most);
    DELETE FROM hapax.notes AS n WHERE n.number IN (
        SELECT f.number FROM hapax.notes AS f WHERE f.at <= (SELECT hapax.trusted_clock()) - 34560000000000
        ORDER BY f.at LIMIT most);
    GET DIAGNOSTICS notes = ROW_COUNT;
    FOREACH some_id IN ARRAY ARRAY[gen_random_uuid(), '00000000-0000-0000-0000-000000000000'::uuid] LOOP
        DELETE FROM hapax.doubts AS d
        USING (SELECT x.id, x.since FROM hapax.doubts AS x WHERE x.id >= some_id ORDER BY x.id LIMIT 256) AS l
        LEFT JOIN hapax.operations AS o ON o.id = l.id
        WHERE d.id = l.id AND d.since = l.since AND o.state IS DISTINCT FROM 5;
    END LOOP;
END
$$;

-- Public. Empties the segments of the outbox that every destination is done with, and forgets relays that vanished; how
-- many events went. What somebody reads at the moment is left to the next call. To be called outside of a transaction:
-- what it empties stays locked to the end of it.
CREATE FUNCTION hapax.purge_outbox() RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    before text := current_setting('lock_timeout');
    emptied bigint := 0;
    segment smallint;
BEGIN
    DELETE FROM hapax.outbox_relays AS r WHERE (r.destination, r.owner) IN (
        SELECT f.destination, f.owner FROM hapax.outbox_relays AS f WHERE f.until < hapax.clock() - 3600000000
        FOR UPDATE SKIP LOCKED);
    -- All are found before one is emptied: what a query reads cannot be.
    FOREACH segment IN ARRAY array(
        SELECT s.segment::smallint
        FROM generate_series(0, 15) AS s(segment)
        WHERE s.segment <> (coalesce(pg_sequence_last_value('hapax.outbox_positions'), 0) >> 16) & 15
          AND EXISTS (SELECT FROM hapax.outbox AS o WHERE o.segment = s.segment::smallint)
          AND NOT EXISTS (SELECT FROM hapax.outbox AS o WHERE o.segment = s.segment::smallint
                          AND (o.position > (SELECT min(l.low) FROM hapax.outbox_lanes AS l)) IS NOT FALSE)
        ORDER BY s.segment)
    LOOP
        BEGIN
            emptied := emptied + hapax.outbox_retire(segment);
        EXCEPTION WHEN lock_not_available THEN
            NULL;
        END;
    END LOOP;
    PERFORM set_config('lock_timeout', before, true);
    RETURN emptied;
END
$$;

-- One piece of hapax.tend; which comes next, NULL if none. Pieces 0 to 7 sweep and 8 to 23 purge, each a part of a large
-- table (16,384 blocks together), 24 empties segments.
CREATE FUNCTION hapax.tend_piece(piece integer, until bigint) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    most CONSTANT bigint := 1000;
    has_time boolean := hapax.clock() < until;
    blocks bigint := pg_relation_size('hapax.operations') / current_setting('block_size')::bigint;
    swept record;
    purged record;
BEGIN
    IF piece < 8 THEN
        SELECT * INTO STRICT swept FROM hapax.sweep(most);
        RETURN CASE WHEN has_time AND (swept.in_doubt + swept.released >= most OR blocks > 2048 * (piece + 1))
                    THEN piece + 1 ELSE 8 END;
    ELSIF piece < 24 THEN
        SELECT * INTO STRICT purged FROM hapax.purge(most);
        RETURN CASE WHEN NOT has_time THEN 24
                    WHEN purged.removed + purged.buried + purged.timed_out >= most OR purged.messages >= most
                         OR purged.notes >= most THEN piece
                    WHEN blocks > 1024 * (piece - 7) THEN piece + 1
                    ELSE 24 END;
    END IF;
    PERFORM hapax.purge_outbox();
    RETURN NULL;
END
$$;

-- When hapax.tend begins nothing more.
CREATE FUNCTION hapax.tend_until(lasting interval) RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$ SELECT hapax.clock() + hapax.span('the time', lasting, '1 second', '1 hour') $$;

-- Public. Keeps the clock, sweeps, purges and empties segments, in pieces that are committed one by one, for about as long
-- as told at most. To be called every minute, and outside of a transaction.
CREATE PROCEDURE hapax.tend(lasting interval DEFAULT '45 seconds')
LANGUAGE plpgsql -- every name is qualified
AS $$
DECLARE
    piece integer := 0;
    until bigint := hapax.tend_until(lasting);
BEGIN
    COMMIT;
    LOOP
        -- The first statement after a COMMIT, or it is refused where another level is the default.
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        piece := hapax.tend_piece(piece, until);
        EXIT WHEN piece IS NULL;
        COMMIT;
    END LOOP;
    COMMIT;
END
$$;

-- Public. Has pg_cron call hapax.tend as the owner of the schema, and gives the number of the job. A job that is there is
-- changed. Retention needs it at least every ten minutes.
CREATE FUNCTION hapax.schedule(schedule text DEFAULT '* * * * *') RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    owner name := (SELECT pg_get_userbyid(n.nspowner) FROM pg_namespace AS n WHERE n.nspname = 'hapax');
    job text := 'hapax in ' || current_database();
    number bigint;
BEGIN
    IF schedule IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'the schedule is NULL',
            HINT = 'Give it as cron does; leave it out for every minute.';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_extension AS e WHERE e.extname = 'pg_cron') THEN
        RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'pg_cron is not installed in this database',
            HINT = format('Install it here (CREATE EXTENSION pg_cron), or call, in the database where it is, '
                          'cron.schedule_in_database(%L, %L, ''CALL hapax.tend()'', %L, %L).',
                          job, schedule, current_database(), owner);
    END IF;
    IF owner = current_user THEN
        EXECUTE 'SELECT cron.schedule($1, $2, ''CALL hapax.tend()'')' INTO STRICT number USING job, schedule;
    ELSE
        EXECUTE 'SELECT cron.schedule_in_database($1, $2, ''CALL hapax.tend()'', $3, $4)'
            INTO STRICT number USING job, schedule, current_database()::text, owner::text;
    END IF;
    RETURN number;
END
$$;

-- Public. Has pg_cron call hapax.tend no more; whether it did.
CREATE FUNCTION hapax.unschedule() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    jobs bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension AS e WHERE e.extname = 'pg_cron') THEN
        RETURN false;
    END IF;
    EXECUTE 'SELECT count(cron.unschedule(j.jobid)) FROM cron.job AS j WHERE j.jobname = $1 AND j.database = current_database()'
        INTO STRICT jobs USING 'hapax in ' || current_database();
    RETURN jobs > 0;
END
$$;

-- How tables that are written all the time should be stored, and how they are. What somebody set otherwise is left alone.
CREATE VIEW hapax.storage_settings AS
SELECT e.relation, e.parameter, e.expected,
       (SELECT t.option_value FROM pg_options_to_table(c.reloptions) AS t WHERE t.option_name = e.parameter) AS actual
FROM (VALUES
    ('operations', 'fillfactor', '45'),
    ('operations', 'vacuum_truncate', 'false'),
    ('operations', 'autovacuum_vacuum_scale_factor', '0.02'),
    ('operations', 'autovacuum_vacuum_insert_scale_factor', '0.05'),
    ('operations', 'autovacuum_analyze_scale_factor', '0.05'),
    -- Rows that come and go within seconds: what is dead is taken away by number, not by share.
    ('claim_log', 'autovacuum_vacuum_scale_factor', '0'),
    ('claim_log', 'autovacuum_vacuum_threshold', '2000'),
    ('unfinished', 'autovacuum_vacuum_scale_factor', '0'),
    ('unfinished', 'autovacuum_vacuum_threshold', '2000'),
    ('doubts', 'autovacuum_vacuum_scale_factor', '0'),
    ('doubts', 'autovacuum_vacuum_threshold', '1000'),
    ('inbox_attempts', 'fillfactor', '80'),
    ('inbox_attempts', 'autovacuum_vacuum_scale_factor', '0'),
    ('inbox_attempts', 'autovacuum_vacuum_threshold', '1000'),
    ('inbox_held', 'autovacuum_vacuum_scale_factor', '0'),
    ('inbox_held', 'autovacuum_vacuum_threshold', '1000'),
    ('outbox_parked', 'autovacuum_vacuum_scale_factor', '0'),
    ('outbox_parked', 'autovacuum_vacuum_threshold', '1000'),
    -- Few rows that are rewritten in their place all the time.
    ('clock_mark', 'fillfactor', '50'),
    ('laps', 'fillfactor', '50'),
    ('incarnation', 'fillfactor', '50'),
    ('processes', 'fillfactor', '50'),
    ('outbox_relays', 'fillfactor', '10'),
    ('outbox_relays', 'autovacuum_vacuum_scale_factor', '0'),
    ('outbox_relays', 'autovacuum_vacuum_threshold', '1000'),
    ('outbox_lanes', 'fillfactor', '10'),
    ('outbox_lanes', 'autovacuum_vacuum_scale_factor', '0'),
    ('outbox_lanes', 'autovacuum_vacuum_threshold', '1000'),
    ('inbox_offsets', 'fillfactor', '50'),
    ('inbox_offsets', 'autovacuum_vacuum_scale_factor', '0'),
    ('inbox_offsets', 'autovacuum_vacuum_threshold', '1000'),
    -- Many rows, of which a share goes with every retention.
    ('inbox', 'autovacuum_vacuum_scale_factor', '0.02'),
    ('inbox', 'autovacuum_vacuum_insert_scale_factor', '0.05'),
    ('inbox', 'autovacuum_analyze_scale_factor', '0.05'),
    ('inbox_versions', 'fillfactor', '80'),
    ('inbox_versions', 'autovacuum_vacuum_scale_factor', '0.02'),
    ('steps', 'autovacuum_vacuum_scale_factor', '0.02'),
    ('steps', 'autovacuum_vacuum_insert_scale_factor', '0.05'),
    ('notes', 'autovacuum_vacuum_scale_factor', '0.02')
) AS e(relation, parameter, expected)
JOIN pg_class AS c ON c.relname = e.relation AND c.relnamespace = 'hapax'::regnamespace;

COMMENT ON VIEW hapax.storage_settings IS 'How tables that are written all the time should be stored, and how they are.';

DO $$
DECLARE
    s record;
BEGIN
    FOR s IN SELECT v.relation, string_agg(format('%I = %s', v.parameter, v.expected), ', ') AS parameters
             FROM hapax.storage_settings AS v WHERE v.actual IS NULL GROUP BY v.relation
    LOOP
        EXECUTE format('ALTER TABLE hapax.%I SET (%s)', s.relation, s.parameters);
    END LOOP;
END
$$;

REVOKE ALL ON FUNCTION
    hapax.check_most, hapax.clock_trust, hapax.file_unfinished, hapax.keep_clock, hapax.lap_goes_on, hapax.lap_piece,
    hapax.purge, hapax.purge_outbox, hapax.purge_piece, hapax.schedule, hapax.settle_overdue, hapax.sweep,
    hapax.sweeps_to, hapax.tend_piece, hapax.tend_until, hapax.unschedule
FROM PUBLIC;

REVOKE ALL ON PROCEDURE hapax.tend FROM PUBLIC;

UPDATE hapax.meta SET version = 11;
