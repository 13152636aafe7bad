-- One row per operation. Every name begins with hapax_, because the file may be shared with the
-- tables of the program that uses it. Times are microseconds since the Unix epoch.
CREATE TABLE hapax_operations (
    row           INTEGER PRIMARY KEY,
    -- The digest of tenant, scope and key: its uniqueness is the whole promise.
    id            BLOB    NOT NULL,
    format        INTEGER NOT NULL,
    tenant        TEXT    NOT NULL,
    scope         TEXT    NOT NULL,
    -- Text, or the 16 bytes of a key that is a UUID in its usual spelling.
    key           ANY     NOT NULL,
    fingerprint   BLOB    NOT NULL,
    -- 1 pending, 2 running, 3 completed, 4 failed, 5 in doubt, 6 released, 7 buried
    state         INTEGER NOT NULL,
    fence         INTEGER NOT NULL,
    owner         INTEGER NOT NULL,
    recovery      INTEGER NOT NULL,
    doubt         INTEGER NOT NULL,
    -- The end of the lease or of the time to be picked up; 0 where there is none.
    until         INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    -- Spans from created_at are shorter to store than instants.
    changed_after INTEGER NOT NULL,
    kept_for      INTEGER NOT NULL,
    tombstone     INTEGER NOT NULL,
    request       BLOB,
    head          BLOB,
    body          BLOB,
    digest        BLOB
) STRICT;

CREATE UNIQUE INDEX hapax_operations_id ON hapax_operations (id);

-- Only what is in flight, so it stays small: what a sweeper looks through.
CREATE INDEX hapax_operations_in_flight ON hapax_operations (until) WHERE state IN (1, 2);

-- Only what waits for a person.
CREATE INDEX hapax_operations_in_doubt ON hapax_operations (id) WHERE state = 5;

-- When a purge has to look at a row; what is running or in doubt never expires. Not IN: a list of
-- more than two numbers costs a temporary table at every write.
CREATE INDEX hapax_operations_due ON hapax_operations (created_at + kept_for + iif(state = 7, tombstone, 0))
    WHERE state <> 2 AND state <> 5;

-- The version of these tables, and the salt they were created with.
CREATE TABLE hapax_meta (
    name  TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- For people: SELECT * FROM hapax_operations_readable WHERE key = '...'.
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
    strftime('%Y-%m-%dT%H:%M:%fZ', (created_at + changed_after) / 1e6, 'unixepoch') AS changed_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', (created_at + kept_for) / 1e6, 'unixepoch') AS expires_at,
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
    iif(CAST(CAST(body AS TEXT) AS BLOB) = body AND instr(body, x'00') = 0, CAST(body AS TEXT), NULL)
        AS body,
    lower(hex(id)) AS id
FROM hapax_operations;
