-- The same promise inside the caller's own transaction, from any language: `hapax.begin`, the
-- caller's writes, `hapax.finish`, COMMIT. The functions below whose comment says "public" are a
-- stable interface; docs/sql.md is their manual.

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
RETURN sha256(outer_mask || sha256(inner_mask || message));

-- A key of thirty-two bytes, padded to a block and masked as HMAC does.
CREATE FUNCTION hapax.mask(secret bytea, with_byte text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN substr(bit_send(('x' || encode(secret, 'hex'))::bit(256) # ('x' || repeat(with_byte, 32))::bit(256)), 5)
       || decode(repeat(with_byte, 32), 'hex');

-- The keyed hash of what makes two requests the same; equal to what the Rust side computes. For whoever has
-- read the salt already.
CREATE FUNCTION hapax.fingerprint_with(salt bytea, tenant text, method text, path text, query text, body bytea) RETURNS bytea
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
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
    secret := hapax.mac(hapax.mask(salt, '36'), hapax.mask(salt, '5c'),
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

CREATE FUNCTION hapax.fingerprint(tenant text, method text, path text, query text, body bytea) RETURNS bytea
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN hapax.fingerprint_with((SELECT m.salt FROM hapax.meta AS m), tenant, method, path, query, body);
END
$$;

-- The stored form of a status and headers: an object of names and texts, or lists of texts.
CREATE FUNCTION hapax.seal_head(status integer, headers jsonb) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    head bytea := decode('0100', 'hex') || int2send(status::smallint);
    lines integer;
    bytes bigint;
    fault text;
    listed bytea;
BEGIN
    IF headers = '{}' THEN
        RETURN head || decode('0000', 'hex');
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
                         OR t.value ~ E'[\\u0001-\\u0008\\u000A-\\u001F\\u007F]' AS forbidden
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
    operation uuid, answer bytea, OUT status integer, OUT headers jsonb, OUT kept bytea)
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    head bytea := substr(answer, 21, greatest(hapax.head_length(answer), 0));
    body bytea := hapax.answer_body(answer);
    at integer := 6;
    lines integer;
    len integer;
    name text;
    value bytea;
    line jsonb;
BEGIN
    IF octet_length(head) > 0 AND get_byte(head, 0) > 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX007', MESSAGE = 'the stored outcome was written by a newer version',
            HINT = 'Run `hapax migrate` of that version.';
    END IF;
    IF (octet_length(head) >= 6 AND get_byte(head, 1) <= 1 AND body IS NOT NULL
        AND substr(sha256(uuid_send(operation) || substr(answer, 17)), 1, 16) = substr(answer, 1, 16)) IS NOT TRUE THEN
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
RETURN CASE
    WHEN state IN (3, 4, 6, 7) AND expires_at <= now THEN
        CASE WHEN tombstone > now - expires_at THEN 'gone' ELSE 'spent' END
    WHEN NOT same THEN 'mismatch'
    WHEN state = 1 OR (state = 2 AND now < until) THEN 'busy'
    WHEN state IN (2, 5) THEN CASE recovery WHEN 1 THEN 'abandoned' WHEN 2 THEN 'in_doubt' WHEN 3 THEN 'in_doubt' END
    WHEN state IN (3, 4) THEN 'replay'
    WHEN state = 6 THEN 'spent'
    WHEN state = 7 THEN 'gone'
END;

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
            tombstone, created_at, changed_at, expires_at, until)
        VALUES (operation, 1, tenant, scope, key, fingerprint, 1, owner, 3, 0, 2,
            tombstone, now, now, now + retention, now + 30000000)
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
        decision := hapax.decide(hapax.trusted_clock(), found_one.state, found_one.until, found_one.expires_at, found_one.tombstone,
            found_one.recovery, substr(found_one.fingerprint, 1, 16) = substr(fingerprint, 1, 16));
        IF decision IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'HX006', MESSAGE = 'the stored record has an unknown state or recovery',
                HINT = 'It was altered outside of Hapax: look at it with `hapax keys show`.';
        END IF;
        IF decision IN ('spent', 'abandoned') THEN
            UPDATE hapax.operations AS o
            SET fence = o.fence + 1, owner = owner, state = 2, doubt = 0, answer = NULL,
                until = now + 30000000, changed_at = now,
                request = CASE WHEN decision = 'abandoned' THEN o.request END,
                created_at = CASE WHEN decision = 'spent' THEN now ELSE o.created_at END,
                expires_at = CASE WHEN decision = 'spent' THEN now + retention ELSE o.expires_at END,
                tombstone = CASE WHEN decision = 'spent' THEN tombstone ELSE o.tombstone END,
                recovery = CASE WHEN decision = 'spent' THEN 3 ELSE o.recovery END,
                fingerprint = CASE WHEN decision = 'spent' THEN fingerprint ELSE o.fingerprint END
            WHERE o.id = operation AND o.format = 1 AND o.fence = found_one.fence AND o.owner = found_one.owner
              AND o.state = found_one.state AND o.until = found_one.until
            RETURNING o.fence, hapax.as_time(o.expires_at) INTO fence, expires_at;
            CONTINUE WHEN NOT FOUND;
            -- In case it is never ended: whoever makes a record run again files it.
            INSERT INTO hapax.unfinished AS u (id, look_at) VALUES (operation, now + 30000000)
            ON CONFLICT (id) DO UPDATE SET look_at = excluded.look_at;
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
            IF found_one.answer IS NULL THEN
                RAISE EXCEPTION USING ERRCODE = 'HX006', MESSAGE = 'the stored outcome is missing',
                    HINT = 'It was removed outside of Hapax: look at it with `hapax keys show`.';
            END IF;
            SELECT x.* INTO outcome FROM hapax.open_outcome(operation, found_one.answer) AS x;
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

CREATE FUNCTION hapax.begin_bytes(
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
            tombstone, created_at, changed_at, expires_at, until)
        VALUES (operation, 1, tenant, scope, key, print, 1, owner, 3, 0, 2,
            late, now, now, now + kept, now + 30000000)
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

-- Ends what this transaction began.
CREATE FUNCTION hapax.end_operation(
    operation uuid, fence bigint, state smallint, status integer, headers jsonb, body bytea) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    now bigint := hapax.clock();
    owner bigint := pg_current_xact_id()::text::bigint;
    answer bytea;
    was smallint;
BEGIN
    IF octet_length(body) > 16777216 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX004', MESSAGE = 'the body is larger than 16 MiB',
            HINT = 'Store it elsewhere, and a reference to it here.';
    END IF;
    answer := hapax.seal_head(status, headers);
    answer := int4send(octet_length(answer)) || answer || body;
    answer := substr(sha256(uuid_send(operation) || answer), 1, 16) || answer;
    UPDATE hapax.operations AS o
    SET state = state, until = 0, doubt = 0, changed_at = now, request = NULL,
        expires_at = greatest(o.expires_at, now + 30000000), answer = answer
    WHERE o.id = operation AND o.format = 1 AND o.fence = fence AND o.owner = owner AND o.state = 2;
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
END
$$;

CREATE FUNCTION hapax.finish_bytes(
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

-- Public. Stores what the operation answered; status 100 to 399. COMMIT makes it so.
CREATE FUNCTION hapax.finish(
    operation uuid, fence bigint, status integer DEFAULT 200, headers jsonb DEFAULT '{}', body anycompatible DEFAULT ''::bytea)
RETURNS void
LANGUAGE sql
AS $$ SELECT hapax.finish_bytes($1, $2, $3, $4, hapax.as_bytes($5)) $$;

CREATE FUNCTION hapax.fail_bytes(
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

-- Public. Stores that the operation failed for good, to be answered alike ever after; status 400 to 599.
-- Roll back the business writes to a savepoint made after hapax.begin first.
CREATE FUNCTION hapax.fail(
    operation uuid, fence bigint, status integer DEFAULT 400, headers jsonb DEFAULT '{}', body anycompatible DEFAULT ''::bytea)
RETURNS void
LANGUAGE sql
AS $$ SELECT hapax.fail_bytes($1, $2, $3, $4, hapax.as_bytes($5)) $$;

-- Public. What is stored about an operation; no row if nothing is.
CREATE FUNCTION hapax.status(tenant text, scope text, key text)
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
           CASE WHEN octet_length(o.answer) >= 24 THEN get_byte(o.answer, 22) * 256 + get_byte(o.answer, 23) END,
           CASE WHEN o.until <> 0 THEN hapax.as_time(o.until) END,
           hapax.as_time(o.created_at), hapax.as_time(o.changed_at), hapax.as_time(o.expires_at)
    FROM hapax.operations AS o
    WHERE o.id = hapax.operation_id($1, $2, $3);
END
$$;
