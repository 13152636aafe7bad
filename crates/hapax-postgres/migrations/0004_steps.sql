-- What the parts of an operation came to.
CREATE TABLE hapax.steps (
    id            uuid NOT NULL,
    -- Its place among the operation's steps, counted from one.
    number        integer NOT NULL,
    -- created_at of the operation's record: what an earlier life left behind does not count.
    life          bigint NOT NULL,
    at            bigint NOT NULL,
    format        smallint NOT NULL,
    version       integer NOT NULL,
    name          text NOT NULL,
    digest        bytea NOT NULL,
    result        bytea NOT NULL,
    PRIMARY KEY (id, number)
);

CREATE VIEW hapax.steps_readable AS
SELECT s.id, s.number, s.name, s.version, hapax.as_time(s.at) AS at, hapax.as_text(s.result) AS result
FROM hapax.steps AS s JOIN hapax.operations AS o ON o.id = s.id AND o.created_at = s.life;

COMMENT ON VIEW hapax.steps_readable IS 'What the finished steps of operations came to.';

UPDATE hapax.meta SET version = 4;
