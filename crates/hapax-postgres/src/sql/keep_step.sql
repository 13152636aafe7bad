running AS (
    SELECT i.*, hapax.clock() AS now
    FROM (
        SELECT unnest($1::uuid[]) AS id, unnest($2::int8[]) AS fence, unnest($3::int8[]) AS owner,
               unnest($4::int8[]) AS life, unnest($5::int4[]) AS number, unnest($6::int2[]) AS format,
               unnest($7::text[]) AS name, unnest($8::int4[]) AS version, unnest($9::bytea[]) AS result,
               unnest($10::bytea[]) AS digest
    ) AS i
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
