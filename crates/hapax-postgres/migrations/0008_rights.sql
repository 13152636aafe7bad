-- What a role that may only call the functions can reach, see and hold up.
--
-- 1. Whatever a SECURITY DEFINER function reaches either has a search path of its own, which ends in
--    pg_temp, or is bound to its names when it is created (a body without quotes). A path that does not
--    name pg_temp is searched *after* it, so that a caller's temporary view would be read as ours.
-- 2. The functions that callers name (`hapax.begin`, `hapax.finish`, ...) take text, JSON and bytes alike.
--    They turn them into bytes with the caller's own rights, because a value of the caller's own type runs
--    the caller's own code; what runs with the owner's rights (`..._bytes`) takes built-in types alone.
-- 3. Roles can be bound to tenants.
-- 4. The numbers of advisory locks cannot be computed without the salt, and no transaction waits for
--    an advisory lock of a segment or of a bucket, which everybody could take.
--
-- No literal has a backslash outside of E'': the bodies are read under the caller's settings.

-- Bound to their names.

CREATE OR REPLACE FUNCTION hapax.clock() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN (date_part('epoch', clock_timestamp()) * 1000000)::bigint;

CREATE OR REPLACE FUNCTION hapax.bucket(instant bigint) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (instant / 21600000000)::integer;

