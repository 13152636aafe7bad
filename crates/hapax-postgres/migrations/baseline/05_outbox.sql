-- The outbox as a log: rows are written once, read in order of position, and go by the segment.
--
-- A position is given before its transaction commits, so a reader meets gaps. What keeps it right:
--   1 a transaction that emits takes the lock of its key, and keeps it to its end;
--   2 it announces itself as a writer of the current segment, by the lock that an insert into the segment's own
--     table takes before it runs, kept likewise;
--   3 after both it takes the position.
-- By 1, whoever sees an event sees all earlier ones of its key, or they never come. By 2, a position
-- that was missing while nobody who was then announced for its segment is left never comes.

-- A fixed ring of segments, of 65,536 positions each in turn. No table is made or dropped while it
-- runs, and no row is changed or deleted by itself: a segment is truncated once everything in it is
-- final for every destination. So there is nothing to vacuum, whatever snapshots others hold.
CREATE TABLE hapax.outbox (
    position      bigint NOT NULL,
    at            bigint NOT NULL,
    id            uuid NOT NULL,
    -- (position / 65536) % 16
    segment       smallint NOT NULL,
    -- The first byte of the SHA-256 of topic, newline and key, modulo 64.
    lane          smallint NOT NULL,
    format        smallint NOT NULL,
    topic         text NOT NULL,
    key           text NOT NULL,
    content_type  text NOT NULL,
    headers       jsonb NOT NULL,
    payload       bytea NOT NULL,
    PRIMARY KEY (position, segment)
) PARTITION BY LIST (segment);

DO $$
BEGIN
    FOR segment IN 0 .. 15 LOOP
        EXECUTE format('CREATE TABLE hapax.outbox_%s PARTITION OF hapax.outbox FOR VALUES IN (%s)', segment, segment);
    END LOOP;
END
$$;

-- Not cached: a session that took a position early would write it late.
CREATE SEQUENCE hapax.outbox_positions OWNED BY hapax.outbox.position;

-- Always the same, wherever it is computed.
CREATE FUNCTION hapax.outbox_lane(topic text, key text) RETURNS smallint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN (get_byte(sha256(convert_to(topic || E'\n' || key, 'UTF8')), 0) & 63)::smallint;

-- Whether an event needs no closer look: hapax.check_event takes it.
CREATE FUNCTION hapax.is_plain_event(topic text, key text, payload bytea, headers jsonb, content_type text, id uuid)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(topic) BETWEEN 1 AND 255 AND octet_length(key) BETWEEN 1 AND 255
    AND octet_length(content_type) BETWEEN 1 AND 255 AND octet_length(payload) <= 1048576 AND headers = '{}' AND id IS NOT NULL;

-- Refuses an event with a part that is missing or too large, or with headers that are not names and texts.
CREATE FUNCTION hapax.check_event(topic text, key text, payload bytea, headers jsonb, content_type text, id uuid)
RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bytes bigint;
    fault boolean;
