SELECT hapax.create_bucket(needed.bucket + ahead)
FROM (
    SELECT DISTINCT hapax.bucket(greatest(coalesce(o.expires_at, 0), c.now + i.keep)) AS bucket
    FROM (SELECT hapax.clock() AS now) AS c,
         unnest($1::uuid[], $2::int8[]) AS i(id, keep)
         LEFT JOIN hapax.operations AS o ON o.id = i.id
) AS needed, generate_series(0, 1) AS ahead
