settled AS (
    UPDATE hapax.operations AS o
    SET state = i.state, doubt = i.doubt, until = 0, changed_at = i.now,
        expires_at = CASE WHEN i.keep < 0 THEN i.now - i.keep ELSE greatest(o.expires_at, i.now + i.keep) END,
        tombstone = CASE WHEN i.keep < 0 THEN 0 ELSE o.tombstone END,
        request = CASE WHEN i.state = 5 THEN o.request END,
        answer = i.answer
    FROM (
        SELECT unnest($1::uuid[]) AS id, term($2::int8[]) AS fence, term($3::int8[]) AS owner,
               term($4::int2[]) AS seen, term($5::int8[]) AS until, term($6::int2[]) AS state,
               term($7::int2[]) AS doubt, term($8::int8[]) AS keep, unnest($9::bytea[]) AS answer,
               (SELECT hapax.clock()) AS now
    ) AS i
    WHERE o.id = i.id AND o.format = 1 AND o.fence = i.fence AND o.owner = i.owner
      AND o.state IN (1, 2, 5)
      AND (i.seen IS NULL OR (o.state = i.seen AND o.until = i.until))
    RETURNING o.id, o.changed_at, o.watched, o.state
)
