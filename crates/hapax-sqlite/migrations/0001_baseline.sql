-- Every name begins with hapax_, because the file may be shared with the tables of the program that
-- uses it. Times are microseconds since the Unix epoch.

-- Operations are a log: rows stand in the order of their claims and their ends, and nothing that is
-- written once lies under an index in another order. `row` is never given twice.
CREATE TABLE hapax_claims (
    row           INTEGER PRIMARY KEY,
    -- The digest of tenant, scope and key: one row for each is the whole promise.
    id            BLOB    NOT NULL,
    format        INTEGER NOT NULL,
    tenant        TEXT    NOT NULL,
    scope         TEXT    NOT NULL,
    -- Text, or the 16 bytes of a key that is a UUID in its usual spelling.
    key           ANY     NOT NULL,
    fingerprint   BLOB    NOT NULL,
    fence         INTEGER NOT NULL,
    owner         INTEGER NOT NULL,
    recovery      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    -- Spans from created_at are shorter to store than instants.
    changed_after INTEGER NOT NULL,
    kept_for      INTEGER NOT NULL,
    tombstone     INTEGER NOT NULL,
    request       BLOB
) STRICT;

-- How operations ended, under the row of their claim: 3 completed, 4 failed, 6 released, 7 buried.
CREATE TABLE hapax_ends (
    row           INTEGER PRIMARY KEY,
    state         INTEGER NOT NULL,
    changed_after INTEGER NOT NULL,
    -- NULL where the end changed nothing about it.
    kept_for      INTEGER,
    head          BLOB,
    body          BLOB,
    digest        BLOB
) STRICT;

-- What has not ended, so it stays small: 1 pending, 2 running, 5 in doubt.
CREATE TABLE hapax_open (
    row           INTEGER PRIMARY KEY,
    state         INTEGER NOT NULL,
    doubt         INTEGER NOT NULL,
    -- The end of the lease or of the time to be picked up; 0 where there is none.
    until         INTEGER NOT NULL
) STRICT;

-- When a purge has to look at the next 1,024 rows: no row among them is due earlier.
CREATE TABLE hapax_ranges (
    range         INTEGER PRIMARY KEY,
    due           INTEGER NOT NULL
) STRICT;

CREATE INDEX hapax_ranges_due ON hapax_ranges (due);

-- Where rows are found by their id: each run lists the ids of consecutive rows in order of the ids.
-- Rows after the last run are few, and are looked through.
CREATE TABLE hapax_runs (
    run           INTEGER PRIMARY KEY,
    format        INTEGER NOT NULL,
    -- 1 whole, 2 being written, 3 no longer used
    state         INTEGER NOT NULL,
    first_row     INTEGER NOT NULL,
    last_row      INTEGER NOT NULL,
    entries       INTEGER NOT NULL,
    -- About how many of them lead to rows that are gone.
    dead          INTEGER NOT NULL,
    chunks        INTEGER NOT NULL,
    -- How many of its chunks are there.
    built         INTEGER NOT NULL,
    -- The run that is being written from this one; 0 where there is none.
    into_run      INTEGER NOT NULL
) STRICT;

-- A part of a run. Its number is that of the run, times 2^24, plus its own; its entries are four bytes
-- of an id and four of a row, counted from the run's first, in order.
CREATE TABLE hapax_chunks (
    chunk         INTEGER PRIMARY KEY,
    entries       BLOB    NOT NULL
) STRICT;

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
    iif(CAST(CAST(body AS TEXT) AS BLOB) = body AND instr(body, x'00') = 0, CAST(body AS TEXT), NULL)
        AS body,
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

-- What the parts of an operation came to. Times are microseconds since the Unix epoch.
CREATE TABLE hapax_steps (
    id            BLOB    NOT NULL,
    -- Its place among the operation's steps, counted from one.
    number        INTEGER NOT NULL,
    -- created_at of the operation's record: what an earlier life left behind does not count.
    life          INTEGER NOT NULL,
    format        INTEGER NOT NULL,
    name          TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    result        BLOB    NOT NULL,
    digest        BLOB    NOT NULL,
    PRIMARY KEY (id, number)
) STRICT;

-- For people: SELECT * FROM hapax_steps_readable WHERE id = '...' ORDER BY number.
CREATE VIEW hapax_steps_readable AS
SELECT
    lower(hex(s.id)) AS id,
    s.number,
    s.name,
    s.version,
    strftime('%Y-%m-%dT%H:%M:%fZ', s.at / 1e6, 'unixepoch') AS at,
    -- Text where it is text: taken as UTF-8 and back, nothing changed.
    iif(
        CAST(CAST(s.result AS TEXT) AS BLOB) = s.result AND instr(s.result, x'00') = 0,
        CAST(s.result AS TEXT),
        NULL
    ) AS result
