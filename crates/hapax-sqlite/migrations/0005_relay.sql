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
