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
FROM hapax_steps AS s JOIN hapax_operations AS o ON o.id = s.id AND o.created_at = s.life;