FROM hapax_steps AS s JOIN hapax_claims AS c ON c.id = s.id AND c.created_at = s.life;

-- What people did to records, and why. Times are microseconds since the Unix epoch.
CREATE TABLE hapax_notes (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,
    id            BLOB    NOT NULL,
    format        INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    fence         INTEGER NOT NULL,
    -- 1 release, 2 resolve as completed, 3 resolve as failed, 4 resolve as released
    deed          INTEGER NOT NULL,
    -- 1 intended, 2 done, 3 refused
    phase         INTEGER NOT NULL,
    who           TEXT    NOT NULL,
    why           TEXT    NOT NULL
) STRICT;

CREATE INDEX hapax_notes_id ON hapax_notes (id);
CREATE INDEX hapax_notes_at ON hapax_notes (at);

-- For people: SELECT * FROM hapax_notes_readable ORDER BY at DESC.
CREATE VIEW hapax_notes_readable AS
SELECT
    strftime('%Y-%m-%dT%H:%M:%fZ', at / 1e6, 'unixepoch') AS at,
    who,
    CASE deed
        WHEN 1 THEN 'release'
        WHEN 2 THEN 'resolve_completed'
        WHEN 3 THEN 'resolve_failed'
        WHEN 4 THEN 'resolve_released'
        ELSE 'unknown: ' || deed
    END AS deed,
    CASE phase
        WHEN 1 THEN 'intended'
        WHEN 2 THEN 'done'
        WHEN 3 THEN 'refused'
        ELSE 'unknown: ' || phase
    END AS phase,
    why,
    fence,
    lower(hex(id)) AS id
FROM hapax_notes;

-- Events that are published if, and only if, the transaction that wrote them committed. There is
-- one writer at a time, so positions grow in the order of the commits; none is ever given twice.
CREATE TABLE hapax_outbox (
    position      INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Microseconds since the Unix epoch: the time of a CloudEvent.
    at            INTEGER NOT NULL,
    -- A random UUID as text: the id of a CloudEvent.
    id            TEXT    NOT NULL,
    format        INTEGER NOT NULL,
    -- The type of a CloudEvent, and where it is published.
    topic         TEXT    NOT NULL,
    -- The subject of a CloudEvent: events of one topic and key keep their order.
    key           TEXT    NOT NULL,
    content_type  TEXT    NOT NULL,
    -- A JSON object of names and texts.
    headers       TEXT    NOT NULL,
    payload       BLOB    NOT NULL
) STRICT;

