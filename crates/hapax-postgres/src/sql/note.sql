INSERT INTO hapax.notes (at, id, format, fence, deed, phase, who, why)
VALUES (hapax.clock(), $1, $2, $3, $4, $5, $6, $7)
