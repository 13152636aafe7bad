-- Who consumes. Messages are kept by the consumer's number, so that a record stays small.
CREATE TABLE hapax.inbox_consumers (
    number        integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant        text NOT NULL,
    name          text NOT NULL,
    -- For how long what became of a message is remembered, in microseconds.
    retention     bigint NOT NULL,
    UNIQUE (tenant, name)
);

CREATE TABLE hapax.inbox (
    received_at   bigint NOT NULL,
    consumer      integer NOT NULL,
    -- 1 done, 2 failed, 3 held for its turn, 4 passed over
    state         smallint NOT NULL,
    -- The first sixteen bytes of the SHA-256 of its payload.
    content       bytea NOT NULL,
    message_id    text COLLATE "C" NOT NULL,
    reason        text,
    PRIMARY KEY (consumer, message_id)
);

-- Records come in order of time and go in order of time: an index of ranges costs an insert nothing.
CREATE INDEX inbox_received_at ON hapax.inbox USING brin (received_at) WITH (pages_per_range = 32);

-- Attempts that failed, for messages that may still succeed.
CREATE TABLE hapax.inbox_attempts (
    consumer      integer NOT NULL,
    message_id    text COLLATE "C" NOT NULL,
    attempts      integer NOT NULL,
    changed_at    bigint NOT NULL,
    PRIMARY KEY (consumer, message_id)
);

-- How far a partition has come, where that is kept here and not by the broker.
CREATE TABLE hapax.inbox_offsets (
    consumer      integer NOT NULL,
    source        text NOT NULL,
    partition     integer NOT NULL,
    -- Grows whenever somebody takes the partition; what its owner writes names it.
    fence         bigint NOT NULL,
    -- The first offset that was not acted on; NULL where none ever was.
    next          bigint,
    PRIMARY KEY (consumer, source, partition)
) WITH (fillfactor = 50);

-- What each key has come to. Kept for good: whoever forgot would take an old version for the newest.
CREATE TABLE hapax.inbox_versions (
    consumer      integer NOT NULL,
    key           text COLLATE "C" NOT NULL,
    version       bigint NOT NULL,
    PRIMARY KEY (consumer, key)
) WITH (fillfactor = 80);

-- Messages that are ahead of their turn.
CREATE TABLE hapax.inbox_held (
    consumer      integer NOT NULL,
    key           text COLLATE "C" NOT NULL,
    version       bigint NOT NULL,
    message_id    text COLLATE "C" NOT NULL,
    business_id   boolean NOT NULL,
    source        text NOT NULL,
    headers       bytea NOT NULL,
    payload       bytea NOT NULL,
    held_at       bigint NOT NULL,
    PRIMARY KEY (consumer, key, version, message_id)
);

-- Messages that could not be acted on, and why.
CREATE TABLE hapax.inbox_dead (
    consumer      integer NOT NULL,
    message_id    text COLLATE "C" NOT NULL,
    content       bytea NOT NULL,
    reason        text NOT NULL,
    detail        text NOT NULL,
    source        text NOT NULL,
    key           text,
    headers       bytea NOT NULL,
    payload       bytea NOT NULL,
    dead_at       bigint NOT NULL,
    PRIMARY KEY (consumer, message_id, content)
);

-- The number of a consumer, which is made known if it is not; NULL if another transaction is about to for
-- longer than `wait` microseconds. Its retention becomes what is given, or, unless that is meant exactly,
-- stays where it is longer.
CREATE FUNCTION hapax.inbox_consumer(tenant text, name text, retention bigint, exactly boolean, wait bigint)
RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    known record;
    lock bigint;
BEGIN
    LOOP
        SELECT c.number, c.retention INTO known FROM hapax.inbox_consumers AS c WHERE c.tenant = tenant AND c.name = name;
        IF FOUND THEN
            IF known.retention < retention OR exactly AND known.retention <> retention THEN
                UPDATE hapax.inbox_consumers AS c SET retention = retention WHERE c.number = known.number;
            END IF;
            RETURN known.number;
        END IF;
        SELECT hapax.lock_number(m.salt, 'consumer', tenant || E'\n' || name) INTO STRICT lock FROM hapax.meta AS m;
        IF NOT hapax.lock_operation(lock, wait) THEN
            RETURN NULL;
        END IF;
        INSERT INTO hapax.inbox_consumers (tenant, name, retention) VALUES (tenant, name, retention) ON CONFLICT DO NOTHING;
    END LOOP;
END
$$;

CREATE FUNCTION hapax.is_delivery(tenant text, consumer text, message_id text, content bytea) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hapax.is_name(tenant, 255) AND hapax.is_name(consumer, 1024) AND hapax.is_name(message_id, 255) AND content IS NOT NULL;

