UPDATE hapax.operations AS o SET filed_at = hapax.clock()
FROM unnest($1::uuid[]) AS i(id)
WHERE o.id = i.id AND o.format = 1 AND o.state IN (1, 2) AND o.until <= hapax.clock() AND o.filed_at < $2
