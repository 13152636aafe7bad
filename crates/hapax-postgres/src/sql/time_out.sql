UPDATE hapax.operations AS o
SET (state, until, changed_at, expires_at, request, answer) = (
    SELECT 4, 0, c.now, c.now + (o.expires_at - o.created_at), NULL::bytea, i.answer
    FROM (SELECT hapax.clock() AS now) AS c
)
FROM unnest($1::uuid[], $2::bytea[]) AS i(id, answer)
WHERE o.id = i.id AND o.format = 1 AND o.state = 1 AND o.expires_at <= (SELECT hapax.trusted_clock())
RETURNING o.id, o.watched
