-- The data keys of tenants, each encrypted under a master key that is not in this file. Times are
-- microseconds since the Unix epoch.
CREATE TABLE hapax_tenant_keys (
    tenant        TEXT    NOT NULL,
    -- Counted from one; no version is used twice.
    version       INTEGER NOT NULL,
    format        INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    -- The name of the master key; empty once the key was erased.
    master        TEXT    NOT NULL,
    -- NULL once the key was erased.
    wrapped       BLOB,
    erased_at     INTEGER NOT NULL,
    erased_by     TEXT    NOT NULL,
    erased_why    TEXT    NOT NULL,
    PRIMARY KEY (tenant, version)
) STRICT, WITHOUT ROWID;

-- For people: SELECT * FROM hapax_tenant_keys_readable.
CREATE VIEW hapax_tenant_keys_readable AS
SELECT
    tenant,
    version,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
    nullif(master, '') AS master,
    iif(wrapped IS NULL, strftime('%Y-%m-%dT%H:%M:%fZ', erased_at / 1e6, 'unixepoch'), NULL) AS erased_at,
    nullif(erased_by, '') AS erased_by,
    nullif(erased_why, '') AS erased_why
FROM hapax_tenant_keys;

-- For people: SELECT * FROM hapax_operations_readable WHERE key = '...'.
DROP VIEW hapax_operations_readable;
CREATE VIEW hapax_operations_readable AS
SELECT
    tenant,
    scope,
    CASE typeof(key)
        WHEN 'text' THEN key
        ELSE lower(
            substr(hex(key), 1, 8) || '-' || substr(hex(key), 9, 4) || '-'
            || substr(hex(key), 13, 4) || '-' || substr(hex(key), 17, 4) || '-'
            || substr(hex(key), 21, 12)
        )
    END AS key,
    CASE state
        WHEN 1 THEN 'pending'
        WHEN 2 THEN 'running'
        WHEN 3 THEN 'completed'
        WHEN 4 THEN 'failed'
        WHEN 5 THEN 'in_doubt'
        WHEN 6 THEN 'released'
        WHEN 7 THEN 'buried'
        ELSE 'unknown: ' || state
    END AS state,
    CASE doubt
        WHEN 0 THEN NULL
        WHEN 1 THEN 'unanswered'
        WHEN 2 THEN 'interrupted'
        WHEN 3 THEN 'owner_vanished'
        ELSE 'unknown: ' || doubt
    END AS doubt,
    CASE recovery
        WHEN 1 THEN 'resend'
        WHEN 2 THEN 'probe'
        WHEN 3 THEN 'hold'
        ELSE 'unknown: ' || recovery
    END AS recovery,
    fence,
    owner,
    iif(until = 0, NULL, strftime('%Y-%m-%dT%H:%M:%fZ', until / 1e6, 'unixepoch')) AS lease_until,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', (created_at + changed) / 1e6, 'unixepoch') AS changed_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', (created_at + kept) / 1e6, 'unixepoch') AS expires_at,
    -- Bytes 3 and 4 of a head of format 1, big-endian.
    iif(
        substr(head, 1, 1) = x'01',
        (instr('0123456789ABCDEF', substr(hex(head), 5, 1)) - 1) * 4096
        + (instr('0123456789ABCDEF', substr(hex(head), 6, 1)) - 1) * 256
        + (instr('0123456789ABCDEF', substr(hex(head), 7, 1)) - 1) * 16
        + (instr('0123456789ABCDEF', substr(hex(head), 8, 1)) - 1),
        NULL
    ) AS status,
    length(body) AS body_bytes,
    -- Text where it is text: taken as UTF-8 and back, nothing changed.
    iif(
        substr(head, 2, 1) <> x'02' AND CAST(CAST(body AS TEXT) AS BLOB) = body AND instr(body, x'00') = 0,
        CAST(body AS TEXT),
        NULL
    ) AS body,
    -- The second byte of a head says whether headers and body are encrypted.
    ifnull(substr(head, 2, 1) = x'02', 0) AS encrypted,
    lower(hex(id)) AS id
FROM (
    SELECT
        c.*,
        coalesce(e.state, o.state) AS state,
        ifnull(o.doubt, 0) AS doubt,
        ifnull(o.until, 0) AS until,
        coalesce(e.changed_after, c.changed_after) AS changed,
        coalesce(e.kept_for, c.kept_for) AS kept,
        e.head,
        e.body
    FROM hapax_claims AS c
    LEFT JOIN hapax_ends AS e ON e.row = c.row
    LEFT JOIN hapax_open AS o ON o.row = c.row
);
