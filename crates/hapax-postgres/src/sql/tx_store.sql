INSERT INTO hapax.responses (bucket, id, head, body, digest)
VALUES ($1::int4, $2::int8, $3::bytea, $4::bytea, $5::bytea)
