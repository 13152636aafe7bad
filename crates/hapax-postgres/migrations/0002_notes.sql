-- What people did to records, and why.
CREATE TABLE hapax.notes (
    number        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at            bigint NOT NULL,
    fence         bigint NOT NULL,
    id            uuid NOT NULL,
    format        smallint NOT NULL,
    -- 1 release, 2 resolve as completed, 3 resolve as failed, 4 resolve as released
    deed          smallint NOT NULL,
    -- 1 intended, 2 done, 3 refused
    phase         smallint NOT NULL,
    who           text NOT NULL,
    why           text NOT NULL
);

CREATE INDEX notes_id ON hapax.notes (id, number);
CREATE INDEX notes_at ON hapax.notes (at);

CREATE VIEW hapax.notes_readable AS
SELECT hapax.as_time(n.at) AS at, n.who,
       (ARRAY['release', 'resolve_completed', 'resolve_failed', 'resolve_released'])[n.deed] AS deed,
       (ARRAY['intended', 'done', 'refused'])[n.phase] AS phase,
       n.why, n.fence, n.id
FROM hapax.notes AS n;

COMMENT ON VIEW hapax.notes_readable IS 'What people did to operations, and why.';

UPDATE hapax.meta SET version = 2;
