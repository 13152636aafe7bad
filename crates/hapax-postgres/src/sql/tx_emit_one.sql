-- The same as tx_emit.sql for one event, which is what most transactions emit: without arrays.
INSERT INTO hapax.outbox_{table} (position, at, id, segment, lane, format, topic, key, content_type, headers, payload)
SELECT p.position, hapax.clock(), gen_random_uuid(), {table}, $3::int8, 1,
       $4::text, $5::text, $6::text, $7::text::jsonb, $8::bytea
FROM (SELECT CASE WHEN pg_advisory_xact_lock($2::int8) IS NULL THEN NULL
                  ELSE nextval('hapax.outbox_positions') END AS position OFFSET 0) AS p
WHERE p.position >> 16 = $1::int8
RETURNING position
