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
