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
