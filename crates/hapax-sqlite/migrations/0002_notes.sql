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
