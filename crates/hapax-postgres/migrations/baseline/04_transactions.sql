-- The same promise inside the caller's own transaction, from any language: `hapax.begin`, the
-- caller's writes, `hapax.finish`, COMMIT. The functions below whose comment says "public" are a
-- stable interface; docs/sql.md is their manual.

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

-- What the functions below ask and compute, bound to its names: they run with the rights of the owner under whatever
-- path their caller has, so nothing in them may be looked up by it. A path of their own would do too, and costs
-- a lean call a seventh more.

CREATE FUNCTION hapax.is_name(name text, longest integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(name) <= longest AND name ~ '^[ -~]*[!-~][ -~]*$';

CREATE FUNCTION hapax.are_usual(retention interval, tombstone interval, wait interval) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN retention = '24 hours' AND tombstone = '0' AND wait = '2 seconds';

CREATE FUNCTION hapax.later(instant bigint, span bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN instant + span;

CREATE FUNCTION hapax.at_least(instant bigint, span bigint, until bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN greatest(until, instant + span);

-- How long ago the transaction began, in microseconds.
CREATE FUNCTION hapax.transaction_age() RETURNS bigint
LANGUAGE sql VOLATILE
RETURN (date_part('epoch', clock_timestamp() - now()) * 1000000)::bigint;

CREATE FUNCTION hapax.earlier(instant bigint, span bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN instant - span;

CREATE FUNCTION hapax.is_status(status integer, lowest integer, highest integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN status BETWEEN lowest AND highest;

CREATE FUNCTION hapax.is_bodily(headers jsonb, body bytea) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN headers IS NOT NULL AND octet_length(body) <= 16777216;

CREATE FUNCTION hapax.has_headers(headers jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN headers <> '{}';

CREATE FUNCTION hapax.plain_head(status integer) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN decode('0100', 'hex') || int2send(status::smallint) || decode('0000', 'hex');

-- The stored form of an outcome, without the digest in front.
CREATE FUNCTION hapax.unsigned_answer(head bytea, body bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN int4send(octet_length(head)) || head || body;

CREATE FUNCTION hapax.signed_answer(operation uuid, unsigned bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN substr(sha256(uuid_send(operation) || unsigned), 1, 16) || unsigned;

-- Whether this is the row of an attempt that is at work.
CREATE FUNCTION hapax.is_attempt(
    format smallint, state smallint, row_fence bigint, row_owner bigint, fence bigint, owner bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN format = 1 AND state = 2 AND row_fence = fence AND row_owner = owner;

-- Whether what is stored for an answer fits; says what is wrong if it does not.
CREATE FUNCTION hapax.refuse_answer(function text, status integer, lowest integer, highest integer, headers jsonb, body bytea)
RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF octet_length(body) > 16777216 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX004', MESSAGE = 'the body is larger than 16 MiB',
            HINT = 'Store it elsewhere, and a reference to it here.';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'HX001',
        MESSAGE = format('an argument of hapax.%s is NULL, or the status is not %s to %s', function, lowest, highest),
        HINT = CASE function
            WHEN 'finish' THEN 'Call hapax.fail for an answer of 400 or more.'
            WHEN 'fail' THEN 'Call hapax.finish for an answer below 400; roll back instead if a retry may succeed.'
            ELSE 'Give the status of an answer, headers as an object and a body.' END;
END
$$;

-- Says which part of an operation's name or request is wrong.
CREATE FUNCTION hapax.refuse_operation(
    tenant text, scope text, key text, request bytea, method text, path text, query text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM hapax.refuse_name('the tenant', tenant, 255);
    PERFORM hapax.refuse_name('the scope', scope, 1024);
    PERFORM hapax.refuse_name('the key', key, 255);
    IF num_nulls(request, method, path, query) > 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'a part of the request is NULL',
            HINT = 'Leave a part out, or give an empty value, if it does not tell requests apart.';
    END IF;
END
$$;

CREATE FUNCTION hapax.are_parts(
    tenant text, scope text, key text, request bytea, method text, path text, query text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hapax.is_name(tenant, 255) AND hapax.is_name(scope, 1024) AND hapax.is_name(key, 255)
    AND request IS NOT NULL AND method IS NOT NULL AND path IS NOT NULL AND query IS NOT NULL;

-- Public. The same as hapax.begin, for whoever has bytes: without the detour.
CREATE FUNCTION hapax.begin_bytes(
    tenant text, scope text, key text,
    request bytea DEFAULT '', method text DEFAULT '', path text DEFAULT '', query text DEFAULT '',
    retention interval DEFAULT '24 hours', tombstone interval DEFAULT '0', wait interval DEFAULT '2 seconds',
    OUT decision text, OUT operation uuid, OUT fence bigint, OUT status integer, OUT headers jsonb, OUT body bytea,
    OUT retry_after integer, OUT differs text[], OUT expires_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER -- every name is qualified
AS $$
#variable_conflict use_variable
DECLARE
    instant bigint;
    salt pg_catalog.bytea;
    bound boolean;
    lock bigint;
    owner bigint;
    kept bigint := 86400000000;
    late bigint := 0;
    patience bigint := 2000000;
    print pg_catalog.bytea;
BEGIN
    IF hapax.are_parts(tenant, scope, key, request, method, path, query) IS NOT TRUE THEN
        PERFORM hapax.refuse_operation(tenant, scope, key, request, method, path, query);
    END IF;
    IF hapax.are_usual(retention, tombstone, wait) IS NOT TRUE THEN
        kept := hapax.span('the retention', retention, '1 second', '400 days');
        late := hapax.span('the tombstone', tombstone, '0', '400 days');
        patience := hapax.span('the wait', wait, '0', '60 seconds');
    END IF;
    SELECT m.salt, EXISTS (SELECT FROM hapax.role_tenants) INTO STRICT salt, bound FROM hapax.meta AS m;
    IF bound THEN
        PERFORM hapax.check_tenant(tenant);
    END IF;
    operation := hapax.operation_id(tenant, scope, key);
    lock := hapax.operation_lock(salt, operation);
    owner := hapax.transaction_owner();
    print := hapax.fingerprint_with(salt, tenant, method, path, query, request);
    IF pg_catalog.pg_try_advisory_xact_lock(lock) THEN
        instant := hapax.clock();
        expires_at := hapax.as_time(hapax.later(instant, kept));
        INSERT INTO hapax.operations (
            id, format, tenant, scope, key, fingerprint, fence, owner, recovery, doubt, state,
            tombstone, created_at, changed_at, expires_at, until)
        VALUES (operation, 1, tenant, scope, key, print, 1, owner, 3, 0, 2, late, instant, instant,
            hapax.later(instant, kept), hapax.later(instant, 30000000))
        ON CONFLICT (id) DO NOTHING;
        IF FOUND THEN
            decision := 'execute';
            fence := 1;
            RETURN;
        END IF;
    END IF;
    SELECT c.decision, c.fence, c.status, c.headers, c.body, c.retry_after, c.differs, c.expires_at
    INTO decision, fence, status, headers, body, retry_after, differs, expires_at
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

-- Says why there is nothing to end.
CREATE FUNCTION hapax.refuse_end(operation uuid, fence bigint, owner bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
BEGIN
    PERFORM FROM hapax.operations AS o WHERE o.id = operation AND o.fence = fence AND o.owner = owner;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'HX003', MESSAGE = 'the operation was ended already in this transaction',
            HINT = 'Call hapax.finish or hapax.fail once per operation.';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'HX002', MESSAGE = 'the operation was not begun in this transaction under this fence',
        HINT = 'Call hapax.begin in the same transaction, before any savepoint you roll back to, and pass on its operation and fence.';
END
$$;

CREATE FUNCTION hapax.finish_bytes(
    operation uuid, fence bigint, status integer DEFAULT 200, headers jsonb DEFAULT '{}', body bytea DEFAULT '')
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER -- every name is qualified
AS $$
#variable_conflict use_variable
DECLARE
    instant bigint;
    owner bigint;
    stored pg_catalog.bytea;
BEGIN
    IF operation IS NULL OR fence IS NULL OR hapax.is_status(status, 100, 399) IS NOT TRUE
        OR hapax.is_bodily(headers, body) IS NOT TRUE THEN
        PERFORM hapax.refuse_answer('finish', status, 100, 399, headers, body);
    END IF;
    IF hapax.has_headers(headers) THEN
        stored := hapax.seal_head(status, headers);
    ELSE
        stored := hapax.plain_head(status);
    END IF;
    stored := hapax.unsigned_answer(stored, body);
    stored := hapax.signed_answer(operation, stored);
    owner := hapax.transaction_owner();
    instant := hapax.clock();
    UPDATE hapax.operations AS o
    SET state = 3, until = 0, doubt = 0, changed_at = instant, request = NULL,
        expires_at = hapax.at_least(instant, 30000000, o.expires_at), answer = stored
    WHERE o.id OPERATOR(pg_catalog.=) operation
      AND hapax.is_attempt(o.format, o.state, o.fence, o.owner, fence, owner);
    IF NOT FOUND THEN
        PERFORM hapax.refuse_end(operation, fence, owner);
    END IF;
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
LANGUAGE plpgsql SECURITY DEFINER -- every name is qualified
AS $$
#variable_conflict use_variable
DECLARE
    instant bigint;
    owner bigint;
    stored pg_catalog.bytea;
BEGIN
    IF operation IS NULL OR fence IS NULL OR hapax.is_status(status, 400, 599) IS NOT TRUE
        OR hapax.is_bodily(headers, body) IS NOT TRUE THEN
        PERFORM hapax.refuse_answer('fail', status, 400, 599, headers, body);
    END IF;
    IF hapax.has_headers(headers) THEN
        stored := hapax.seal_head(status, headers);
    ELSE
        stored := hapax.plain_head(status);
    END IF;
    stored := hapax.unsigned_answer(stored, body);
    stored := hapax.signed_answer(operation, stored);
    owner := hapax.transaction_owner();
    instant := hapax.clock();
    UPDATE hapax.operations AS o
    SET state = 4, until = 0, doubt = 0, changed_at = instant, request = NULL,
        expires_at = hapax.at_least(instant, 30000000, o.expires_at), answer = stored
    WHERE o.id OPERATOR(pg_catalog.=) operation
      AND hapax.is_attempt(o.format, o.state, o.fence, o.owner, fence, owner);
    IF NOT FOUND THEN
        PERFORM hapax.refuse_end(operation, fence, owner);
    END IF;
END
$$;

-- Public. Stores that the operation failed for good, to be answered alike ever after; status 400 to 599.
-- Roll back the business writes to a savepoint made after hapax.begin first.
CREATE FUNCTION hapax.fail(
    operation uuid, fence bigint, status integer DEFAULT 400, headers jsonb DEFAULT '{}', body anycompatible DEFAULT ''::bytea)
RETURNS void
LANGUAGE sql
AS $$ SELECT hapax.fail_bytes($1, $2, $3, $4, hapax.as_bytes($5)) $$;

-- Ends a transaction that would record an operation which another one has.
CREATE FUNCTION hapax.refuse_taken() RETURNS smallint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'HX009', MESSAGE = 'another transaction has this operation',
        HINT = 'Roll back, and ask hapax.begin what became of it.';
END
$$;

-- Says why the statement of docs/sql.md records nothing: a name is wrong, or another transaction has the operation.
CREATE FUNCTION hapax.refuse_record(tenant text, scope text, key text) RETURNS smallint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM hapax.refuse_operation(tenant, scope, key, '', '', '', '');
    RETURN hapax.refuse_taken();
END
$$;

CREATE FUNCTION hapax.record_bytes(
    tenant text, scope text, key text, request bytea, status integer, headers jsonb, body bytea,
    method text, path text, query text, retention interval, tombstone interval) RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER -- every name is qualified
AS $$
#variable_conflict use_variable
DECLARE
    instant bigint;
    since bigint;
    until bigint;
    salt pg_catalog.bytea;
    bound boolean;
    operation pg_catalog.uuid;
    kept bigint := 86400000000;
    late bigint := 0;
    ended smallint := 3;
    print pg_catalog.bytea;
    stored pg_catalog.bytea;
BEGIN
    IF hapax.are_parts(tenant, scope, key, request, method, path, query) IS NOT TRUE THEN
        PERFORM hapax.refuse_operation(tenant, scope, key, request, method, path, query);
    END IF;
    IF hapax.are_usual(retention, tombstone, '2 seconds') IS NOT TRUE THEN
        kept := hapax.span('the retention', retention, '1 second', '400 days');
        late := hapax.span('the tombstone', tombstone, '0', '400 days');
    END IF;
    IF hapax.is_status(status, 100, 599) IS NOT TRUE OR hapax.is_bodily(headers, body) IS NOT TRUE THEN
        PERFORM hapax.refuse_answer('record', status, 100, 599, headers, body);
    END IF;
    IF hapax.is_status(status, 400, 599) THEN
        ended := 4;
    END IF;
    SELECT m.salt, EXISTS (SELECT FROM hapax.role_tenants) INTO STRICT salt, bound FROM hapax.meta AS m;
    IF bound THEN
        PERFORM hapax.check_tenant(tenant);
    END IF;
    operation := hapax.operation_id(tenant, scope, key);
    IF NOT pg_catalog.pg_try_advisory_xact_lock(hapax.operation_lock(salt, operation)) THEN
        PERFORM hapax.refuse_taken();
    END IF;
    IF hapax.has_headers(headers) THEN
        stored := hapax.seal_head(status, headers);
    ELSE
        stored := hapax.plain_head(status);
    END IF;
    stored := hapax.unsigned_answer(stored, body);
    stored := hapax.signed_answer(operation, stored);
    print := hapax.fingerprint_with(salt, tenant, method, path, query, request);
    instant := hapax.clock();
    since := hapax.earlier(instant, hapax.transaction_age());
    until := hapax.at_least(instant, 30000000, hapax.later(since, kept));
    INSERT INTO hapax.operations (
        id, format, tenant, scope, key, fingerprint, fence, owner, recovery, doubt, state,
        tombstone, created_at, changed_at, expires_at, until, answer)
    VALUES (operation, 1, tenant, scope, key, print, 1, hapax.transaction_owner(), 3, 0, ended, late, since, instant,
        until, 0, stored);
    RETURN hapax.as_time(until);
END
$$;

-- Public. Stores, in one call before COMMIT, that an operation was run and what it answered: status 100 to 399 for what
-- was done, 400 to 599 for what failed for good. Says until when that is kept. If the operation is not new this is an
-- error (23505, or HX009 while another transaction has it), so that nothing of this transaction is committed: roll
-- back, and ask hapax.begin what became of it. Give the request and the body in one type.
CREATE FUNCTION hapax.record(
    tenant text, scope text, key text, request anycompatible DEFAULT ''::bytea, status integer DEFAULT 200,
    headers jsonb DEFAULT '{}', body anycompatible DEFAULT ''::bytea, method text DEFAULT '', path text DEFAULT '',
    query text DEFAULT '', retention interval DEFAULT '24 hours', tombstone interval DEFAULT '0') RETURNS timestamptz
LANGUAGE sql
AS $$ SELECT hapax.record_bytes($1, $2, $3, hapax.as_bytes($4), $5, $6, hapax.as_bytes($7), $8, $9, $10, $11, $12) $$;

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
