renewed AS (
    UPDATE hapax.operations AS o
    SET until = (SELECT hapax.clock() + i.lease)
    FROM (
        SELECT unnest($1::uuid[]) AS id, unnest($2::int8[]) AS fence, unnest($3::int8[]) AS owner,
               unnest($4::int8[]) AS lease
    ) AS i
    WHERE o.id = i.id AND o.format = 1 AND o.fence = i.fence AND o.owner = i.owner AND o.state = 2
    RETURNING o.id, o.until - i.lease AS now, o.until
)