-- Says which part of a delivery is wrong.
CREATE FUNCTION hapax.refuse_delivery(tenant text, consumer text, message_id text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM hapax.refuse_name('the tenant', tenant, 255);
    PERFORM hapax.refuse_name('the scope', consumer, 1024);
    PERFORM hapax.refuse_name('the key', message_id, 255);
    RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'the content is NULL',
        HINT = 'Leave it out, or give an empty value, if it does not tell messages apart.';
END
$$;

CREATE FUNCTION hapax.message_digest(content bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN substr(sha256(content), 1, 16);

CREATE FUNCTION hapax.message_lock(salt bytea, consumer integer, message_id text) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN hapax.lock_number(salt, 'message', consumer || E'\n' || message_id);

-- Refuses a message that another delivery is at.
CREATE FUNCTION hapax.refuse_busy_delivery() RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'HX008', MESSAGE = 'another delivery of this message is being worked on',
        HINT = 'Roll back and leave the message to be delivered again.';
END
$$;

-- A delivery of a message that has a record.
CREATE FUNCTION hapax.later_delivery(number integer, message_id text, digest bytea, kept bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    found_one record;
BEGIN
    SELECT i.content, i.state, i.received_at INTO STRICT found_one FROM hapax.inbox AS i
    WHERE i.consumer = number AND i.message_id = message_id;
    IF found_one.state <> 3 AND found_one.received_at + kept <= hapax.trusted_clock() THEN
        UPDATE hapax.inbox AS i SET received_at = hapax.clock(), state = 1, content = digest, reason = NULL
        WHERE i.consumer = number AND i.message_id = message_id;
        RETURN true;
    ELSIF found_one.content <> digest THEN
        RAISE EXCEPTION USING ERRCODE = 'HX005', MESSAGE = 'the message id was used for other content',
            HINT = 'Put the message aside: one of the two is not what its id says.';
    END IF;
    RETURN false;
END
$$;

CREATE FUNCTION hapax.first_delivery_bytes(
    consumer text, message_id text, content bytea DEFAULT '', tenant text DEFAULT 'messages',
    retention interval DEFAULT '7 days', wait interval DEFAULT '2 seconds') RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET plan_cache_mode = force_generic_plan -- every name is qualified
AS $$
#variable_conflict use_variable
DECLARE
    kept bigint;
    patience bigint;
    digest pg_catalog.bytea;
    salt pg_catalog.bytea;
    number integer;
    lock bigint;
BEGIN
    -- One statement, as in hapax.begin_bytes, if the consumer is known.
    INSERT INTO hapax.inbox (received_at, consumer, state, content, message_id)
    SELECT hapax.clock(), n.number, 1, hapax.message_digest(content), message_id
    FROM (SELECT m.salt, m.is_bound, (SELECT c.number FROM hapax.inbox_consumers AS c
                          WHERE c.tenant OPERATOR(pg_catalog.=) tenant AND c.name OPERATOR(pg_catalog.=) consumer
                            AND c.retention OPERATOR(pg_catalog.>=) hapax.micros(retention)) AS number
          FROM hapax.meta AS m LIMIT 1) AS n
    WHERE CASE WHEN n.number IS NOT NULL AND hapax.is_delivery(tenant, consumer, message_id, content)
                AND hapax.are_spans(retention, '0', wait)
                AND (NOT n.is_bound OR hapax.check_tenant(tenant))
               THEN pg_catalog.pg_try_advisory_xact_lock(hapax.message_lock(n.salt, n.number, message_id)) ELSE false END
    ON CONFLICT ON CONSTRAINT inbox_pkey DO NOTHING;
    IF FOUND THEN
        RETURN true;
    END IF;
    IF hapax.is_delivery(tenant, consumer, message_id, content) IS NOT TRUE THEN
        PERFORM hapax.refuse_delivery(tenant, consumer, message_id);
    END IF;
    kept := hapax.span('the retention', retention, '1 second', '400 days');
    patience := hapax.span('the wait', wait, '0', '60 seconds');
    PERFORM hapax.check_tenant(tenant) FROM hapax.meta AS m WHERE m.is_bound;
    number := hapax.inbox_consumer(tenant, consumer, kept, false, patience);
    IF number IS NULL THEN
        PERFORM hapax.refuse_busy_delivery();
    END IF;
    SELECT m.salt INTO STRICT salt FROM hapax.meta AS m;
    lock := hapax.message_lock(salt, number, message_id);
    IF NOT pg_catalog.pg_try_advisory_xact_lock(lock) THEN
        IF NOT hapax.lock_operation(lock, patience) THEN
            PERFORM hapax.refuse_busy_delivery();
        END IF;
    END IF;
    digest := hapax.message_digest(content);
    INSERT INTO hapax.inbox (received_at, consumer, state, content, message_id)
    VALUES (hapax.clock(), number, 1, digest, message_id) ON CONFLICT ON CONSTRAINT inbox_pkey DO NOTHING;
    IF FOUND THEN
        RETURN true;
    END IF;
    RETURN hapax.later_delivery(number, message_id, digest, kept);
END
$$;

-- Public. True for the first delivery of a message to a consumer, false for every later one. In the
-- transaction of the consumer's own writes; content, if given, must be the same each time.
CREATE FUNCTION hapax.first_delivery(
    consumer text, message_id text, content anycompatible DEFAULT ''::bytea, tenant text DEFAULT 'messages',
    retention interval DEFAULT '7 days', wait interval DEFAULT '2 seconds') RETURNS boolean
LANGUAGE sql
AS $$ SELECT hapax.first_delivery_bytes($1, $2, hapax.as_bytes($3), $4, $5, $6) $$;

-- What hapax.fail_delivery says: the attempts that have failed, and whether the message is no longer tried.
CREATE TYPE hapax.failed_delivery AS (attempts integer, is_over boolean);

-- The headers of a message as they are kept: for each the length and bytes of its name, and of its value.
CREATE FUNCTION hapax.message_headers(headers jsonb) RETURNS bytea
LANGUAGE sql STABLE
RETURN decode('01', 'hex') || coalesce((
    SELECT string_agg(int4send(octet_length(h.name)) || h.name || int4send(octet_length(h.value)) || h.value, ''::bytea)
    FROM (SELECT convert_to(e.key, 'UTF8') AS name, convert_to(e.value, 'UTF8') AS value
          FROM jsonb_each_text(headers) AS e) AS h), ''::bytea);

CREATE FUNCTION hapax.fail_delivery_bytes(
    consumer text, message_id text, content bytea DEFAULT '', reason text DEFAULT '', attempts_max integer DEFAULT 10,
    for_good boolean DEFAULT false, key text DEFAULT NULL, source text DEFAULT '', headers jsonb DEFAULT '{}',
    tenant text DEFAULT 'messages', retention interval DEFAULT '7 days', wait interval DEFAULT '2 seconds')
RETURNS hapax.failed_delivery
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    kept bigint;
    patience bigint;
    number integer;
    digest bytea;
    failed integer;
    word text;
    found_one record;
BEGIN
    IF hapax.is_delivery(tenant, consumer, message_id, content) IS NOT TRUE THEN
        PERFORM hapax.refuse_delivery(tenant, consumer, message_id);
    END IF;
    IF (attempts_max > 0 AND jsonb_typeof(headers) = 'object') IS NOT TRUE OR num_nulls(reason, for_good, source) > 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001',
            MESSAGE = 'an argument of hapax.fail_delivery is NULL, attempts_max is below 1, or the headers are no object',
            HINT = 'Say why it failed, how often it may be tried, and give headers as {"name": "text"}.';
    END IF;
    kept := hapax.span('the retention', retention, '1 second', '400 days');
    patience := hapax.span('the wait', wait, '0', '60 seconds');
    PERFORM hapax.check_tenant(tenant) FROM hapax.meta AS m WHERE m.is_bound;
    number := hapax.inbox_consumer(tenant, consumer, kept, false, patience);
    IF number IS NULL OR NOT hapax.lock_operation(
        (SELECT hapax.message_lock(m.salt, number, message_id) FROM hapax.meta AS m), patience) THEN
        PERFORM hapax.refuse_busy_delivery();
    END IF;
    digest := hapax.message_digest(content);
    SELECT i.content, i.state INTO found_one FROM hapax.inbox AS i
    WHERE i.consumer = number AND i.message_id = message_id
      AND (i.state = 3 OR i.received_at + kept > hapax.trusted_clock());
    IF FOUND AND found_one.content = digest THEN
        -- Somebody else acted on it, or gave it up, meanwhile.
        RETURN (0, true)::hapax.failed_delivery;
    END IF;
    IF FOUND THEN
        failed := 0;
        word := 'id-conflict';
    ELSIF for_good THEN
        failed := 1;
    ELSE
        INSERT INTO hapax.inbox_attempts AS a (consumer, message_id, attempts, changed_at)
        VALUES (number, message_id, 1, hapax.clock())
        ON CONFLICT ON CONSTRAINT inbox_attempts_pkey
        DO UPDATE SET attempts = a.attempts + 1, changed_at = excluded.changed_at
        RETURNING a.attempts INTO failed;
        IF failed < attempts_max THEN
            RETURN (failed, false)::hapax.failed_delivery;
        END IF;
        word := 'poison';
    END IF;
    IF word IS NOT NULL THEN
        INSERT INTO hapax.inbox_dead (consumer, message_id, content, reason, detail, source, key, headers, payload, dead_at)
        VALUES (number, message_id, digest, word,
                CASE word WHEN 'poison' THEN format('it failed %s times: %s', failed, reason)
                          ELSE 'another message with this id and other content was seen' END,
                source, key, hapax.message_headers(headers), content, hapax.clock())
        ON CONFLICT ON CONSTRAINT inbox_dead_pkey DO NOTHING;
    END IF;
    IF word IS DISTINCT FROM 'id-conflict' THEN
        INSERT INTO hapax.inbox (received_at, consumer, state, content, message_id, reason)
        VALUES (hapax.clock(), number, 2, digest, message_id, reason)
        ON CONFLICT ON CONSTRAINT inbox_pkey DO UPDATE
        SET received_at = excluded.received_at, state = 2, content = excluded.content, reason = excluded.reason;
    END IF;
    RETURN (failed, true)::hapax.failed_delivery;
END
$$;

-- Public. Counts a failed attempt to act on a message, in a transaction of its own after the other was rolled
-- back. The last attempt makes it a dead letter; `for_good` ends it at once, without one. From then on
-- hapax.first_delivery says false, and the message can be acknowledged.
CREATE FUNCTION hapax.fail_delivery(
    consumer text, message_id text, content anycompatible DEFAULT ''::bytea, reason text DEFAULT '',
    attempts_max integer DEFAULT 10, for_good boolean DEFAULT false, key text DEFAULT NULL, source text DEFAULT '',
    headers jsonb DEFAULT '{}', tenant text DEFAULT 'messages', retention interval DEFAULT '7 days',
    wait interval DEFAULT '2 seconds') RETURNS hapax.failed_delivery
LANGUAGE sql
AS $$ SELECT hapax.fail_delivery_bytes($1, $2, hapax.as_bytes($3), $4, $5, $6, $7, $8, $9, $10, $11, $12) $$;

-- Forgets up to `most` records that are past their retention; how many. What is held is kept. By the index of
-- ranges, whatever the session thinks of such plans.
CREATE FUNCTION hapax.inbox_forget(most bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan SET enable_bitmapscan = on SET enable_seqscan = on
AS $$
DECLARE
    now bigint := hapax.trusted_clock();
    c record;
    gone bigint;
    total bigint := 0;
BEGIN
    FOR c IN SELECT i.number, now - i.retention AS before FROM hapax.inbox_consumers AS i LOOP
        EXIT WHEN total >= most;
        DELETE FROM hapax.inbox AS i USING (
            SELECT o.message_id FROM hapax.inbox AS o
            WHERE o.received_at <= c.before AND o.consumer = c.number AND o.state <> 3 LIMIT most - total) AS old
        WHERE i.consumer = c.number AND i.message_id = old.message_id AND i.received_at <= c.before;
        GET DIAGNOSTICS gone = ROW_COUNT;
        total := total + gone;
        DELETE FROM hapax.inbox_attempts AS a USING (
            SELECT o.message_id FROM hapax.inbox_attempts AS o
            WHERE o.consumer = c.number AND o.changed_at <= c.before LIMIT greatest(most - total, 0)) AS old
        WHERE a.consumer = c.number AND a.message_id = old.message_id AND a.changed_at <= c.before;
        GET DIAGNOSTICS gone = ROW_COUNT;
        total := total + gone;
    END LOOP;
    RETURN total;
END
$$;

-- Public. Forgets messages that are past their consumer's retention, up to so many; how many.
CREATE FUNCTION hapax.purge_inbox(most bigint DEFAULT 100000) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (most > 0) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = format('the most is %s', coalesce(most::text, 'NULL')),
            HINT = 'Give how many messages may be forgotten at once, one at least.';
    END IF;
    RETURN hapax.inbox_forget(most);
END
$$;

CREATE VIEW hapax.inbox_readable AS
SELECT c.name AS consumer, i.message_id,
       CASE i.state WHEN 1 THEN 'done' WHEN 2 THEN 'failed' WHEN 3 THEN 'held' WHEN 4 THEN 'passed' ELSE i.state::text END AS state,
       i.reason, hapax.as_time(i.received_at) AS received_at, hapax.as_time(i.received_at + c.retention) AS expires_at,
       c.tenant, encode(i.content, 'hex') AS content
FROM hapax.inbox AS i JOIN hapax.inbox_consumers AS c ON c.number = i.consumer;

COMMENT ON VIEW hapax.inbox_readable IS 'What became of each message.';

CREATE VIEW hapax.inbox_dead_readable AS
SELECT c.name AS consumer, d.message_id, d.reason, d.detail, d.source, d.key, hapax.as_text(d.payload) AS payload,
       hapax.as_time(d.dead_at) AS dead_at
FROM hapax.inbox_dead AS d JOIN hapax.inbox_consumers AS c ON c.number = d.consumer;

COMMENT ON VIEW hapax.inbox_dead_readable IS 'Messages that could not be acted on, and why.';
