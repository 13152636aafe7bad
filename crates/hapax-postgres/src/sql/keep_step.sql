running AS (
    SELECT i.*, hapax.clock() AS now
    FROM unnest($1::uuid[], $2::int8[], $3::int8[], $4::int8[], $5::int4[], $6::int2[], $7::text[], $8::int4[],
                $9::bytea[], $10::bytea[])
         AS i(id, fence, owner, life, number, format, name, version, result, digest)
    JOIN hapax.operations AS o ON o.id = i.id
    WHERE o.format = 1 AND o.fence = i.fence AND o.owner = i.owner AND o.state = 2 AND o.created_at = i.life
    -- Until this is committed nobody takes over: who does, finds the step.
    FOR NO KEY UPDATE OF o
),
kept AS (
    INSERT INTO hapax.steps AS s (id, number, life, at, format, version, name, digest, result)
    SELECT id, number, life, now, format, version, name, digest, result FROM running
    ON CONFLICT (id, number) DO UPDATE
    SET life = excluded.life, at = excluded.at, format = excluded.format, version = excluded.version,
        name = excluded.name, digest = excluded.digest, result = excluded.result
    WHERE s.life <> excluded.life
)