-- How far events have been sent. Times are microseconds since the Unix epoch.
CREATE TABLE hapax_outbox_destinations (
    name          TEXT    PRIMARY KEY,
    -- A JSON array of names, beginnings ('orders.*'), or '*'.
    topics        TEXT    NOT NULL,
    paused        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who sends, and until when it is trusted to be alive.
CREATE TABLE hapax_outbox_relays (
    destination   TEXT    NOT NULL,
    owner         INTEGER NOT NULL,
    until         INTEGER NOT NULL,
    PRIMARY KEY (destination, owner)
) STRICT, WITHOUT ROWID;

-- How far each lane is: everything at or below `low` is final.
CREATE TABLE hapax_outbox_lanes (
    destination   TEXT    NOT NULL,
    lane          INTEGER NOT NULL,
    owner         INTEGER,
    -- Grows whenever the owner changes; what an owner writes names it.
    fence         INTEGER NOT NULL,
    low           INTEGER NOT NULL,
    PRIMARY KEY (destination, lane)
) STRICT, WITHOUT ROWID;

-- What was put aside: a copy, so that the log can go.
CREATE TABLE hapax_outbox_parked (
    destination   TEXT    NOT NULL,
    position      INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    id            TEXT    NOT NULL,
    format        INTEGER NOT NULL,
    topic         TEXT    NOT NULL,
    key           TEXT    NOT NULL,
    content_type  TEXT    NOT NULL,
    headers       TEXT    NOT NULL,
    payload       BLOB    NOT NULL,
    -- Whether later events of its key wait behind it.
    holds_key     INTEGER NOT NULL,
    -- Whether it is to be sent again.
    replaying     INTEGER NOT NULL,
    attempts      INTEGER NOT NULL,
    reason        TEXT    NOT NULL,
    parked_at     INTEGER NOT NULL,
    PRIMARY KEY (destination, position)
) STRICT;

CREATE INDEX hapax_outbox_parked_key ON hapax_outbox_parked (destination, topic, key);

-- For people: SELECT * FROM hapax_outbox_parked_readable.
CREATE VIEW hapax_outbox_parked_readable AS
SELECT
    destination,
    topic,
    key,
    reason,
    attempts,
    iif(replaying, 'replaying', 'parked') AS state,
    holds_key,
    strftime('%Y-%m-%dT%H:%M:%fZ', at / 1e6, 'unixepoch') AS at,
    strftime('%Y-%m-%dT%H:%M:%fZ', parked_at / 1e6, 'unixepoch') AS parked_at,
    iif(CAST(CAST(payload AS TEXT) AS BLOB) = payload AND instr(payload, x'00') = 0, CAST(payload AS TEXT), NULL)
        AS payload,
    headers,
    content_type,
    position,
    id
FROM hapax_outbox_parked;

-- What became of messages: one effect for each, however often it is delivered. Times are microseconds
-- since the Unix epoch.

-- Who consumes. Messages are kept by the consumer's number.
CREATE TABLE hapax_inbox_consumers (
    number        INTEGER PRIMARY KEY,
    name          TEXT    NOT NULL UNIQUE,
    -- For how long what became of a message is remembered, in microseconds.
    retention     INTEGER NOT NULL
) STRICT;

CREATE TABLE hapax_inbox (
    consumer      INTEGER NOT NULL,
    message_id    TEXT    NOT NULL,
    -- The first sixteen bytes of the SHA-256 of its payload.
    content       BLOB    NOT NULL,
    -- 1 done, 2 failed, 3 held for its turn, 4 passed over
    state         INTEGER NOT NULL,
    received_at   INTEGER NOT NULL,
    reason        TEXT,
    PRIMARY KEY (consumer, message_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX hapax_inbox_received_at ON hapax_inbox (consumer, received_at);

-- Attempts that failed, for messages that may still succeed.
CREATE TABLE hapax_inbox_attempts (
    consumer      INTEGER NOT NULL,
    message_id    TEXT    NOT NULL,
    attempts      INTEGER NOT NULL,
    changed_at    INTEGER NOT NULL,
    PRIMARY KEY (consumer, message_id)
) STRICT, WITHOUT ROWID;

-- How far a partition has come, where that is kept here and not by the broker.
CREATE TABLE hapax_inbox_offsets (
    consumer      INTEGER NOT NULL,
    source        TEXT    NOT NULL,
    partition     INTEGER NOT NULL,
    -- Grows whenever somebody takes the partition; what its owner writes names it.
    fence         INTEGER NOT NULL,
    -- The first offset that was not acted on; NULL where none ever was.
    next          INTEGER,
    PRIMARY KEY (consumer, source, partition)
) STRICT, WITHOUT ROWID;

-- What each key has come to. Kept for good: whoever forgot would take an old version for the newest.
CREATE TABLE hapax_inbox_versions (
    consumer      INTEGER NOT NULL,
    key           TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    PRIMARY KEY (consumer, key)
) STRICT, WITHOUT ROWID;

-- Messages that are ahead of their turn.
CREATE TABLE hapax_inbox_held (
    consumer      INTEGER NOT NULL,
    key           TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    message_id    TEXT    NOT NULL,
    business_id   INTEGER NOT NULL,
    source        TEXT    NOT NULL,
    headers       BLOB    NOT NULL,
    payload       BLOB    NOT NULL,
    held_at       INTEGER NOT NULL,
    PRIMARY KEY (consumer, key, version, message_id)
) STRICT;

-- Messages that could not be acted on, and why.
CREATE TABLE hapax_inbox_dead (
    consumer      INTEGER NOT NULL,
    message_id    TEXT    NOT NULL,
    content       BLOB    NOT NULL,
    reason        TEXT    NOT NULL,
    detail        TEXT    NOT NULL,
    source        TEXT    NOT NULL,
    key           TEXT,
    headers       BLOB    NOT NULL,
    payload       BLOB    NOT NULL,
    dead_at       INTEGER NOT NULL,
    PRIMARY KEY (consumer, message_id, content)
) STRICT;

CREATE VIEW hapax_inbox_readable AS
SELECT c.name AS consumer, i.message_id,
       CASE i.state WHEN 1 THEN 'done' WHEN 2 THEN 'failed' WHEN 3 THEN 'held' WHEN 4 THEN 'passed' ELSE i.state END AS state,
       i.reason, strftime('%Y-%m-%dT%H:%M:%fZ', i.received_at / 1000000.0, 'unixepoch') AS received_at
FROM hapax_inbox AS i JOIN hapax_inbox_consumers AS c ON c.number = i.consumer;

CREATE VIEW hapax_inbox_dead_readable AS
SELECT c.name AS consumer, d.message_id, d.reason, d.detail, d.source, d.key, CAST(d.payload AS TEXT) AS payload,
       strftime('%Y-%m-%dT%H:%M:%fZ', d.dead_at / 1000000.0, 'unixepoch') AS dead_at
FROM hapax_inbox_dead AS d JOIN hapax_inbox_consumers AS c ON c.number = d.consumer;
