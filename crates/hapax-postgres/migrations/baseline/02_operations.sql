-- One slim table without partitions, so that no boundary lets a key be claimed twice.
-- Its key is its only index: a claim writes one entry, a settle none, because it stays in its page (HOT). What else
-- is looked for is found by time and place: see hapax.claim_log, and the laps of sweeps and purges.
CREATE TABLE hapax.operations (
    fence         bigint NOT NULL,
    owner         bigint NOT NULL,
    until         bigint NOT NULL,
    created_at    bigint NOT NULL,
    changed_at    bigint NOT NULL,
    expires_at    bigint NOT NULL,
    tombstone     bigint NOT NULL,
    id            uuid PRIMARY KEY,
    format        smallint NOT NULL,
    state         smallint NOT NULL,
    recovery      smallint NOT NULL,
    doubt         smallint NOT NULL,
    watched       boolean NOT NULL DEFAULT false,
    fingerprint   bytea NOT NULL,
    tenant        text NOT NULL,
    scope         text NOT NULL,
    key           text NOT NULL,
    request       bytea,
    -- The outcome: sixteen bytes of digest, the length of the head in four, the head, the body.
    answer        bytea
) WITH (
    -- What a settle adds needs room in the page of its claim; a record that a transaction writes whole needs none, and
    -- whatever is kept free is lost to it. Where only one of the two is used, 20 or 90 is better.
    fillfactor = 45,
    vacuum_truncate = false,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);

-- What does not fit into the page is kept beside it as it is. Answers are often compressed already, and trying
-- costs more than anything else in a settle; who would rather save space: SET STORAGE EXTENDED.
ALTER TABLE hapax.operations ALTER COLUMN request SET STORAGE EXTERNAL, ALTER COLUMN answer SET STORAGE EXTERNAL;

-- A table without pages is planned as one that will stay small, and a session that keeps its plans would read
-- all of it for every key. This one begins with some pages, and keeps them.
INSERT INTO hapax.operations (id, format, tenant, scope, key, fingerprint, fence, owner, recovery, doubt, state,
    tombstone, created_at, changed_at, expires_at, until)
SELECT gen_random_uuid(), 1, '', '', '', '', 1, 1, 1, 0, 6, 0, 0, 0, 0, 0 FROM generate_series(1, 1024);
DELETE FROM hapax.operations;

-- Where claims were written, one row for each batch, until somebody has looked at them.
CREATE TABLE hapax.claim_log (
    at            bigint NOT NULL,
    places        tid[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Operations that take long, or that nobody will ever end, and when to look at them.
CREATE TABLE hapax.unfinished (
    id            uuid PRIMARY KEY,
    look_at       bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE INDEX unfinished_look_at ON hapax.unfinished (look_at);

-- Operations that were left in doubt, so that they are found among all others.
CREATE TABLE hapax.doubts (
    id            uuid PRIMARY KEY,
    since         bigint NOT NULL
);

-- How long the head in an answer is; NULL where there is none.
CREATE FUNCTION hapax.head_length(answer bytea) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN octet_length(answer) >= 20 THEN ('x' || encode(substr(answer, 17, 4), 'hex'))::bit(32)::integer END;

-- The body in an answer; NULL where there is none.
CREATE FUNCTION hapax.answer_body(answer bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN hapax.head_length(answer) BETWEEN 0 AND octet_length(answer) - 20
            THEN substr(answer, 21 + hapax.head_length(answer)) END;

CREATE VIEW hapax.operations_readable AS
SELECT o.tenant, o.scope, o.key,
       (ARRAY['pending', 'running', 'completed', 'failed', 'in_doubt', 'released', 'buried'])[o.state] AS state,
       (ARRAY['unanswered', 'interrupted', 'owner_vanished'])[nullif(o.doubt, 0)] AS doubt,
       (ARRAY['resend', 'probe', 'hold'])[o.recovery] AS recovery,
       o.fence,
       CASE WHEN o.until <> 0 THEN hapax.as_time(o.until) END AS until,
       hapax.as_time(o.created_at) AS created_at,
       hapax.as_time(o.changed_at) AS changed_at,
       hapax.as_time(o.expires_at) AS expires_at,
       o.tombstone * interval '1 microsecond' AS tombstone,
       CASE WHEN octet_length(o.answer) >= 24 THEN get_byte(o.answer, 22) * 256 + get_byte(o.answer, 23) END AS status,
       octet_length(hapax.answer_body(o.answer)) AS body_bytes,
       hapax.as_text(hapax.answer_body(o.answer)) AS body_text,
       hapax.as_json(hapax.answer_body(o.answer)) AS body_json,
       o.id
FROM hapax.operations AS o;

COMMENT ON VIEW hapax.operations_readable IS
    'Operations for people: states as words, instants as timestamps, outcomes decoded, requests left out.';

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
