SELECT hapax.create_bucket(hapax.bucket(greatest($1::int8, hapax.clock() + $2::int8)) + ahead)
FROM generate_series(0, 1) AS ahead
