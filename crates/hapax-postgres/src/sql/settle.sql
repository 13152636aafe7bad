settled AS (
    UPDATE hapax.operations AS o
    SET state = i.state, doubt = i.doubt, until = 0, changed_at = i.now,
        expires_at = CASE WHEN i.keep < 0 THEN i.now - i.keep ELSE greatest(o.expires_at, i.now + i.keep) END,
        tombstone = CASE WHEN i.keep < 0 THEN 0 ELSE o.tombstone END,
        request = CASE WHEN i.state = 5 THEN o.request END,
        answer = i.answer
    FROM (
        SELECT unnest($1::uuid[]) AS id, unnest($2::int8[]) AS fence, unnest($3::int8[]) AS owner,
               unnest($4::int2[]) AS seen, unnest($5::int8[]) AS until, unnest($6::int2[]) AS state,
               unnest($7::int2[]) AS doubt, unnest($8::int8[]) AS keep, unnest($9::bytea[]) AS answer,
               (SELECT hapax.clock()) AS now
    ) AS i
    WHERE o.id = i.id AND o.format = 1 AND o.fence = i.fence AND o.owner = i.owner
      AND o.state IN (1, 2, 5)
      AND (i.seen IS NULL OR (o.state = i.seen AND o.until = i.until))
    RETURNING o.id, o.changed_at, o.watched, o.state
)
