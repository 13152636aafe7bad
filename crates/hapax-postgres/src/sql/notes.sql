SELECT n.format, n.at, n.fence, n.deed, n.phase, n.who, n.why
FROM (SELECT * FROM hapax.notes WHERE id = $1 ORDER BY number DESC LIMIT $2) AS n
ORDER BY n.number
