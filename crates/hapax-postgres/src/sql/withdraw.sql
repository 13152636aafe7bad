DELETE FROM hapax.operations
WHERE id = $1 AND fence = 1 AND owner = $2 AND state = 2 AND format = 1
RETURNING 1
