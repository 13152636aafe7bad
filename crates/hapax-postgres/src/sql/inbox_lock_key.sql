SELECT pg_try_advisory_xact_lock(hashtextextended($2::text, 4294967296 + $1::int8))::int4::int8
