SELECT pg_try_advisory_xact_lock($1::int8),
       EXISTS (SELECT FROM hapax.operations AS o WHERE o.id = encode($2::bytea, 'hex')::uuid)
