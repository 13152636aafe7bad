DELETE FROM hapax.notes AS n
WHERE n.number IN (SELECT number FROM hapax.notes WHERE at <= (SELECT hapax.trusted_clock()) - $1::int8 ORDER BY at LIMIT $2)
