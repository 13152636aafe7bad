-- What tells operations, requests and outcomes apart, in the same bytes that the Rust side computes: proven by
-- tests/it/functions/formats.rs.

-- Public. The digest under which an operation is kept.
CREATE FUNCTION hapax.operation_id(tenant text, scope text, key text) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN encode(substr(sha256(
    int4send(octet_length(tenant)) || convert_to(tenant, 'UTF8')
    || int4send(octet_length(scope)) || convert_to(scope, 'UTF8')
    || int4send(octet_length(key)) || convert_to(key, 'UTF8')), 1, 16), 'hex')::uuid;

-- The number of an operation's lock.
CREATE FUNCTION hapax.operation_lock(salt bytea, operation uuid) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN hapax.lock_number(salt, 'operation', encode(uuid_send(operation), 'hex'));

-- What the transaction is called as an owner.
CREATE FUNCTION hapax.transaction_owner() RETURNS bigint
LANGUAGE sql VOLATILE
RETURN pg_current_xact_id()::text::bigint;

-- A key of thirty-two bytes, padded to a block and masked as HMAC does.
CREATE FUNCTION hapax.mask(secret bytea, with_byte text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN substr(bit_send(('x' || encode(secret, 'hex'))::bit(256) # ('x' || repeat(with_byte, 32))::bit(256)), 5)
       || decode(repeat(with_byte, 32), 'hex');

-- HMAC-SHA-256 with a key that is padded and masked already.
CREATE FUNCTION hapax.mac(inner_mask bytea, outer_mask bytea, message bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN sha256(outer_mask || sha256(inner_mask || message));

-- The same of a part of a request, which has a name.
CREATE FUNCTION hapax.part_mac(inner_mask bytea, outer_mask bytea, name bytea, part bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hapax.mac(inner_mask, outer_mask,
                 int8send(octet_length(name)) || name || int8send(octet_length(part)) || part);

CREATE FUNCTION hapax.tenant_secret(salt bytea, tenant text) RETURNS bytea
LANGUAGE sql STABLE PARALLEL SAFE
RETURN hapax.mac(hapax.mask(salt, '36'), hapax.mask(salt, '5c'),
                 int8send(octet_length(tenant)) || convert_to(tenant, 'UTF8'));

-- The parts together, and the beginning of each.
CREATE FUNCTION hapax.whole_mac(inner_mask bytea, outer_mask bytea, m bytea, p bytea, q bytea, h bytea, b bytea)
RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN substr(hapax.mac(inner_mask, outer_mask,
                        int8send(5) || 'whole'::bytea || int8send(160) || m || p || q || h || b), 1, 16)
       || substr(m, 1, 4) || substr(p, 1, 4) || substr(q, 1, 4) || substr(h, 1, 4) || substr(b, 1, 4);

CREATE FUNCTION hapax.no_headers_mac(inner_mask bytea, outer_mask bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hapax.mac(inner_mask, outer_mask, int8send(7) || 'headers'::bytea || int8send(0));

CREATE FUNCTION hapax.utf8(value text) RETURNS bytea
LANGUAGE sql STABLE PARALLEL SAFE
RETURN convert_to(value, 'UTF8');

-- The keyed hash of what makes two requests the same; equal to what the Rust side computes. For whoever has
-- read the salt already. Each step once: a step within another would be computed wherever it is used.
CREATE FUNCTION hapax.fingerprint_with(salt bytea, tenant text, method text, path text, query text, body bytea) RETURNS bytea
LANGUAGE plpgsql STABLE -- every name is qualified
AS $$
DECLARE
    secret pg_catalog.bytea;
    i pg_catalog.bytea;
    o pg_catalog.bytea;
    m pg_catalog.bytea;
    p pg_catalog.bytea;
    q pg_catalog.bytea;
    h pg_catalog.bytea;
    b pg_catalog.bytea;
BEGIN
    secret := hapax.tenant_secret(salt, tenant);
    i := hapax.mask(secret, '36');
    o := hapax.mask(secret, '5c');
    m := hapax.utf8(method);
    p := hapax.utf8(path);
    q := hapax.utf8(query);
    m := hapax.part_mac(i, o, 'method', m);
    p := hapax.part_mac(i, o, 'path', p);
    q := hapax.part_mac(i, o, 'query', q);
    h := hapax.no_headers_mac(i, o);
    b := hapax.part_mac(i, o, 'body', body);
    RETURN hapax.whole_mac(i, o, m, p, q, h, b);
END
$$;

CREATE FUNCTION hapax.fingerprint(tenant text, method text, path text, query text, body bytea) RETURNS bytea
LANGUAGE sql STABLE
RETURN hapax.fingerprint_with((SELECT m.salt FROM hapax.meta AS m), tenant, method, path, query, body);

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
