-- What tells operations, requests and outcomes apart, in the same bytes that the Rust side computes: proven by
-- tests/it/functions/formats.rs.

-- Public. The digest under which an operation is kept.
CREATE FUNCTION hapax.operation_id(tenant text, scope text, key text) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN encode(substr(sha256(convert_to(tenant || E'\n' || scope || E'\n' || key, 'UTF8')), 1, 16), 'hex')::uuid;

-- The number of an operation's lock.
CREATE FUNCTION hapax.operation_lock(salt bytea, operation uuid) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN hapax.lock_number(salt, 'operation', encode(uuid_send(operation), 'hex'));

-- What the transaction is called as an owner.
CREATE FUNCTION hapax.transaction_owner() RETURNS bigint
LANGUAGE sql VOLATILE
RETURN pg_current_xact_id()::text::bigint;

-- The keyed hash of a part of a tenant's request; zeros if there is no such part.
CREATE FUNCTION hapax.part_hash(inner_mask bytea, tenant text, part text, content bytea) RETURNS bytea
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN content = '' THEN decode(repeat('00', 32), 'hex')
            ELSE sha256(inner_mask || convert_to(tenant || E'\n' || part || E'\n', 'UTF8') || content) END;

-- The fingerprint of parts that are hashed already. What does not change, if there is only a body, stands in brackets.
CREATE FUNCTION hapax.whole_fingerprint(outer_mask bytea, tenant text, m bytea, p bytea, q bytea, b bytea) RETURNS bytea
LANGUAGE sql STABLE PARALLEL SAFE
RETURN substr(sha256(outer_mask || convert_to(tenant || E'\n', 'UTF8') || (m || p || q || decode(repeat('00', 32), 'hex')) || b), 1, 16)
       || (substr(m, 1, 4) || substr(p, 1, 4) || substr(q, 1, 4) || decode('00000000', 'hex')) || substr(b, 1, 4);

CREATE FUNCTION hapax.parts_fingerprint(
    inner_mask bytea, outer_mask bytea, tenant text, method text, path text, query text, b bytea) RETURNS bytea
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    m bytea := hapax.part_hash(inner_mask, tenant, 'method', convert_to(method, 'UTF8'));
    p bytea := hapax.part_hash(inner_mask, tenant, 'path', convert_to(path, 'UTF8'));
    q bytea := hapax.part_hash(inner_mask, tenant, 'query', convert_to(query, 'UTF8'));
BEGIN
    RETURN hapax.whole_fingerprint(outer_mask, tenant, m, p, q, b);
END
$$;

-- The keyed hash of what makes two requests the same; equal to what the Rust side computes, where requests have headers
-- too. For whoever has read the masks and hashed the body already.
CREATE FUNCTION hapax.fingerprint_with(
    inner_mask bytea, outer_mask bytea, tenant text, method text, path text, query text, b bytea) RETURNS bytea
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN method || path || query = ''
            THEN hapax.whole_fingerprint(outer_mask, tenant, decode(repeat('00', 32), 'hex'), decode(repeat('00', 32), 'hex'),
                                         decode(repeat('00', 32), 'hex'), b)
            ELSE hapax.parts_fingerprint(inner_mask, outer_mask, tenant, method, path, query, b) END;

CREATE FUNCTION hapax.fingerprint(tenant text, method text, path text, query text, body bytea) RETURNS bytea
LANGUAGE sql STABLE
RETURN (SELECT hapax.fingerprint_with(m.inner_mask, m.outer_mask, tenant, method, path, query,
                                      hapax.part_hash(m.inner_mask, tenant, 'body', body))
        FROM hapax.meta AS m);

-- The stored form of an outcome, without the digest in front.
CREATE FUNCTION hapax.unsigned_answer(head bytea, body bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN int4send(octet_length(head)) || head || body;

CREATE FUNCTION hapax.signed_answer(operation uuid, unsigned bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN substr(sha256(uuid_send(operation) || unsigned), 1, 16) || unsigned;

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

-- Not immutable: it refuses headers, which a planner that knows them would do too early.
CREATE FUNCTION hapax.sealed_answer(operation uuid, status integer, headers jsonb, body bytea) RETURNS bytea
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    unsigned bytea := hapax.unsigned_answer(hapax.seal_head(status, headers), body);
BEGIN
    RETURN hapax.signed_answer(operation, unsigned);
END
$$;

-- The same where there are no headers, in one expression. It has a value for every status: a planner that knows the
-- arguments computes it before anybody has checked them.
CREATE FUNCTION hapax.plain_answer(operation uuid, status integer, body bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN substr(sha256(uuid_send(operation) || decode('000000060100', 'hex') || substr(int4send(status), 3)
                     || decode('0000', 'hex') || body), 1, 16)
       || decode('000000060100', 'hex') || substr(int4send(status), 3) || decode('0000', 'hex') || body;

CREATE FUNCTION hapax.answer_of(operation uuid, status integer, headers jsonb, body bytea) RETURNS bytea
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN headers = '{}' THEN hapax.plain_answer(operation, status, body)
            ELSE hapax.sealed_answer(operation, status, headers, body) END;

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
