-- The rest of migration 8, in the same transaction.
--
-- What callers name, and what it runs with the rights of the owner. A function keeps its grants when it is
-- renamed; what takes its name is granted to the same roles, at the end.

ALTER FUNCTION hapax.begin(text, text, text, bytea, text, text, text, interval, interval, interval) RENAME TO begin_bytes;
ALTER FUNCTION hapax.finish(uuid, bigint, integer, jsonb, bytea) RENAME TO finish_bytes;
ALTER FUNCTION hapax.fail(uuid, bigint, integer, jsonb, bytea) RENAME TO fail_bytes;
ALTER FUNCTION hapax.emit(text, text, bytea, jsonb, text, uuid) RENAME TO emit_bytes;
ALTER FUNCTION hapax.first_delivery(text, text, bytea, text, interval, interval) RENAME TO first_delivery_bytes;

CREATE OR REPLACE FUNCTION hapax.begin_bytes(
    tenant text, scope text, key text,
    request bytea DEFAULT '', method text DEFAULT '', path text DEFAULT '', query text DEFAULT '',
    retention interval DEFAULT '24 hours', tombstone interval DEFAULT '0', wait interval DEFAULT '2 seconds',
    OUT decision text, OUT operation uuid, OUT fence bigint, OUT status integer, OUT headers jsonb, OUT body bytea,
    OUT retry_after integer, OUT differs text[], OUT expires_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    now bigint;
    name text;
    salt bytea;
    bound boolean;
    lock bigint;
    owner bigint;
    kept bigint := 86400000000;
    late bigint := 0;
    patience bigint := 2000000;
    print bytea;
BEGIN
    IF (octet_length(tenant) <= 255 AND octet_length(scope) <= 1024 AND octet_length(key) <= 255
        AND tenant ~ '^[ -~]*[!-~][ -~]*$' AND scope ~ '^[ -~]*[!-~][ -~]*$' AND key ~ '^[ -~]*[!-~][ -~]*$') IS NOT TRUE THEN
        PERFORM hapax.refuse_name('the tenant', tenant, 255);
        PERFORM hapax.refuse_name('the scope', scope, 1024);
        PERFORM hapax.refuse_name('the key', key, 255);
    END IF;
    IF num_nulls(request, method, path, query) > 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'a part of the request is NULL',
            HINT = 'Leave a part out, or give an empty value, if it does not tell requests apart.';
    END IF;
    IF (retention = '24 hours' AND tombstone = '0' AND wait = '2 seconds') IS NOT TRUE THEN
        kept := hapax.span('the retention', retention, '1 second', '400 days');
        late := hapax.span('the tombstone', tombstone, '0', '400 days');
        patience := hapax.span('the wait', wait, '0', '60 seconds');
    END IF;
    SELECT m.salt, EXISTS (SELECT FROM hapax.role_tenants) INTO STRICT salt, bound FROM hapax.meta AS m;
    IF bound THEN
        PERFORM hapax.check_tenant(tenant);
    END IF;
    name := encode(substr(sha256(
        int4send(octet_length(tenant)) || textsend(tenant)
        || int4send(octet_length(scope)) || textsend(scope)
        || int4send(octet_length(key)) || textsend(key)), 1, 16), 'hex');
    operation := name::uuid;
    lock := hapax.lock_number(salt, 'operation', name);
    owner := pg_current_xact_id()::text::bigint;
    print := hapax.fingerprint_with(salt, tenant, method, path, query, request);
    now := hapax.clock();
    IF pg_try_advisory_xact_lock(lock) THEN
        INSERT INTO hapax.operations (
            id, format, tenant, scope, key, fingerprint, fence, owner, recovery, doubt, state,
            retention, tombstone, created_at, changed_at, expires_at, until, filed_at)
        VALUES (operation, 1, tenant, scope, key, print, 1, owner, 3, 0, 2,
            kept, late, now, now, now + kept, now + 30000000, now + 30000000)
        ON CONFLICT (id) DO NOTHING;
        IF FOUND THEN
            decision := 'execute';
            fence := 1;
            expires_at := timestamptz 'epoch' + (now + kept) * interval '1 microsecond';
            RETURN;
        END IF;
    END IF;
    SELECT c.* INTO decision, fence, status, headers, body, retry_after, differs, expires_at
    FROM hapax.begin_contended(operation, lock, owner, tenant, scope, key, print, kept, late, patience) AS c;
END
$$;

-- Public: see migration 3, and docs/sql.md.
CREATE FUNCTION hapax.begin(
    tenant text, scope text, key text,
    request anycompatible DEFAULT ''::bytea, method text DEFAULT '', path text DEFAULT '', query text DEFAULT '',
    retention interval DEFAULT '24 hours', tombstone interval DEFAULT '0', wait interval DEFAULT '2 seconds',
    OUT decision text, OUT operation uuid, OUT fence bigint, OUT status integer, OUT headers jsonb, OUT body bytea,
    OUT retry_after integer, OUT differs text[], OUT expires_at timestamptz)
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
BEGIN
    SELECT b.decision, b.operation, b.fence, b.status, b.headers, b.body, b.retry_after, b.differs, b.expires_at
    INTO decision, operation, fence, status, headers, body, retry_after, differs, expires_at
    FROM hapax.begin_bytes(tenant, scope, key, hapax.as_bytes(request), method, path, query, retention, tombstone, wait) AS b;
END
$$;

-- Public: see migration 3, and docs/sql.md.
CREATE FUNCTION hapax.finish(
    operation uuid, fence bigint, status integer DEFAULT 200, headers jsonb DEFAULT '{}', body anycompatible DEFAULT ''::bytea)
RETURNS void
LANGUAGE sql
AS $$ SELECT hapax.finish_bytes($1, $2, $3, $4, hapax.as_bytes($5)) $$;

-- Public: see migration 3, and docs/sql.md.
CREATE FUNCTION hapax.fail(
    operation uuid, fence bigint, status integer DEFAULT 400, headers jsonb DEFAULT '{}', body anycompatible DEFAULT ''::bytea)
RETURNS void
LANGUAGE sql
AS $$ SELECT hapax.fail_bytes($1, $2, $3, $4, hapax.as_bytes($5)) $$;

-- Older events of a key may be waiting for their commit under a lock of another number.
ALTER TABLE hapax.meta ADD COLUMN old_event_locks_until bigint NOT NULL DEFAULT 0;

-- Waits for whoever has emitted and not committed.
LOCK TABLE hapax.outbox IN ACCESS EXCLUSIVE MODE;
UPDATE hapax.meta SET old_event_locks_until = hapax.clock() + 3600000000
WHERE pg_sequence_last_value('hapax.outbox_positions') IS NOT NULL;

CREATE OR REPLACE FUNCTION hapax.emit_bytes(
    topic text, key text, payload bytea, headers jsonb DEFAULT '{}', content_type text DEFAULT 'application/json',
    id uuid DEFAULT gen_random_uuid()) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    name text := topic || E'\n' || key;
    salt bytea;
    old_until bigint;
    segment integer;
    position bigint;
    locked boolean;
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
    IF headers <> '{}' THEN
        PERFORM hapax.check_event_headers(headers);
    END IF;
    SELECT m.salt, m.old_event_locks_until INTO STRICT salt, old_until FROM hapax.meta AS m;
    -- Of two transactions with the same key, the later to commit has the higher position. An
    -- assignment, here and below: PERFORM would run a statement for it.
    locked := pg_advisory_xact_lock(hapax.lock_number(salt, 'event', name)) IS NULL;
    IF hapax.clock() < old_until THEN
        locked := pg_advisory_xact_lock(hashtextextended(name, 1212239960)) IS NULL;
    END IF;
    segment := coalesce(pg_sequence_last_value('hapax.outbox_positions'), 0) >> 16;
    LOOP
        -- The announcement: a lock that only who may write the log can take, or wait for.
        CASE segment & 15
            WHEN 0 THEN LOCK TABLE hapax.outbox_0 IN ROW EXCLUSIVE MODE;
            WHEN 1 THEN LOCK TABLE hapax.outbox_1 IN ROW EXCLUSIVE MODE;
            WHEN 2 THEN LOCK TABLE hapax.outbox_2 IN ROW EXCLUSIVE MODE;
            WHEN 3 THEN LOCK TABLE hapax.outbox_3 IN ROW EXCLUSIVE MODE;
            WHEN 4 THEN LOCK TABLE hapax.outbox_4 IN ROW EXCLUSIVE MODE;
            WHEN 5 THEN LOCK TABLE hapax.outbox_5 IN ROW EXCLUSIVE MODE;
            WHEN 6 THEN LOCK TABLE hapax.outbox_6 IN ROW EXCLUSIVE MODE;
            WHEN 7 THEN LOCK TABLE hapax.outbox_7 IN ROW EXCLUSIVE MODE;
            WHEN 8 THEN LOCK TABLE hapax.outbox_8 IN ROW EXCLUSIVE MODE;
            WHEN 9 THEN LOCK TABLE hapax.outbox_9 IN ROW EXCLUSIVE MODE;
            WHEN 10 THEN LOCK TABLE hapax.outbox_10 IN ROW EXCLUSIVE MODE;
            WHEN 11 THEN LOCK TABLE hapax.outbox_11 IN ROW EXCLUSIVE MODE;
            WHEN 12 THEN LOCK TABLE hapax.outbox_12 IN ROW EXCLUSIVE MODE;
            WHEN 13 THEN LOCK TABLE hapax.outbox_13 IN ROW EXCLUSIVE MODE;
            WHEN 14 THEN LOCK TABLE hapax.outbox_14 IN ROW EXCLUSIVE MODE;
            WHEN 15 THEN LOCK TABLE hapax.outbox_15 IN ROW EXCLUSIVE MODE;
        END CASE;
        -- Relays of earlier versions look for this one. Never waited for: everybody could take it.
        locked := pg_try_advisory_xact_lock_shared(1212239960, segment);
        position := nextval('hapax.outbox_positions');
        -- The one in a segment for which this transaction is not announced is given up.
        EXIT WHEN position >> 16 = segment;
        segment := position >> 16;
    END LOOP;
    INSERT INTO hapax.outbox (position, at, id, segment, lane, format, topic, key, content_type, headers, payload)
    VALUES (position, hapax.clock(), id, segment & 15, get_byte(sha256(convert_to(name, 'UTF8')), 0) & 63, 1,
            topic, key, content_type, headers, payload);
    RETURN id;
END
$$;

-- Public: see migration 6, and docs/sql.md.
CREATE FUNCTION hapax.emit(
    topic text, key text, payload anycompatible, headers jsonb DEFAULT '{}', content_type text DEFAULT 'application/json',
    id uuid DEFAULT gen_random_uuid()) RETURNS uuid
LANGUAGE sql
AS $$ SELECT hapax.emit_bytes($1, $2, hapax.as_bytes($3), $4, $5, $6) $$;

CREATE OR REPLACE FUNCTION hapax.inbox_consumer(tenant text, name text, retention bigint, exactly boolean, wait bigint)
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

CREATE OR REPLACE FUNCTION hapax.first_delivery_bytes(
    consumer text, message_id text, content bytea DEFAULT '', tenant text DEFAULT 'messages',
    retention interval DEFAULT '7 days', wait interval DEFAULT '2 seconds') RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    kept bigint := hapax.span('the retention', retention, '1 second', '400 days');
    patience bigint := hapax.span('the wait', wait, '0', '60 seconds');
    digest bytea := substr(sha256(content), 1, 16);
    salt bytea;
    bound boolean;
    number integer;
    found_one record;
BEGIN
    PERFORM hapax.refuse_name('the tenant', tenant, 255);
    PERFORM hapax.refuse_name('the scope', consumer, 1024);
    PERFORM hapax.refuse_name('the key', message_id, 255);
    IF content IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'the content is NULL',
            HINT = 'Leave it out, or give an empty value, if it does not tell messages apart.';
    END IF;
    SELECT m.salt, EXISTS (SELECT FROM hapax.role_tenants) INTO STRICT salt, bound FROM hapax.meta AS m;
    IF bound THEN
        PERFORM hapax.check_tenant(tenant);
    END IF;
    number := hapax.inbox_consumer(tenant, consumer, kept, false, patience);
    IF number IS NULL
        OR NOT hapax.lock_operation(hapax.lock_number(salt, 'message', number || E'\n' || message_id), patience) THEN
        RAISE EXCEPTION USING ERRCODE = 'HX008', MESSAGE = 'another delivery of this message is being worked on',
            HINT = 'Roll back and leave the message to be delivered again.';
    END IF;
    -- Deliveries were operations once, and effects outside of the database still are.
    SELECT o.state, o.fingerprint INTO found_one FROM hapax.operations AS o
    WHERE o.id = hapax.operation_id(tenant, consumer, message_id)
      AND (o.state NOT IN (3, 4) OR o.expires_at > hapax.clock()) AND o.state NOT IN (6, 7);
    IF FOUND THEN
        IF substr(found_one.fingerprint, 1, 16)
            <> substr(hapax.fingerprint_with(salt, tenant, '', '', '', content), 1, 16) THEN
            RAISE EXCEPTION USING ERRCODE = 'HX005', MESSAGE = 'the message id was used for other content',
                HINT = 'Put the message aside: one of the two is not what its id says.';
        ELSIF found_one.state NOT IN (3, 4) THEN
            RAISE EXCEPTION USING ERRCODE = 'HX008', MESSAGE = 'another delivery of this message is being worked on',
                HINT = 'Roll back and leave the message to be delivered again.';
        END IF;
        RETURN false;
    END IF;
    INSERT INTO hapax.inbox (received_at, consumer, state, content, message_id)
    VALUES (hapax.clock(), number, 1, digest, message_id) ON CONFLICT ON CONSTRAINT inbox_pkey DO NOTHING;
    IF FOUND THEN
        RETURN true;
    END IF;
    SELECT i.content, i.state, i.received_at INTO STRICT found_one FROM hapax.inbox AS i
    WHERE i.consumer = number AND i.message_id = message_id;
    IF found_one.state <> 3 AND found_one.received_at + kept <= hapax.clock() THEN
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

-- Public: see migration 7, and docs/sql.md.
CREATE FUNCTION hapax.first_delivery(
    consumer text, message_id text, content anycompatible DEFAULT ''::bytea, tenant text DEFAULT 'messages',
    retention interval DEFAULT '7 days', wait interval DEFAULT '2 seconds') RETURNS boolean
LANGUAGE sql
AS $$ SELECT hapax.first_delivery_bytes($1, $2, hapax.as_bytes($3), $4, $5, $6) $$;

-- By the index of ranges, whatever the session thinks of such plans.
ALTER FUNCTION hapax.inbox_forget(bigint)
SET plan_cache_mode = force_custom_plan SET enable_bitmapscan = on SET enable_seqscan = on;

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

-- Public. What is stored about an operation; no row if nothing is.
CREATE OR REPLACE FUNCTION hapax.status(tenant text, scope text, key text)
RETURNS TABLE (state text, fence bigint, status integer, until timestamptz,
               created_at timestamptz, changed_at timestamptz, expires_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF EXISTS (SELECT FROM hapax.role_tenants) THEN
        PERFORM hapax.check_tenant($1);
    END IF;
    RETURN QUERY
    SELECT (ARRAY['pending', 'running', 'completed', 'failed', 'in_doubt', 'released', 'buried'])[o.state], o.fence,
           CASE WHEN octet_length(r.head) >= 4 THEN get_byte(r.head, 2) * 256 + get_byte(r.head, 3) END,
           CASE WHEN o.until <> 0 THEN hapax.as_time(o.until) END,
           hapax.as_time(o.created_at), hapax.as_time(o.changed_at), hapax.as_time(o.expires_at)
    FROM hapax.operations AS o
    LEFT JOIN hapax.responses AS r ON r.bucket = o.bucket AND r.id = o.response
    WHERE o.id = hapax.operation_id($1, $2, $3);
END
$$;

-- Public. Lets a role call the public functions, and read no table.
CREATE OR REPLACE FUNCTION hapax.grant_functions(role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF role IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'the role is NULL',
            HINT = 'Name a role that exists: see CREATE ROLE.';
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA hapax TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION hapax.begin, hapax.begin_bytes, hapax.finish, hapax.finish_bytes, '
                   'hapax.fail, hapax.fail_bytes, hapax.first_delivery, hapax.first_delivery_bytes, '
                   'hapax.emit, hapax.emit_bytes, hapax.status, hapax.operation_id TO %s', role);
END
$$;

REVOKE ALL ON FUNCTION
    hapax.begin, hapax.finish, hapax.fail, hapax.first_delivery, hapax.emit, hapax.fingerprint_with, hapax.check_tenant,
    hapax.bind_tenants, hapax.unbind_tenants, hapax.purge_inbox
FROM PUBLIC;

-- Whoever could call a function by its old name can call what has it now.
DO $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT f.name, a.grantee FROM (VALUES ('begin'), ('finish'), ('fail'), ('first_delivery'), ('emit')) AS f(name)
        JOIN pg_catalog.pg_proc AS p ON p.pronamespace = 'hapax'::regnamespace AND p.proname = f.name || '_bytes'
        CROSS JOIN LATERAL aclexplode(p.proacl) AS a
        WHERE a.privilege_type = 'EXECUTE' AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION hapax.%I TO %s', granted.name,
                       CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE granted.grantee::regrole::text END);
    END LOOP;
END
$$;

-- Older code names none of what was renamed but hapax.emit, which is there.
UPDATE hapax.meta SET version = 8;
