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
-- path their caller has, so nothing in them may be looked up by it. A path of their own would do too, and costs more.
-- Their plans are generic from the first call on: what is known of one call's arguments makes no plan better, and
-- planning anew for the first five costs a connection as much as thirty calls.

CREATE FUNCTION hapax.is_name(name text, longest integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(name) <= longest AND name ~ '^[ -~]*[!-~][ -~]*$';

-- Whether these spans are within their bounds; hapax.span says which one is not.
CREATE FUNCTION hapax.are_spans(retention interval, tombstone interval, wait interval) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN retention BETWEEN '1 second' AND '400 days' AND tombstone BETWEEN '0' AND '400 days'
   AND wait BETWEEN '0' AND '60 seconds';

CREATE FUNCTION hapax.micros(span interval) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (date_part('epoch', span) * 1000000)::bigint;

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

CREATE FUNCTION hapax.is_bodily(headers jsonb, body bytea) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN headers IS NOT NULL AND octet_length(body) <= 16777216;

-- Whether this is the status of an answer.
CREATE FUNCTION hapax.is_status(status integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN status BETWEEN 100 AND 599;

-- What an answer ends an operation as: below 400 it was done, from there on it failed for good.
CREATE FUNCTION hapax.ended_as(status integer) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN status < 400 THEN 3::smallint ELSE 4::smallint END;

-- Whether an operation that was done, or failed for good, can be answered with this status.
CREATE FUNCTION hapax.is_end(done boolean, status integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN status BETWEEN CASE WHEN done THEN 100 ELSE 400 END AND CASE WHEN done THEN 399 ELSE 599 END;

-- Whether this is the row of an attempt that is at work.
CREATE FUNCTION hapax.is_attempt(
    format smallint, state smallint, row_fence bigint, row_owner bigint, fence bigint, owner bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN format = 1 AND state = 2 AND row_fence = fence AND row_owner = owner;

-- Says why this cannot be stored as an answer.
CREATE FUNCTION hapax.refuse_answer(function text, lowest integer, highest integer, body bytea) RETURNS void
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

-- What hapax.begin says. A type of its own: columns of a function are described anew at every call.
CREATE TYPE hapax.begun AS (
    decision text, operation uuid, fence bigint, status integer, headers jsonb, body bytea,
    retry_after integer, differs text[], expires_at timestamptz);

-- Public. The same as hapax.begin, for whoever has bytes.
CREATE FUNCTION hapax.begin_bytes(
    tenant text, scope text, key text,
    request bytea DEFAULT '', method text DEFAULT '', path text DEFAULT '', query text DEFAULT '',
    retention interval DEFAULT '24 hours', tombstone interval DEFAULT '0', wait interval DEFAULT '2 seconds')
RETURNS hapax.begun
LANGUAGE plpgsql SECURITY DEFINER SET plan_cache_mode = force_generic_plan -- every name is qualified
AS $$
#variable_conflict use_variable
DECLARE
    answer hapax.begun;
    operation pg_catalog.uuid;
    lock bigint;
    owner bigint;
    kept bigint;
    late bigint;
    patience bigint;
    print pg_catalog.bytea;
BEGIN
    -- One statement, checks and all: whatever a function computes by itself is made ready anew in every transaction.
    -- CASE keeps to the order. What is checked stands outside of the limit: inside, the planner would expect to look
    -- through many salts, and plan anew each time.
    INSERT INTO hapax.operations (
        id, format, tenant, scope, key, fingerprint, fence, owner, recovery, doubt, state,
        tombstone, created_at, changed_at, expires_at, until)
    SELECT n.id, 1, tenant, scope, key,
           hapax.fingerprint_with(n.inner_mask, n.outer_mask, tenant, method, path, query, n.body_hash), 1,
           hapax.transaction_owner(), 3, 0, 2, hapax.micros(tombstone), n.now, n.now,
           hapax.later(n.now, hapax.micros(retention)), hapax.later(n.now, 30000000)
    FROM (SELECT m.salt, m.inner_mask, m.outer_mask, m.is_bound, hapax.operation_id(tenant, scope, key) AS id,
                 hapax.part_hash(m.inner_mask, tenant, 'body', request) AS body_hash, hapax.clock() AS now
          FROM hapax.meta AS m LIMIT 1) AS n
    WHERE CASE WHEN hapax.are_parts(tenant, scope, key, request, method, path, query)
                AND hapax.are_spans(retention, tombstone, wait)
                AND (NOT n.is_bound OR hapax.check_tenant(tenant))
               THEN pg_catalog.pg_try_advisory_xact_lock(hapax.operation_lock(n.salt, n.id)) ELSE false END
    ON CONFLICT (id) DO NOTHING
    RETURNING 'execute', operations.id, operations.fence, NULL::pg_catalog.int4, NULL::pg_catalog.jsonb, NULL::pg_catalog.bytea,
              NULL::pg_catalog.int4, NULL::pg_catalog._text, hapax.as_time(operations.expires_at)
    INTO answer;
    IF FOUND THEN
        RETURN answer;
    END IF;
    PERFORM hapax.refuse_operation(tenant, scope, key, request, method, path, query);
    kept := hapax.span('the retention', retention, '1 second', '400 days');
    late := hapax.span('the tombstone', tombstone, '0', '400 days');
    patience := hapax.span('the wait', wait, '0', '60 seconds');
    SELECT n.id, hapax.operation_lock(n.salt, n.id), hapax.transaction_owner(),
           hapax.fingerprint_with(n.inner_mask, n.outer_mask, tenant, method, path, query, n.body_hash)
    INTO STRICT operation, lock, owner, print
    FROM (SELECT m.salt, m.inner_mask, m.outer_mask, hapax.operation_id(tenant, scope, key) AS id,
                 hapax.part_hash(m.inner_mask, tenant, 'body', request) AS body_hash
          FROM hapax.meta AS m LIMIT 1) AS n;
    SELECT c.decision, operation, c.fence, c.status, c.headers, c.body, c.retry_after, c.differs, c.expires_at
    INTO STRICT answer
    FROM hapax.begin_contended(operation, lock, owner, tenant, scope, key, print, kept, late, patience) AS c;
    RETURN answer;
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
    retention interval DEFAULT '24 hours', tombstone interval DEFAULT '0', wait interval DEFAULT '2 seconds')
RETURNS hapax.begun
LANGUAGE sql
AS $$ SELECT hapax.begin_bytes($1, $2, $3, hapax.as_bytes($4), $5, $6, $7, $8, $9, $10) $$;

-- Says why an operation cannot be ended so.
CREATE FUNCTION hapax.refuse_end(
    done boolean, operation uuid, fence bigint, owner bigint, status integer, headers jsonb, body bytea) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
BEGIN
    IF operation IS NULL OR fence IS NULL OR hapax.is_end(done, status) IS NOT TRUE
        OR hapax.is_bodily(headers, body) IS NOT TRUE THEN
        IF done THEN
            PERFORM hapax.refuse_answer('finish', 100, 399, body);
        END IF;
        PERFORM hapax.refuse_answer('fail', 400, 599, body);
    END IF;
    PERFORM hapax.seal_head(status, headers);
    PERFORM FROM hapax.operations AS o WHERE o.id = operation AND o.fence = fence AND o.owner = owner;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'HX003', MESSAGE = 'the operation was ended already in this transaction',
            HINT = 'Call hapax.finish or hapax.fail once per operation.';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'HX002', MESSAGE = 'the operation was not begun in this transaction under this fence',
        HINT = 'Call hapax.begin in the same transaction, before any savepoint you roll back to, and pass on its operation and fence.';
END
$$;

-- Stores how an operation ended that was begun in this transaction: it was done, or failed for good.
CREATE FUNCTION hapax.end_bytes(
    done boolean, operation uuid, fence bigint, status integer, headers jsonb, body bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET plan_cache_mode = force_generic_plan -- every name is qualified
AS $$
#variable_conflict use_variable
BEGIN
    UPDATE hapax.operations AS o
    SET state = CASE WHEN done THEN 3 ELSE 4 END, until = 0, doubt = 0, changed_at = hapax.clock(), request = NULL,
        expires_at = hapax.at_least(hapax.clock(), 30000000, o.expires_at),
        answer = hapax.answer_of(operation, status, headers, body)
    WHERE o.id OPERATOR(pg_catalog.=) operation
      AND hapax.is_attempt(o.format, o.state, o.fence, o.owner, fence, hapax.transaction_owner())
      AND hapax.is_end(done, status) AND hapax.is_bodily(headers, body);
    IF NOT FOUND THEN
        PERFORM hapax.refuse_end(done, operation, fence, hapax.transaction_owner(), status, headers, body);
    END IF;
END
$$;

-- Public. Stores what the operation answered; status 100 to 399. COMMIT makes it so.
CREATE FUNCTION hapax.finish(
    operation uuid, fence bigint, status integer DEFAULT 200, headers jsonb DEFAULT '{}', body anycompatible DEFAULT ''::bytea)
RETURNS void
LANGUAGE sql
AS $$ SELECT hapax.end_bytes(true, $1, $2, $3, $4, hapax.as_bytes($5)) $$;

-- Public. Stores that the operation failed for good, to be answered alike ever after; status 400 to 599.
-- Roll back the business writes to a savepoint made after hapax.begin first.
CREATE FUNCTION hapax.fail(
    operation uuid, fence bigint, status integer DEFAULT 400, headers jsonb DEFAULT '{}', body anycompatible DEFAULT ''::bytea)
RETURNS void
LANGUAGE sql
AS $$ SELECT hapax.end_bytes(false, $1, $2, $3, $4, hapax.as_bytes($5)) $$;

-- Ends a transaction that would record an operation which another one has.
CREATE FUNCTION hapax.refuse_taken() RETURNS smallint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'HX009', MESSAGE = 'another transaction has this operation',
        HINT = 'Roll back, and ask hapax.begin what became of it.';
END
$$;

-- Says why nothing is recorded: an argument is wrong, or another transaction has the operation.
CREATE FUNCTION hapax.refuse_record(
    tenant text, scope text, key text, request bytea, status integer, headers jsonb, body bytea,
    method text DEFAULT '', path text DEFAULT '', query text DEFAULT '') RETURNS smallint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM hapax.refuse_operation(tenant, scope, key, request, method, path, query);
    IF (hapax.is_status(status) AND hapax.is_bodily(headers, body)) IS NOT TRUE THEN
        PERFORM hapax.refuse_answer('record', 100, 599, body);
    END IF;
    PERFORM hapax.seal_head(status, headers);
    RETURN hapax.refuse_taken();
END
$$;

CREATE FUNCTION hapax.record_bytes(
    tenant text, scope text, key text, request bytea, status integer, headers jsonb, body bytea,
    method text, path text, query text, retention interval, tombstone interval) RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET plan_cache_mode = force_generic_plan -- every name is qualified
AS $$
#variable_conflict use_variable
DECLARE
    kept_until pg_catalog.timestamptz;
BEGIN
    INSERT INTO hapax.operations (
        id, format, tenant, scope, key, fingerprint, fence, owner, recovery, doubt, state,
        tombstone, created_at, changed_at, expires_at, until, answer)
    SELECT n.id, 1, tenant, scope, key,
           hapax.fingerprint_with(n.inner_mask, n.outer_mask, tenant, method, path, query, n.body_hash), 1,
           hapax.transaction_owner(), 3, 0, hapax.ended_as(status), hapax.micros(tombstone),
           hapax.earlier(n.now, n.age), n.now,
           hapax.at_least(n.now, 30000000, hapax.earlier(hapax.later(n.now, hapax.micros(retention)), n.age)), 0,
           hapax.answer_of(n.id, status, headers, body)
    FROM (SELECT m.salt, m.inner_mask, m.outer_mask, m.is_bound, hapax.operation_id(tenant, scope, key) AS id,
                 hapax.part_hash(m.inner_mask, tenant, 'body', request) AS body_hash,
                 hapax.clock() AS now, hapax.transaction_age() AS age
          FROM hapax.meta AS m LIMIT 1) AS n
    WHERE CASE WHEN hapax.are_parts(tenant, scope, key, request, method, path, query)
                AND hapax.are_spans(retention, tombstone, '0')
                AND hapax.is_status(status) AND hapax.is_bodily(headers, body)
                AND (NOT n.is_bound OR hapax.check_tenant(tenant))
               THEN pg_catalog.pg_try_advisory_xact_lock(hapax.operation_lock(n.salt, n.id)) ELSE false END
    RETURNING hapax.as_time(operations.expires_at) INTO kept_until;
    IF NOT FOUND THEN
        PERFORM hapax.span('the retention', retention, '1 second', '400 days');
        PERFORM hapax.span('the tombstone', tombstone, '0', '400 days');
        PERFORM hapax.refuse_record(tenant, scope, key, request, status, headers, body, method, path, query);
    END IF;
    RETURN kept_until;
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
    PERFORM hapax.check_tenant($1) FROM hapax.meta AS m WHERE m.is_bound;
    RETURN QUERY
    SELECT (ARRAY['pending', 'running', 'completed', 'failed', 'in_doubt', 'released', 'buried'])[o.state], o.fence,
           CASE WHEN octet_length(o.answer) >= 24 THEN get_byte(o.answer, 22) * 256 + get_byte(o.answer, 23) END,
           CASE WHEN o.until <> 0 THEN hapax.as_time(o.until) END,
           hapax.as_time(o.created_at), hapax.as_time(o.changed_at), hapax.as_time(o.expires_at)
    FROM hapax.operations AS o
    WHERE o.id = hapax.operation_id($1, $2, $3) AND o.tenant = $1 AND o.scope = $2 AND o.key = $3;
END
$$;