CREATE OR REPLACE FUNCTION hapax.as_time(instant bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN timestamptz 'epoch' + instant * interval '1 microsecond';

CREATE OR REPLACE FUNCTION hapax.mac(inner_mask bytea, outer_mask bytea, message bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN sha256(outer_mask || sha256(inner_mask || message));

CREATE OR REPLACE FUNCTION hapax.mask(secret bytea, with_byte text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN substr(bit_send(('x' || encode(secret, 'hex'))::bit(256) # ('x' || repeat(with_byte, 32))::bit(256)), 5)
       || decode(repeat(with_byte, 32), 'hex');

CREATE OR REPLACE FUNCTION hapax.decide(
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

CREATE OR REPLACE FUNCTION hapax.outbox_lane(topic text, key text) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (get_byte(sha256(convert_to(topic || E'\n' || key, 'UTF8')), 0) & 63)::smallint;

CREATE OR REPLACE FUNCTION hapax.outbox_wants(topics text[], topic text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN topics @> '{*}'::text[] OR topic = ANY (topics) OR EXISTS (
    SELECT FROM unnest(topics) AS t(pattern) WHERE right(t.pattern, 1) = '*' AND starts_with(topic, left(t.pattern, -1)));

-- The number of the advisory lock that belongs to a name. Whoever does not know the salt cannot tell it.
CREATE FUNCTION hapax.lock_number(salt bytea, kind text, name text) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN ('x' || encode(substr(sha256(salt || convert_to(kind || E'\n' || name, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint;

-- A value as the bytes that are stored: bytes as they are, text and JSON in UTF-8. A text of `\x` and
-- pairs of hexadecimal digits, and nothing else, is how PostgreSQL writes bytes, and is read as such.
CREATE FUNCTION hapax.as_bytes(value bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN value;

CREATE FUNCTION hapax.as_bytes(value text) RETURNS bytea
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN value ~ E'^\\\\x([0-9A-Fa-f][0-9A-Fa-f])*$' THEN decode(substr(value, 3), 'hex')
            ELSE convert_to(value, 'UTF8') END;

CREATE FUNCTION hapax.as_bytes(value json) RETURNS bytea
LANGUAGE sql STABLE PARALLEL SAFE
RETURN convert_to(value::text, 'UTF8');

CREATE FUNCTION hapax.as_bytes(value jsonb) RETURNS bytea
LANGUAGE sql STABLE PARALLEL SAFE
RETURN convert_to(value::text, 'UTF8');

-- With a path of their own.

ALTER FUNCTION hapax.as_text(bytea) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION hapax.as_json(bytea) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION hapax.end_operation(uuid, bigint, smallint, integer, jsonb, bytea) SET search_path = pg_catalog, pg_temp;

-- Makes room for the outcomes of a bucket. Attaching a table made beforehand does not stop readers
-- and writers of the others, as creating it in place would.
CREATE OR REPLACE FUNCTION hapax.create_bucket(bucket integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    name text := 'responses_' || bucket;
BEGIN
    -- One at a time, by a lock that only who may write the table can take; attaching takes it anyway.
    LOCK TABLE ONLY hapax.responses IN SHARE UPDATE EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE i.inhrelid = to_regclass('hapax.' || name)) THEN
        RETURN;
    END IF;
    IF to_regclass('hapax.' || name) IS NULL THEN
        EXECUTE format('CREATE TABLE hapax.%I (LIKE hapax.responses INCLUDING ALL)', name);
    END IF;
    EXECUTE format('ALTER TABLE hapax.responses ATTACH PARTITION hapax.%I FOR VALUES FROM (%s) TO (%s)',
                   name, bucket, bucket + 1);
END
$$;

-- The keyed hash of what makes two requests the same, for whoever has read the salt already.
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

CREATE OR REPLACE FUNCTION hapax.fingerprint(tenant text, method text, path text, query text, body bytea) RETURNS bytea
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN hapax.fingerprint_with((SELECT m.salt FROM hapax.meta AS m), tenant, method, path, query, body);
END
$$;

-- The stored form of a status and headers: an object of names and texts, or lists of texts.
CREATE OR REPLACE FUNCTION hapax.seal_head(status integer, headers jsonb) RETURNS bytea
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

CREATE OR REPLACE FUNCTION hapax.lock_key(space text, key text, wait interval DEFAULT '2 seconds') RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF num_nulls(space, key) > 0 OR (wait >= '0' AND wait <= '60 seconds') IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'HX101', MESSAGE = 'the space, the key or the wait is missing or out of bounds',
            HINT = 'Give texts that are not NULL, and a wait from 0 to 60 seconds.';
    END IF;
    RETURN hapax.lock_operation(
        ('x' || encode(substr(sha256(convert_to(space, 'UTF8') || decode('00', 'hex') || convert_to(key, 'UTF8')), 1, 8),
                       'hex'))::bit(64)::bigint,
        (date_part('epoch', wait) * 1000000)::bigint);
END
$$;

-- Which tenants a role may use. A role that is not named here, and belongs to none that is, may use any.
CREATE TABLE hapax.role_tenants (
    role          regrole NOT NULL,
    tenant        text NOT NULL,
    PRIMARY KEY (role, tenant)
);

-- Refuses a tenant that the caller may not use: neither who logged in, nor the role it took on, and
-- each by itself or by a role it belongs to. Whoever has the rights of the schema's owner may use any.
CREATE FUNCTION hapax.check_tenant(tenant text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    caller name;
BEGIN
    FOREACH caller IN ARRAY ARRAY[session_user, nullif(current_setting('role'), 'none')::name] LOOP
        CONTINUE WHEN caller IS NULL OR pg_has_role(caller, current_user, 'MEMBER');
        IF (SELECT bool_or(t.tenant IS NOT DISTINCT FROM check_tenant.tenant) FROM hapax.role_tenants AS t
            WHERE pg_has_role(caller, t.role, 'MEMBER')) IS FALSE THEN
            RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = format('role %s may not use this tenant', quote_ident(caller)),
                HINT = 'The owner of schema hapax binds roles to tenants: see hapax.bind_tenants.';
        END IF;
    END LOOP;
END
$$;

-- Public. Lets a role use these tenants, and, from now on, no others but those it was bound to before.
CREATE FUNCTION hapax.bind_tenants(role regrole, tenants text[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    tenant text;
BEGIN
    IF role IS NULL OR coalesce(cardinality(tenants), 0) = 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'the role or the tenants are missing',
            HINT = 'Name a role that exists, and at least one tenant: a role without any is not bound.';
    END IF;
    FOREACH tenant IN ARRAY tenants LOOP
        PERFORM hapax.refuse_name('the tenant', tenant, 255);
        INSERT INTO hapax.role_tenants AS t (role, tenant) VALUES (role, tenant) ON CONFLICT DO NOTHING;
    END LOOP;
END
$$;

-- Public. Takes tenants from a role; all of them if none is named, after which it is not bound any more.
CREATE FUNCTION hapax.unbind_tenants(role regrole, tenants text[] DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
BEGIN
    IF tenants IS NOT NULL AND NOT EXISTS (
        SELECT FROM hapax.role_tenants AS t WHERE t.role = role AND t.tenant <> ALL (tenants)) THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'these are all tenants that the role is bound to',
            HINT = 'Without any it could use all. Bind it to another one first, or leave out the tenants if that is meant.';
    END IF;
    DELETE FROM hapax.role_tenants AS t WHERE t.role = role AND (tenants IS NULL OR t.tenant = ANY (tenants));
END
$$;
