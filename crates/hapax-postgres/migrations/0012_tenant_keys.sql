-- The data keys of tenants, each encrypted under a master key that is not in this database.
CREATE TABLE hapax.tenant_keys (
    tenant        text COLLATE "C" NOT NULL,
    -- Counted from one; no version is used twice.
    version       integer NOT NULL,
    format        smallint NOT NULL,
    created_at    bigint NOT NULL,
    -- The name of the master key; empty once the key was erased.
    master        text NOT NULL,
    -- NULL once the key was erased.
    wrapped       bytea,
    erased_at     bigint NOT NULL DEFAULT 0,
    erased_by     text NOT NULL DEFAULT '',
    erased_why    text NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, version)
);

CREATE VIEW hapax.tenant_keys_readable AS
SELECT k.tenant, k.version, hapax.as_time(k.created_at) AS created_at, nullif(k.master, '') AS master,
       CASE WHEN k.wrapped IS NULL THEN hapax.as_time(k.erased_at) END AS erased_at,
       nullif(k.erased_by, '') AS erased_by, nullif(k.erased_why, '') AS erased_why
FROM hapax.tenant_keys AS k;

COMMENT ON VIEW hapax.tenant_keys_readable IS
    'Which data keys tenants have, which master key wraps them, and who erased them and why.';

-- Whether an answer is encrypted: the second byte of its head says so.
CREATE FUNCTION hapax.is_encrypted(answer bytea) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(answer) >= 22 AND get_byte(answer, 21) = 2;

CREATE OR REPLACE VIEW hapax.operations_readable AS
SELECT o.tenant, o.scope, o.key,
       (ARRAY['pending', 'running', 'completed', 'failed', 'in_doubt', 'released', 'buried'])[o.state] AS state,
       (ARRAY['unanswered', 'interrupted', 'owner_vanished'])[nullif(o.doubt, 0)] AS doubt,
       (ARRAY['resend', 'probe', 'hold'])[o.recovery] AS recovery,
       o.fence,
       CASE WHEN o.until <> 0 THEN hapax.as_time(o.until) END AS until,
       hapax.as_time(o.created_at) AS created_at,
       hapax.as_time(o.changed_at) AS changed_at,
       hapax.as_time(o.expires_at) AS expires_at,
       o.tombstone * interval '1 microsecond' AS tombstone,
       CASE WHEN octet_length(o.answer) >= 24 THEN get_byte(o.answer, 22) * 256 + get_byte(o.answer, 23) END AS status,
       octet_length(hapax.answer_body(o.answer)) AS body_bytes,
       CASE WHEN NOT hapax.is_encrypted(o.answer) THEN hapax.as_text(hapax.answer_body(o.answer)) END AS body_text,
       CASE WHEN NOT hapax.is_encrypted(o.answer) THEN hapax.as_json(hapax.answer_body(o.answer)) END AS body_json,
       o.id,
       coalesce(hapax.is_encrypted(o.answer), false) AS encrypted
FROM hapax.operations AS o;

-- As before, but what is encrypted is not said to be damaged.
CREATE OR REPLACE FUNCTION hapax.open_outcome(
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
    IF octet_length(head) > 1 AND get_byte(head, 1) = 2 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX006', MESSAGE = 'the stored outcome is encrypted',
            HINT = 'It was stored by a gateway or a layer with a master key; SQL functions have none.';
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

UPDATE hapax.meta SET version = 12;