BEGIN
    IF num_nulls(payload, headers, id) > 0 OR (octet_length(topic) BETWEEN 1 AND 255 AND octet_length(key) BETWEEN 1 AND 255
        AND octet_length(content_type) BETWEEN 1 AND 255) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'an argument of hapax.emit is NULL, empty or longer than 255 bytes',
            HINT = 'Give a topic, a key and a content type of 1 to 255 bytes each, and a payload.';
    END IF;
    IF octet_length(payload) > 1048576 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX004', MESSAGE = 'the payload is larger than 1 MiB',
            HINT = 'Store it elsewhere, and publish a reference to it.';
    END IF;
    fault := jsonb_typeof(headers) <> 'object';
    IF NOT fault THEN
        SELECT sum(octet_length(h.key) + octet_length(h.value #>> '{}')),
               count(*) > 64 OR bool_or(jsonb_typeof(h.value) <> 'string' OR octet_length(h.key) NOT BETWEEN 1 AND 255)
        INTO bytes, fault
        FROM jsonb_each(headers) AS h;
    END IF;
    IF fault THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'headers are not a JSON object of at most 64 names and texts',
            HINT = 'Give headers as {"name": "text"}; a name has 1 to 255 bytes.';
    END IF;
    IF bytes > 16384 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX004', MESSAGE = 'the headers are larger than 16 KiB together',
            HINT = 'Put it into the payload.';
    END IF;
END
$$;

-- The segment that the next position lies in, if nobody takes one before.
CREATE FUNCTION hapax.outbox_segment() RETURNS bigint
LANGUAGE sql VOLATILE
RETURN (coalesce(pg_sequence_last_value('hapax.outbox_positions'), 0) + 1) >> 16;

CREATE FUNCTION hapax.is_in_segment(at bigint, segment bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN at >> 16 = segment;

CREATE FUNCTION hapax.has_bit(segment bigint, weight integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN segment & weight <> 0;

-- The lock that keeps the order of a key's events. Of two transactions with the same key, the later to commit has
-- the higher position.
CREATE FUNCTION hapax.event_lock(salt bytea, topic text, key text) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN hapax.lock_number(salt, 'event', topic || E'\n' || key);

-- hapax.emit_bytes, with an insert for each table of the ring: naming the table is what announces the writer. An
-- insert whose position lies in another segment writes nothing, and that position is given up. The limit tells the
-- planner that there is one salt: it would otherwise expect a thousand, and plan anew each time. The table is found by
-- the bits of its number: whatever is asked is made ready anew in every transaction, so four questions, not up to sixteen.
DO $do$
DECLARE
    inserts text[];
BEGIN
    inserts := array(SELECT format($insert$
            INSERT INTO hapax.outbox_%1$s (position, at, id, segment, lane, format, topic, key, content_type, headers, payload)
            SELECT p.taken, hapax.clock(), id, %1$s, hapax.outbox_lane(topic, key), 1, topic, key, content_type, headers, payload
            FROM (SELECT CASE WHEN pg_catalog.pg_advisory_xact_lock(hapax.event_lock(m.salt, topic, key)) IS NULL THEN NULL
                              ELSE pg_catalog.nextval('hapax.outbox_positions') END AS taken
                  FROM hapax.meta AS m LIMIT 1) AS p
            WHERE hapax.is_in_segment(p.taken, segment);$insert$, n)
        FROM generate_series(0, 15) AS n ORDER BY n);
    FOR place IN 0 .. 3 LOOP
        inserts := array(SELECT format(E'\n        IF hapax.has_bit(segment, %s) THEN%s\n        ELSE%s\n        END IF;',
                                       1 << place, inserts[n + 1], inserts[n])
                         FROM generate_series(1, cardinality(inserts), 2) AS n ORDER BY n);
    END LOOP;
    EXECUTE format($function$
CREATE FUNCTION hapax.emit_bytes(
    topic text, key text, payload bytea, headers jsonb DEFAULT '{}', content_type text DEFAULT 'application/json',
    id uuid DEFAULT gen_random_uuid()) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET plan_cache_mode = force_generic_plan -- every name is qualified
AS $$
#variable_conflict use_variable
DECLARE
    segment bigint;
BEGIN
    IF hapax.is_plain_event(topic, key, payload, headers, content_type, id) IS NOT TRUE THEN
        PERFORM hapax.check_event(topic, key, payload, headers, content_type, id);
    END IF;
    LOOP
        segment := hapax.outbox_segment();%s
        EXIT WHEN FOUND;
    END LOOP;
    RETURN id;
END
$$;$function$, inserts[1]);
END
$do$;

-- Public. Says that something happened, to be published if this transaction commits; returns the
-- event's id. Events of one topic and key are published in the order their transactions committed.
CREATE FUNCTION hapax.emit(
    topic text, key text, payload anycompatible, headers jsonb DEFAULT '{}', content_type text DEFAULT 'application/json',
    id uuid DEFAULT gen_random_uuid()) RETURNS uuid
LANGUAGE sql
AS $$ SELECT hapax.emit_bytes($1, $2, hapax.as_bytes($3), $4, $5, $6) $$;

-- Where events are sent.
CREATE TABLE hapax.outbox_destinations (
    name          text PRIMARY KEY,
    -- Names, beginnings ('orders.*'), or '*'.
    topics        text[] NOT NULL,
    paused        boolean NOT NULL DEFAULT false,
    created_at    bigint NOT NULL
);

-- Who sends them, and until when it is trusted to be alive.
CREATE TABLE hapax.outbox_relays (
    destination   text NOT NULL REFERENCES hapax.outbox_destinations ON DELETE CASCADE,
    owner         bigint NOT NULL,
    until         bigint NOT NULL,
    PRIMARY KEY (destination, owner)
) WITH (fillfactor = 10);

-- How far each lane is. Everything at or below `low` is final: sent, parked, unwanted, or never came.
CREATE TABLE hapax.outbox_lanes (
    destination   text NOT NULL REFERENCES hapax.outbox_destinations ON DELETE CASCADE,
    lane          smallint NOT NULL,
    owner         bigint,
    -- Grows whenever the owner changes; what an owner writes names it.
    fence         bigint NOT NULL,
    low           bigint NOT NULL,
    PRIMARY KEY (destination, lane)
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- What was put aside: a copy, so that it keeps no segment.
CREATE TABLE hapax.outbox_parked (
    destination   text NOT NULL REFERENCES hapax.outbox_destinations ON DELETE CASCADE,
    position      bigint NOT NULL,
    at            bigint NOT NULL,
    id            uuid NOT NULL,
    lane          smallint NOT NULL,
    format        smallint NOT NULL,
    topic         text NOT NULL,
    key           text NOT NULL,
    content_type  text NOT NULL,
    headers       jsonb NOT NULL,
    payload       bytea NOT NULL,
    -- Whether later events of its key wait behind it.
    holds_key     boolean NOT NULL,
    -- Whether it is to be sent again.
    replaying     boolean NOT NULL,
    attempts      integer NOT NULL,
    reason        text NOT NULL,
    parked_at     bigint NOT NULL,
    PRIMARY KEY (destination, position)
);

CREATE INDEX outbox_parked_key ON hapax.outbox_parked (destination, topic, key, position) WHERE holds_key;
CREATE INDEX outbox_parked_replaying ON hapax.outbox_parked (destination, position) WHERE replaying;

-- Whether a destination with these topics wants this one: the rules of hapax-core's `Topics`.
CREATE FUNCTION hapax.outbox_wants(topics text[], topic text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN topics @> '{*}'::text[] OR topic = ANY (topics) OR EXISTS (
    SELECT FROM unnest(topics) AS t(pattern) WHERE right(t.pattern, 1) = '*' AND starts_with(topic, left(t.pattern, -1)));

-- Puts events of a lane aside, in order; false, and nothing done, if the lane is under another fence.
-- A hold is 1 (later ones go on), 2 (later ones wait) or 3 (it is a later one itself).
CREATE FUNCTION hapax.outbox_park(
    destination text, lane smallint, fence bigint, positions bigint[], holds smallint[], attempts integer[], reasons text[])
RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    event record;
    again boolean;
BEGIN
    -- One at a time with hapax.outbox_replay: what follows must not miss that its key is being sent again.
    PERFORM FROM hapax.outbox_destinations AS d WHERE d.name = destination FOR UPDATE;
    PERFORM FROM hapax.outbox_lanes AS l WHERE l.destination = destination AND l.lane = lane AND l.fence = fence FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    FOR i IN 1 .. cardinality(positions) LOOP
        SELECT p.at, p.id, p.lane, p.format, p.topic, p.key, p.content_type, p.headers, p.payload INTO event
        FROM hapax.outbox_parked AS p WHERE p.destination = destination AND p.position = positions[i];
        IF NOT FOUND THEN
            SELECT o.at, o.id, o.lane, o.format, o.topic, o.key, o.content_type, o.headers, o.payload INTO event
            FROM hapax.outbox AS o WHERE o.position = positions[i];
            CONTINUE WHEN NOT FOUND;
        END IF;
        again := false;
        IF holds[i] = 3 THEN
            SELECT coalesce(bool_and(p.replaying), true) INTO again FROM hapax.outbox_parked AS p
            WHERE p.destination = destination AND p.topic = event.topic AND p.key = event.key AND p.holds_key;
        ELSIF holds[i] = 2 THEN
            UPDATE hapax.outbox_parked AS p SET replaying = false
            WHERE p.destination = destination AND p.topic = event.topic AND p.key = event.key AND p.holds_key AND p.replaying;
        END IF;
        INSERT INTO hapax.outbox_parked AS p (
            destination, position, at, id, lane, format, topic, key, content_type, headers, payload,
            holds_key, replaying, attempts, reason, parked_at)
        VALUES (destination, positions[i], event.at, event.id, event.lane, event.format, event.topic, event.key,
            event.content_type, event.headers, event.payload,
            holds[i] <> 1, again, attempts[i], reasons[i], hapax.clock())
        ON CONFLICT ON CONSTRAINT outbox_parked_pkey DO UPDATE
        SET holds_key = excluded.holds_key, replaying = excluded.replaying, attempts = excluded.attempts,
            reason = excluded.reason, parked_at = excluded.parked_at;
    END LOOP;
    RETURN true;
END
$$;

-- Has parked events sent again; how many. All of them, those of a key, or one, and then those of its
-- key that stand before it too.
CREATE FUNCTION hapax.outbox_replay(destination text, topic text, key text, one bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    replayed bigint;
BEGIN
    PERFORM FROM hapax.outbox_destinations AS d WHERE d.name = destination FOR UPDATE;
    UPDATE hapax.outbox_parked AS p SET replaying = true
    WHERE p.destination = destination AND NOT p.replaying
      AND (topic IS NULL OR p.topic = topic) AND (key IS NULL OR p.key = key)
      AND (one IS NULL OR p.position = one OR (p.holds_key AND p.position < one AND EXISTS (
          SELECT FROM hapax.outbox_parked AS q
          WHERE q.destination = destination AND q.position = one AND q.holds_key AND q.topic = p.topic AND q.key = p.key)));
    GET DIAGNOSTICS replayed = ROW_COUNT;
    RETURN replayed;
END
$$;

-- Empties a segment if everything in it is final for every destination; how many events went.
CREATE FUNCTION hapax.outbox_retire(segment smallint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    events bigint;
    highest bigint;
BEGIN
    PERFORM set_config('lock_timeout', '50ms', true);
    EXECUTE format('LOCK TABLE hapax.outbox_%s IN ACCESS EXCLUSIVE MODE', segment);
    EXECUTE format('SELECT count(*), max(position) FROM hapax.outbox_%s', segment) INTO events, highest;
    IF highest IS NULL OR (highest <= (SELECT min(l.low) FROM hapax.outbox_lanes AS l)) IS NOT TRUE THEN
        RETURN 0;
    END IF;
    EXECUTE format('TRUNCATE hapax.outbox_%s', segment);
    RETURN events;
END
$$;

CREATE VIEW hapax.outbox_parked_readable AS
SELECT p.destination, p.topic, p.key, p.reason, p.attempts,
       CASE WHEN p.replaying THEN 'replaying' ELSE 'parked' END AS state, p.holds_key,
       hapax.as_time(p.at) AS at, hapax.as_time(p.parked_at) AS parked_at,
       hapax.as_text(p.payload) AS payload, p.headers, p.content_type, p.position, p.id
FROM hapax.outbox_parked AS p;

COMMENT ON VIEW hapax.outbox_parked_readable IS 'Events that were put aside, and why.';
