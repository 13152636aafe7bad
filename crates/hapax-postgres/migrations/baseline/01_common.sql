-- Everything Hapax keeps lives in schema `hapax`. Instants and spans are microseconds.
--
-- The files of this folder are the first version of the schema, and run in one transaction. What a role that
-- may only call the functions can reach, see and hold up:
-- 1. Whatever a SECURITY DEFINER function reaches either has a search path of its own, which ends in
--    pg_temp, or is bound to its names when it is created (a body without quotes), or looks up nothing: every
--    call, operator and type in it names its schema. A path that does not name pg_temp is searched *after* it,
--    so that a caller's temporary view would be read as ours.
-- 2. The functions that callers name (`hapax.begin`, `hapax.finish`, ...) take text, JSON and bytes alike.
--    They turn them into bytes with the caller's own rights, because a value of the caller's own type runs
--    the caller's own code; what runs with the owner's rights (`..._bytes`) takes built-in types alone.
-- 3. Roles can be bound to tenants.
-- 4. The numbers of advisory locks cannot be computed without the salt, and no transaction waits for
--    an advisory lock of a segment, which everybody could take.
--
-- No literal has a backslash outside of E'': the bodies are read under the caller's settings.
--
-- Errors are of class HX:
--   HX001 an argument is not valid          HX002 not begun in this transaction
--   HX003 done already in this transaction  HX004 too large to be stored
--   HX005 the id was used for other content HX006 the stored record is damaged
--   HX007 written by a newer version        HX008 another delivery is being worked on
--   HX009 another transaction has the operation

-- A key of thirty-two bytes, padded to a block and masked as HMAC does.
CREATE FUNCTION hapax.mask(secret bytea, with_byte text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN substr(bit_send(('x' || encode(secret, 'hex'))::bit(256) # ('x' || repeat(with_byte, 32))::bit(256)), 5)
       || decode(repeat(with_byte, 32), 'hex');

CREATE TABLE hapax.meta (
    only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version       integer NOT NULL,
    -- The oldest schema version whose code can still work with this schema.
    works_with    integer NOT NULL,
    salt          bytea NOT NULL CHECK (octet_length(salt) = 32),
    -- Whether roles were ever bound to tenants.
    is_bound      boolean NOT NULL DEFAULT false,
    -- The salt as HMAC begins with it, inside and outside.
    inner_mask    bytea NOT NULL GENERATED ALWAYS AS (hapax.mask(salt, '36')) STORED,
    outer_mask    bytea NOT NULL GENERATED ALWAYS AS (hapax.mask(salt, '5c')) STORED
);

INSERT INTO hapax.meta (version, works_with, salt)
VALUES (10, 10, sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
                  || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));

-- Public. The version of this schema, and the oldest that its callers may have been written for.
CREATE FUNCTION hapax.schema_version(OUT version integer, OUT works_with integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ SELECT m.version, m.works_with FROM hapax.meta AS m $$;

-- The only clock of leases and retention. It moves on inside a transaction, unlike now().
CREATE FUNCTION hapax.clock() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN (date_part('epoch', clock_timestamp()) * 1000000)::bigint;

-- How far the clock of this database is trusted. Nothing expires, is buried or removed by an instant after
-- `trusted_until`, which only those move on who have watched the clock go steadily for a while.
CREATE TABLE hapax.clock_mark (
    only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    steady_since  bigint NOT NULL,
    seen_at       bigint NOT NULL,
    trusted_until bigint NOT NULL
) WITH (fillfactor = 50);

-- The clock by which retention is judged. One that nobody ever watched is taken at its word.
CREATE FUNCTION hapax.trusted_clock() RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$ SELECT least(hapax.clock(), (SELECT m.trusted_until FROM hapax.clock_mark AS m)) $$;

CREATE FUNCTION hapax.as_time(instant bigint) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE
RETURN timestamptz 'epoch' + instant * interval '1 microsecond';

CREATE FUNCTION hapax.as_text(bytes bytea) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN convert_from(bytes, 'UTF8');
EXCEPTION WHEN others THEN
    RETURN NULL;
END
$$;

CREATE FUNCTION hapax.as_json(bytes bytea) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN convert_from(bytes, 'UTF8')::jsonb;
EXCEPTION WHEN others THEN
    RETURN NULL;
END
$$;

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

-- The number of the advisory lock that belongs to a name. Whoever does not know the salt cannot tell it.
CREATE FUNCTION hapax.lock_number(salt bytea, kind text, name text) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN ('x' || encode(substr(sha256(salt || convert_to(kind || E'\n' || name, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint;

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
