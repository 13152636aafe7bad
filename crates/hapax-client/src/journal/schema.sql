-- One row per operation. Times are microseconds since the Unix epoch; beside each, in a column
-- whose name ends in _boot, 16 bytes that say which start of the machine it belongs to and 8 that
-- count the microseconds since that start.
CREATE TABLE hapax_calls (
    row           INTEGER PRIMARY KEY,
    name          TEXT    NOT NULL UNIQUE,
    format        INTEGER NOT NULL,
    -- 1 pending, 2 done, 3 refused, 4 unknown, 5 gave up
    state         INTEGER NOT NULL,
    fence         INTEGER NOT NULL,
    owner         INTEGER NOT NULL,
    -- How long, from noted_at on, the owner is taken to be alive; NULL if nobody has it.
    lease_us      INTEGER,
    attempts      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    created_boot  BLOB,
    -- Since when it may have been sent; NULL if no attempt can have had an effect.
    sent_at       INTEGER,
    sent_boot     BLOB,
    -- The owner's last note, and what was left of the deadline then.
    noted_at      INTEGER NOT NULL,
    noted_boot    BLOB,
    left_us       INTEGER NOT NULL,
    ended_at      INTEGER,
    ended_boot    BLOB,
    reason        TEXT,
    key           TEXT    NOT NULL,
    method        TEXT    NOT NULL,
    url           TEXT    NOT NULL,
    -- As on the wire: lines of `name: value`. Those that were given and not kept, by name.
    headers       BLOB    NOT NULL,
    withheld      TEXT    NOT NULL,
    -- Of what makes two requests the same, and of everything that never changes.
    digest        BLOB    NOT NULL,
    seal          BLOB    NOT NULL,
    answer_head   BLOB,
    answer_digest BLOB,
    answer_body   BLOB,
    body          BLOB    NOT NULL
) STRICT;

-- What somebody should be pursuing.
CREATE INDEX hapax_calls_pending ON hapax_calls (state) WHERE state = 1;

-- What a purge looks through. What is unknown waits for a person.
CREATE INDEX hapax_calls_ended ON hapax_calls (ended_boot, ended_at)
    WHERE state <> 1 AND state <> 4;

-- For people: SELECT * FROM hapax_calls_readable.
CREATE VIEW hapax_calls_readable AS
SELECT
    name,
    CASE state
        WHEN 1 THEN 'pending'
        WHEN 2 THEN 'done'
        WHEN 3 THEN 'refused'
        WHEN 4 THEN 'unknown'
        WHEN 5 THEN 'gave_up'
        ELSE 'never written: ' || state
    END AS state,
    reason,
    -- Bytes 3 and 4 of a head of format 1, big-endian.
    iif(
        substr(answer_head, 1, 1) = x'01',
        (instr('0123456789ABCDEF', substr(hex(answer_head), 5, 1)) - 1) * 4096
        + (instr('0123456789ABCDEF', substr(hex(answer_head), 6, 1)) - 1) * 256
        + (instr('0123456789ABCDEF', substr(hex(answer_head), 7, 1)) - 1) * 16
        + (instr('0123456789ABCDEF', substr(hex(answer_head), 8, 1)) - 1),
        NULL
    ) AS status,
    attempts,
    method,
    url,
    key,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', sent_at / 1e6, 'unixepoch') AS first_sent_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', noted_at / 1e6, 'unixepoch') AS noted_at,
    left_us / 1e6 AS seconds_left_then,
    lease_us / 1e6 AS lease_seconds_from_then,
    strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1e6, 'unixepoch') AS ended_at,
    fence,
    CAST(headers AS TEXT) AS headers,
    withheld,
    length(body) AS body_bytes,
    -- Text where it is text: taken as UTF-8 and back, nothing changed.
    iif(CAST(CAST(body AS TEXT) AS BLOB) = body AND instr(body, x'00') = 0, CAST(body AS TEXT), NULL)
        AS body,
    iif(
        CAST(CAST(answer_body AS TEXT) AS BLOB) = answer_body AND instr(answer_body, x'00') = 0,
        CAST(answer_body AS TEXT),
        NULL
    ) AS answer
FROM hapax_calls;
