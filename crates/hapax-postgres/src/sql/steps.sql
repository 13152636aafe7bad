SELECT o.created_at, s.life, s.number, s.format, s.name, s.version, s.at, s.result, s.digest
FROM hapax.operations AS o JOIN hapax.steps AS s ON s.id = o.id
WHERE o.id = $1
