-- The same promise inside the caller's own transaction, from any language: `hapax.begin`, the
-- caller's writes, `hapax.finish`, COMMIT. The functions below whose comment says "public" are a
-- stable interface; docs/sql.md is their manual. Errors are of class HX:
--   HX001 an argument is not valid          HX002 not begun in this transaction
--   HX003 done already in this transaction  HX004 too large to be stored
--   HX005 the id was used for other content HX006 the stored record is damaged
--   HX007 written by a newer version        HX008 another delivery is being worked on
--
-- Functions that others call set the search path; those that only these call, and are called every time,
-- do not set it again.

-- What is published if, and only if, its transaction commits. Append-only.
CREATE TABLE hapax.outbox (
    position      bigint PRIMARY KEY,
    at            bigint NOT NULL,
    id            uuid NOT NULL,
    format        smallint NOT NULL,
    topic         text NOT NULL,
    key           text NOT NULL,
    content_type  text NOT NULL,
    headers       jsonb NOT NULL,
    payload       bytea NOT NULL
);

-- Not cached: a session that took a position early would write it late.
CREATE SEQUENCE hapax.outbox_positions OWNED BY hapax.outbox.position;

-- Takes the lock of an operation until the end of the transaction. False if another transaction
-- had it for longer than `wait` microseconds; the caller's transaction is usable either way.
CREATE FUNCTION hapax.lock_operation(lock bigint, wait bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    before text;
BEGIN
    IF pg_try_advisory_xact_lock(lock) THEN
        RETURN true;
    END IF;
    IF wait < 1000 THEN
        RETURN false;
    END IF;
    before := current_setting('lock_timeout');
    BEGIN
        PERFORM set_config('lock_timeout', (wait / 1000)::text, true);
        PERFORM pg_advisory_xact_lock(lock);
    EXCEPTION WHEN lock_not_available THEN
        RETURN false;
    END;
    PERFORM set_config('lock_timeout', before, true);
    RETURN true;
END
$$;

-- Says which name is wrong, and why.
CREATE FUNCTION hapax.refuse_name(what text, name text, longest integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (octet_length(name) <= longest AND name ~ '^[ -~]*[!-~][ -~]*$') IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001',
            MESSAGE = format('%s is %s', what, CASE
                WHEN name IS NULL THEN 'NULL'
                WHEN octet_length(name) > longest THEN octet_length(name) || ' bytes long'
                WHEN name ~ '^ *$' THEN 'empty'
                ELSE 'not visible ASCII' END),
            HINT = format('Give 1 to %s visible ASCII characters.', longest);
    END IF;
END
$$;

-- A span as microseconds, within its bounds.
CREATE FUNCTION hapax.span(what text, span interval, shortest interval, longest interval) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (span >= shortest AND span <= longest) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001',
            MESSAGE = format('%s is %s', what, coalesce(span::text, 'NULL')),
            HINT = format('Give an interval from %s to %s.', shortest, longest);
    END IF;
    RETURN (date_part('epoch', span) * 1000000)::bigint;
END
$$;

-- Public. The digest under which an operation is kept.
CREATE FUNCTION hapax.operation_id(tenant text, scope text, key text) RETURNS uuid
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN encode(substr(sha256(
        int4send(octet_length(tenant)) || convert_to(tenant, 'UTF8')
        || int4send(octet_length(scope)) || convert_to(scope, 'UTF8')
        || int4send(octet_length(key)) || convert_to(key, 'UTF8')), 1, 16), 'hex')::uuid;
END
$$;

-- HMAC-SHA-256 with a key that is padded and masked already: see hapax.masks.
CREATE FUNCTION hapax.mac(inner_mask bytea, outer_mask bytea, message bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT pg_catalog.sha256(outer_mask || pg_catalog.sha256(inner_mask || message)) $$;

-- A key of thirty-two bytes, padded to a block and masked as HMAC does.
CREATE FUNCTION hapax.mask(secret bytea, with_byte text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
SELECT pg_catalog.substr(pg_catalog.bit_send(
           ('x' || pg_catalog.encode(secret, 'hex'))::bit(256)
           OPERATOR(pg_catalog.#) ('x' || pg_catalog.repeat(with_byte, 32))::bit(256)), 5)
       || pg_catalog.decode(pg_catalog.repeat(with_byte, 32), 'hex')
$$;

-- The keyed hash of what makes two requests the same; equal to what the Rust side computes.
CREATE FUNCTION hapax.fingerprint(tenant text, method text, path text, query text, body bytea) RETURNS bytea
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    secret bytea;
    i bytea;
    o bytea;
    -- Not textsend, which writes in the encoding of whoever asks.
    m bytea := convert_to(method, 'UTF8');
    p bytea := convert_to(path, 'UTF8');
    q bytea := convert_to(query, 'UTF8');
    h bytea;
    b bytea;
    whole bytea;
BEGIN
    SELECT meta.salt INTO STRICT secret FROM hapax.meta;
    secret := hapax.mac(hapax.mask(secret, '36'), hapax.mask(secret, '5c'),
                        int8send(octet_length(tenant)) || textsend(tenant));
    i := hapax.mask(secret, '36');
    o := hapax.mask(secret, '5c');
    m := hapax.mac(i, o, int8send(6) || 'method'::bytea || int8send(octet_length(m)) || m);
    p := hapax.mac(i, o, int8send(4) || 'path'::bytea || int8send(octet_length(p)) || p);
    q := hapax.mac(i, o, int8send(5) || 'query'::bytea || int8send(octet_length(q)) || q);
    h := hapax.mac(i, o, int8send(7) || 'headers'::bytea || int8send(0));
    b := hapax.mac(i, o, int8send(4) || 'body'::bytea || int8send(octet_length(body)) || body);
    whole := hapax.mac(i, o, int8send(5) || 'whole'::bytea || int8send(160) || m || p || q || h || b);
    RETURN substr(whole, 1, 16) || substr(m, 1, 4) || substr(p, 1, 4) || substr(q, 1, 4)
           || substr(h, 1, 4) || substr(b, 1, 4);
END
$$;

-- The stored form of a status and headers: an object of names and texts, or lists of texts.
CREATE FUNCTION hapax.seal_head(status integer, headers jsonb) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    head bytea := '\x0100'::bytea || int2send(status::smallint);
    lines integer;
    bytes bigint;
    fault text;
    listed bytea;
BEGIN
    IF headers = '{}' THEN
        RETURN head || '\x0000'::bytea;
    END IF;
    IF jsonb_typeof(headers) IS DISTINCT FROM 'object' THEN
        fault := 'headers are not a JSON object';
    ELSE
        SELECT count(*), sum(octet_length(h.name) + octet_length(h.value)),
               -- Each length as the last two of its four bytes: one that needs more is refused below.
               string_agg(substr(int4send(octet_length(h.name)), 3) || h.name
                          || substr(int4send(octet_length(h.value)), 3) || h.value, ''::bytea),
               CASE WHEN bool_or(h.value IS NULL) THEN 'a header that is neither text nor a list of texts'
                    WHEN bool_or(h.forbidden) THEN 'a header that HTTP does not allow' END
        INTO lines, bytes, listed, fault
        FROM (SELECT convert_to(t.name, 'UTF8') AS name, convert_to(t.value, 'UTF8') AS value,
                     t.name !~ '^[!#$%&''*+.^_`|~0-9A-Za-z-]+$'
                         OR t.value ~ '[\u0001-\u0008\u000A-\u001F\u007F]' AS forbidden
              FROM (SELECT e.key AS name, CASE jsonb_typeof(v.value) WHEN 'string' THEN v.value #>> '{}' END AS value
                    FROM jsonb_each(headers) AS e,
                         jsonb_array_elements(CASE jsonb_typeof(e.value) WHEN 'array' THEN e.value
                                              ELSE jsonb_build_array(e.value) END) AS v
                   ) AS t
             ) AS h;
    END IF;
    IF lines > 128 OR bytes > 32768 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX004', MESSAGE = 'there are more than 128 headers, or more than 32 KiB of them',
            HINT = 'Leave out headers that a replay can do without.';
    END IF;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = fault,
            HINT = 'Give headers as {"content-type": "application/json"}; a list of texts repeats a header.';
    END IF;
    RETURN head || int2send(lines::smallint) || coalesce(listed, ''::bytea);
END
$$;

-- Takes a stored outcome apart, or refuses it.
CREATE FUNCTION hapax.open_outcome(
    operation uuid, head bytea, body bytea, digest bytea, OUT status integer, OUT headers jsonb, OUT kept bytea)
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    at integer := 6;
    lines integer;
    len integer;
    name text;
    value bytea;
    line jsonb;
BEGIN
    IF get_byte(head, 0) > 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX007', MESSAGE = 'the stored outcome was written by a newer version',
            HINT = 'Run `hapax migrate` of that version.';
    END IF;
    IF get_byte(head, 1) > 1
        OR substr(sha256(uuid_send(operation) || int4send(octet_length(head)) || head || body), 1, 16) <> digest THEN
        RAISE EXCEPTION USING ERRCODE = 'HX006', MESSAGE = 'the stored outcome is not what was written',
            HINT = 'It was altered outside of Hapax: look at it with `hapax keys show`.';
    END IF;
    status := get_byte(head, 2) * 256 + get_byte(head, 3);
    lines := get_byte(head, 4) * 256 + get_byte(head, 5);
    kept := CASE WHEN get_byte(head, 1) = 0 THEN body END;
    headers := '{}';
    FOR i IN 1 .. lines LOOP
        len := get_byte(head, at) * 256 + get_byte(head, at + 1);
        name := convert_from(substr(head, at + 3, len), 'UTF8');
        at := at + 2 + len;
        len := get_byte(head, at) * 256 + get_byte(head, at + 1);
        value := substr(head, at + 3, len);
        at := at + 2 + len;
        line := to_jsonb(coalesce(hapax.as_text(value), convert_from(value, 'LATIN1')));
        headers := headers || jsonb_build_object(name, CASE
            WHEN NOT headers ? name THEN line
            WHEN jsonb_typeof(headers -> name) = 'array' THEN (headers -> name) || line
            ELSE jsonb_build_array(headers -> name, line) END);
    END LOOP;
END
$$;

-- What an arrival is told about what is stored: the rules of hapax-core's `decide`, for an
-- arrival in a transaction. 'spent' and 'abandoned' ask for a claim over it. `expires_at` of a row
-- that is in flight or in doubt does not count.
CREATE FUNCTION hapax.decide(
    now bigint, state smallint, until bigint, expires_at bigint, tombstone bigint, recovery smallint, same boolean)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
SELECT CASE
    WHEN state IN (3, 4, 6, 7) AND expires_at <= now THEN
        CASE WHEN tombstone > now - expires_at THEN 'gone' ELSE 'spent' END
    WHEN NOT same THEN 'mismatch'
    WHEN state = 1 OR (state = 2 AND now < until) THEN 'busy'
    WHEN state IN (2, 5) THEN CASE recovery WHEN 1 THEN 'abandoned' WHEN 2 THEN 'in_doubt' WHEN 3 THEN 'in_doubt' END
    WHEN state IN (3, 4) THEN 'replay'
    WHEN state = 6 THEN 'spent'
    WHEN state = 7 THEN 'gone'
END
$$;

-- An operation that is not simply new: waits for whoever has it, and decides.
CREATE FUNCTION hapax.begin_contended(
    operation uuid, lock bigint, owner bigint, tenant text, scope text, key text, fingerprint bytea,
    retention bigint, tombstone bigint, wait bigint,
    OUT decision text, OUT fence bigint, OUT status integer, OUT headers jsonb, OUT body bytea,
    OUT retry_after integer, OUT differs text[], OUT expires_at timestamptz)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    now bigint;
    found_one hapax.operations%ROWTYPE;
    outcome record;
BEGIN
    IF NOT hapax.lock_operation(lock, wait) THEN
        decision := 'busy';
        retry_after := 1;
        RETURN;
    END IF;
    FOR round IN 1 .. 16 LOOP
        now := hapax.clock();
        INSERT INTO hapax.operations (
            id, format, tenant, scope, key, fingerprint, fence, owner, recovery, doubt, state,
            retention, tombstone, created_at, changed_at, expires_at, until, filed_at)
        VALUES (operation, 1, tenant, scope, key, fingerprint, 1, owner, 3, 0, 2,
            retention, tombstone, now, now, now + retention, now + 30000000, now + 30000000)
        ON CONFLICT (id) DO NOTHING;
        IF FOUND THEN
            decision := 'execute';
            fence := 1;
            expires_at := hapax.as_time(now + retention);
            RETURN;
        END IF;
        SELECT o.* INTO found_one FROM hapax.operations AS o WHERE o.id = operation;
        CONTINUE WHEN NOT FOUND;
        IF found_one.format <> 1 THEN
            RAISE EXCEPTION USING ERRCODE = 'HX007', MESSAGE = 'the stored record was written by a newer version',
                HINT = 'Run `hapax migrate` of that version.';
        END IF;
        IF found_one.owner = owner AND found_one.state = 2 THEN
            RAISE EXCEPTION USING ERRCODE = 'HX003', MESSAGE = 'the operation was begun already in this transaction',
                HINT = 'Call SELECT * FROM hapax.begin(...) once per operation; (hapax.begin(...)).* calls it once per column.';
        END IF;
        now := hapax.clock();
        decision := hapax.decide(now, found_one.state, found_one.until, found_one.expires_at, found_one.tombstone,
            found_one.recovery, substr(found_one.fingerprint, 1, 16) = substr(fingerprint, 1, 16));
        IF decision IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'HX006', MESSAGE = 'the stored record has an unknown state or recovery',
                HINT = 'It was altered outside of Hapax: look at it with `hapax keys show`.';
        END IF;
        IF decision IN ('spent', 'abandoned') THEN
            UPDATE hapax.operations AS o
            SET fence = o.fence + 1, owner = owner, state = 2, doubt = 0, bucket = NULL, response = NULL,
                until = now + 30000000, filed_at = now + 30000000, changed_at = now,
                request = CASE WHEN decision = 'abandoned' THEN o.request END,
                created_at = CASE WHEN decision = 'spent' THEN now ELSE o.created_at END,
                expires_at = CASE WHEN decision = 'spent' THEN now + retention ELSE o.expires_at END,
                retention = CASE WHEN decision = 'spent' THEN retention ELSE o.retention END,
                tombstone = CASE WHEN decision = 'spent' THEN tombstone ELSE o.tombstone END,
                recovery = CASE WHEN decision = 'spent' THEN 3 ELSE o.recovery END,
                fingerprint = CASE WHEN decision = 'spent' THEN fingerprint ELSE o.fingerprint END
            WHERE o.id = operation AND o.format = 1 AND o.fence = found_one.fence AND o.owner = found_one.owner
              AND o.state = found_one.state AND o.until = found_one.until
            RETURNING o.fence, hapax.as_time(o.expires_at) INTO fence, expires_at;
            CONTINUE WHEN NOT FOUND;
            decision := 'execute';
            RETURN;
        END IF;
        fence := found_one.fence;
        expires_at := hapax.as_time(found_one.expires_at);
        IF decision = 'busy' THEN
            retry_after := greatest(1, ceil((found_one.until - now) / 1000000.0))::integer;
        ELSIF decision = 'mismatch' THEN
            differs := array(
                SELECT part FROM unnest(ARRAY['method', 'path', 'query', 'headers', 'body']) WITH ORDINALITY AS p(part, n)
                WHERE substr(found_one.fingerprint, 13 + 4 * n::integer, 4) <> substr(fingerprint, 13 + 4 * n::integer, 4)
                ORDER BY n);
        ELSIF decision = 'replay' THEN
            SELECT x.* INTO outcome
            FROM hapax.responses AS r, hapax.open_outcome(operation, r.head, r.body, r.digest) AS x
            WHERE r.bucket = found_one.bucket AND r.id = found_one.response;
            IF NOT FOUND THEN
                RAISE EXCEPTION USING ERRCODE = 'HX006', MESSAGE = 'the stored outcome is missing',
                    HINT = 'It was removed outside of Hapax: look at it with `hapax keys show`.';
            END IF;
            status := outcome.status;
            headers := outcome.headers;
            body := outcome.kept;
        END IF;
        RETURN;
    END LOOP;
    RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'other writers kept changing the operation',
        HINT = 'Roll back and run the whole transaction again.';
END
$$;

-- Public. Begins an operation in the caller's transaction, and says what to do:
--   execute   run it, then call hapax.finish or hapax.fail before COMMIT
--   replay    answer with status, headers and body (NULL if it was too large to keep)
--   busy      somebody is at it: answer 409, come back after `retry_after` seconds
--   mismatch  the key was used for another request, which differs in `differs`: answer 422
--   in_doubt  nobody knows whether it happened: answer 409; see `hapax keys explain`
--   gone      the key was used, and its outcome is past retention: answer 410
-- The transaction stays usable whatever the decision.
CREATE FUNCTION hapax.begin(
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
    name bytea;
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
    name := substr(sha256(
        int4send(octet_length(tenant)) || textsend(tenant)
        || int4send(octet_length(scope)) || textsend(scope)
        || int4send(octet_length(key)) || textsend(key)), 1, 16);
    operation := encode(name, 'hex')::uuid;
    lock := ('x' || encode(substr(name, 1, 8), 'hex'))::bit(64)::bigint;
    owner := pg_current_xact_id()::text::bigint;
    print := hapax.fingerprint(tenant, method, path, query, request);
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

-- Ends what this transaction began.
CREATE FUNCTION hapax.end_operation(
    operation uuid, fence bigint, state smallint, status integer, headers jsonb, body bytea) RETURNS void
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    now bigint := hapax.clock();
    owner bigint := pg_current_xact_id()::text::bigint;
    head bytea;
    bucket integer;
    response bigint;
    was smallint;
BEGIN
    IF octet_length(body) > 16777216 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX004', MESSAGE = 'the body is larger than 16 MiB',
            HINT = 'Store it elsewhere, and a reference to it here.';
    END IF;
    head := hapax.seal_head(status, headers);
    UPDATE hapax.operations AS o
    SET state = state, until = 0, doubt = 0, changed_at = now, request = NULL,
        expires_at = greatest(o.expires_at, now + 30000000),
        bucket = (greatest(o.expires_at, now + 30000000) / 21600000000)::integer,
        response = nextval('hapax.response_ids')
    WHERE o.id = operation AND o.format = 1 AND o.fence = fence AND o.owner = owner AND o.state = 2
    RETURNING o.bucket, o.response INTO bucket, response;
    IF NOT FOUND THEN
        SELECT o.state INTO was FROM hapax.operations AS o
        WHERE o.id = operation AND o.fence = fence AND o.owner = owner;
        IF FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'HX003', MESSAGE = 'the operation was ended already in this transaction',
                HINT = 'Call hapax.finish or hapax.fail once per operation.';
        END IF;
        RAISE EXCEPTION USING ERRCODE = 'HX002', MESSAGE = 'the operation was not begun in this transaction under this fence',
            HINT = 'Call hapax.begin in the same transaction, before any savepoint you roll back to, and pass on its operation and fence.';
    END IF;
    IF to_regclass('hapax.responses_' || bucket) IS NULL THEN
        BEGIN
            PERFORM hapax.create_bucket(bucket);
        EXCEPTION WHEN wrong_object_type OR duplicate_table THEN
            -- Another transaction made it, too late for the caller's snapshot to show it.
            NULL;
        END;
    END IF;
    INSERT INTO hapax.responses (bucket, id, head, body, digest)
    VALUES (bucket, response, head, body,
        substr(sha256(uuid_send(operation) || int4send(octet_length(head)) || head || body), 1, 16));
END
$$;

-- Public. Stores what the operation answered; status 100 to 399. COMMIT makes it so.
CREATE FUNCTION hapax.finish(
    operation uuid, fence bigint, status integer DEFAULT 200, headers jsonb DEFAULT '{}', body bytea DEFAULT '')
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF num_nulls(operation, fence, headers, body) > 0 OR (status BETWEEN 100 AND 399) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'an argument of hapax.finish is NULL, or the status is not 100 to 399',
            HINT = 'Call hapax.fail for an answer of 400 or more.';
    END IF;
    PERFORM hapax.end_operation(operation, fence, 3::smallint, status, headers, body);
END
$$;

-- Public. Stores that the operation failed for good, to be answered alike ever after; status 400 to 599.
-- Roll back the business writes to a savepoint made after hapax.begin first.
CREATE FUNCTION hapax.fail(
    operation uuid, fence bigint, status integer DEFAULT 400, headers jsonb DEFAULT '{}', body bytea DEFAULT '')
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF num_nulls(operation, fence, headers, body) > 0 OR (status BETWEEN 400 AND 599) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'an argument of hapax.fail is NULL, or the status is not 400 to 599',
            HINT = 'Call hapax.finish for an answer below 400; roll back instead if a retry may succeed.';
    END IF;
    PERFORM hapax.end_operation(operation, fence, 4::smallint, status, headers, body);
END
$$;

-- Public. True for the first delivery of a message to a consumer, false for every later one. In the
-- transaction of the consumer's own writes; content, if given, must be the same each time.
CREATE FUNCTION hapax.first_delivery(
    consumer text, message_id text, content bytea DEFAULT '', tenant text DEFAULT 'messages',
    retention interval DEFAULT '7 days', wait interval DEFAULT '2 seconds') RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    begun record;
BEGIN
    SELECT * INTO begun FROM hapax.begin(tenant, consumer, message_id, content, retention => retention, wait => wait);
    CASE begun.decision
        WHEN 'execute' THEN
            PERFORM hapax.end_operation(begun.operation, begun.fence, 3::smallint, 204, '{}', '');
            RETURN true;
        WHEN 'replay', 'gone' THEN
            RETURN false;
        WHEN 'mismatch' THEN
            RAISE EXCEPTION USING ERRCODE = 'HX005', MESSAGE = 'the message id was used for other content',
                HINT = 'Put the message aside: one of the two is not what its id says.';
        WHEN 'busy', 'in_doubt' THEN
            RAISE EXCEPTION USING ERRCODE = 'HX008', MESSAGE = 'another delivery of this message is being worked on',
                HINT = 'Roll back and leave the message to be delivered again.';
    END CASE;
END
$$;

-- Public. Says that something happened, to be published if this transaction commits; returns the
-- event's id. Events of one topic and key are published in the order their transactions committed.
CREATE FUNCTION hapax.emit(
    topic text, key text, payload bytea, headers jsonb DEFAULT '{}', content_type text DEFAULT 'application/json',
    id uuid DEFAULT gen_random_uuid()) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
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
    IF headers <> '{}' AND (jsonb_typeof(headers) <> 'object' OR (
        SELECT count(*) > 64 OR bool_or(jsonb_typeof(h.value) <> 'string' OR octet_length(h.key) NOT BETWEEN 1 AND 255)
        FROM jsonb_each(CASE jsonb_typeof(headers) WHEN 'object' THEN headers END) AS h)) THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'headers are not a JSON object of at most 64 names and texts',
            HINT = 'Give headers as {"name": "text"}; a name has 1 to 255 bytes.';
    END IF;
    -- Everybody who holds a position and has not committed holds this lock, and nobody else does.
    PERFORM pg_advisory_xact_lock_shared(1212239960, 0);
    -- Before the position is taken: of two transactions with the same key, the later to commit has the
    -- higher position.
    PERFORM pg_advisory_xact_lock(hashtextextended(topic || E'\n' || key, 1212239960));
    INSERT INTO hapax.outbox (position, at, id, format, topic, key, content_type, headers, payload)
    VALUES (nextval('hapax.outbox_positions'), hapax.clock(), id, 1, topic, key, content_type, headers, payload);
    RETURN id;
END
$$;

-- Public. What is stored about an operation; no row if nothing is.
CREATE FUNCTION hapax.status(tenant text, scope text, key text)
RETURNS TABLE (state text, fence bigint, status integer, until timestamptz,
               created_at timestamptz, changed_at timestamptz, expires_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT o.state, o.fence, o.status, o.until, o.created_at, o.changed_at, o.expires_at
    FROM hapax.operations_readable AS o
    WHERE o.id = hapax.operation_id($1, $2, $3);
END
$$;

REVOKE ALL ON FUNCTION
    hapax.lock_operation, hapax.refuse_name, hapax.span, hapax.operation_id, hapax.mac, hapax.mask, hapax.fingerprint,
    hapax.seal_head, hapax.open_outcome, hapax.decide, hapax.begin_contended, hapax.begin, hapax.end_operation,
    hapax.finish, hapax.fail, hapax.first_delivery, hapax.emit, hapax.status, hapax.create_bucket
FROM PUBLIC;

-- Public. Lets a role call the public functions, and read no table.
CREATE FUNCTION hapax.grant_functions(role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF role IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'the role is NULL',
            HINT = 'Name a role that exists: see CREATE ROLE.';
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA hapax TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION hapax.begin, hapax.finish, hapax.fail, hapax.first_delivery, '
                   'hapax.emit, hapax.status, hapax.operation_id TO %s', role);
END
$$;

REVOKE ALL ON FUNCTION hapax.grant_functions FROM PUBLIC;

UPDATE hapax.meta SET version = 3;
