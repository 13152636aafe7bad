-- Natural idempotency: writes that are harmless to repeat because of what they say, without a key of
-- ours. docs/natural.md is the manual. Errors:
--   HX101 an argument is missing, or contradicts another  HX102 no such table or column
--   HX103 a value or a type does not fit                  HX104 the key does not name one row
--   HX105 this isolation level cannot keep the promise    HX106 the row can be neither written nor seen
--
-- The functions change the caller's tables with the caller's rights, in the caller's transaction.
-- Their statements are built under a search path of our own, and run under the caller's, because
-- triggers and policies of the table may need it.

-- How a table, a key and fields are written in a statement: `t` is the row that is there, `g` the
-- given one, taken from the parameter `content`.
CREATE TYPE hapax.natural_parts AS (
    relation      text,
    columns       text,
    key_names     text,
    names         text,
    listed        text,
    matches       text,
    assigns       text,
    same          text,
    content       jsonb
);

-- The operator that says whether two values of a type are equal. A type of an extension brings its
-- own, from a schema that may not be in the search path.
CREATE FUNCTION hapax.natural_equals(type oid) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found_type pg_type%ROWTYPE;
    found_operator text;
BEGIN
    LOOP
        SELECT t.* INTO found_type FROM pg_type AS t WHERE t.oid = type;
        EXIT WHEN found_type.typtype <> 'd';
        type := found_type.typbasetype;
    END LOOP;
    IF found_type.typnamespace <> 'pg_catalog'::regnamespace THEN
        SELECT format('OPERATOR(%I.%s)', n.nspname, o.oprname) INTO found_operator
        FROM pg_opclass AS c
        JOIN pg_am AS m ON m.oid = c.opcmethod AND m.amname = 'btree'
        JOIN pg_amop AS a ON a.amopfamily = c.opcfamily AND a.amopstrategy = 3
                         AND a.amoplefttype = c.opcintype AND a.amoprighttype = c.opcintype
        JOIN pg_operator AS o ON o.oid = a.amopopr
        JOIN pg_namespace AS n ON n.oid = o.oprnamespace
        WHERE c.opcintype = type AND c.opcdefault;
    END IF;
    RETURN coalesce(found_operator, 'OPERATOR(pg_catalog.=)');
END
$$;

-- Refuses arguments that cannot be meant, before anything is touched.
CREATE FUNCTION hapax.natural_check(target regclass, key jsonb, fields jsonb) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    wrong text;
BEGIN
    IF target IS NULL OR jsonb_typeof($2) IS DISTINCT FROM 'object'
       OR jsonb_typeof($3) IS DISTINCT FROM 'object' OR $2 = '{}' THEN
        RAISE EXCEPTION USING ERRCODE = 'HX101', MESSAGE = 'the table, the key or the fields are missing',
            HINT = 'Give key and fields as JSON objects of columns and values; a key has at least one column.';
    END IF;
    SELECT k.name INTO wrong FROM jsonb_each($2) AS k(name, value)
    WHERE k.value = 'null' OR $3 ? k.name LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'HX101',
            MESSAGE = format('column "%s" of the key is NULL, or is among the fields too', wrong),
            HINT = 'A key names a row by values that are there and stay.';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = target AND c.relkind IN ('r', 'p')) THEN
        RAISE EXCEPTION USING ERRCODE = 'HX102', MESSAGE = format('%s is no table', target),
            HINT = 'Views and foreign tables cannot be used here.';
    END IF;
    SELECT n INTO wrong FROM jsonb_object_keys($2 || $3) AS n
    WHERE NOT EXISTS (SELECT FROM pg_attribute AS a
                      WHERE a.attrelid = target AND a.attname = n AND a.attnum > 0
                        AND NOT a.attisdropped AND a.attgenerated = '') LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'HX102',
            MESSAGE = format('%s has no column "%s" that can be given', target, wrong),
            HINT = 'Upper and lower case differ here; generated columns cannot be given.';
    END IF;
END
$$;

CREATE FUNCTION hapax.natural_parse(target regclass, key jsonb, fields jsonb) RETURNS hapax.natural_parts
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    parts hapax.natural_parts;
BEGIN
    PERFORM hapax.natural_check(target, $2, $3);
    SELECT (SELECT format('%s.%I', r.relnamespace::regnamespace, r.relname) FROM pg_class AS r WHERE r.oid = target),
           string_agg(quote_ident(c.name) || ' ' || c.type, ', '),
           string_agg(quote_ident(c.name), ', ') FILTER (WHERE c.is_key),
           string_agg(quote_ident(c.name), ', '),
           string_agg('g.' || quote_ident(c.name), ', '),
           string_agg(format('t.%1$I %2$s g.%1$I', c.name, c.equals), ' AND ') FILTER (WHERE c.is_key),
           string_agg(format('%1$I = g.%1$I', c.name), ', ') FILTER (WHERE NOT c.is_key),
           CASE WHEN $3 = '{}' THEN 'true' ELSE format('pg_catalog.record_image_eq(ROW(%s), ROW(%s))',
               string_agg('t.' || quote_ident(c.name), ', ') FILTER (WHERE NOT c.is_key),
               string_agg('g.' || quote_ident(c.name), ', ') FILTER (WHERE NOT c.is_key)) END,
           $2 || $3
    INTO parts
    FROM (SELECT a.attname::text AS name, $2 ? a.attname::text AS is_key,
                 format_type(a.atttypid, a.atttypmod) || CASE a.attcollation WHEN 0 THEN ''
                     ELSE ' COLLATE ' || a.attcollation::regcollation END AS type,
                 hapax.natural_equals(a.atttypid) AS equals
          FROM pg_attribute AS a
          WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped AND ($2 || $3) ? a.attname::text
          ORDER BY a.attnum) AS c;
    EXECUTE format('SELECT FROM jsonb_to_record($1) AS g(%s)', parts.columns) USING parts.content;
    RETURN parts;
EXCEPTION
    WHEN data_exception OR integrity_constraint_violation THEN
        RAISE EXCEPTION USING ERRCODE = 'HX103', MESSAGE = format('a value does not fit its column of %s', target),
            DETAIL = SQLERRM, HINT = 'A value is written as the type of its column reads it.';
END
$$;

-- Refuses a key that no unique index holds to one row.
CREATE FUNCTION hapax.natural_unique(target regclass, key jsonb) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_index AS i
        WHERE i.indrelid = target AND i.indisunique AND i.indisvalid AND i.indimmediate
          AND i.indpred IS NULL AND i.indexprs IS NULL
          AND (SELECT jsonb_object_agg(a.attname, true)
               FROM unnest(i.indkey) WITH ORDINALITY AS c(number, place)
               JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = c.number
               WHERE c.place <= i.indnkeyatts)
            = (SELECT jsonb_object_agg(n, true) FROM jsonb_object_keys($2) AS n)) THEN
        RAISE EXCEPTION USING ERRCODE = 'HX104',
            MESSAGE = format('no unique index of %s has exactly the columns of the key', target),
            HINT = 'Create one. Partial, deferrable and expression indexes do not count.';
    END IF;
END
$$;

-- Refuses a column of another type than these.
CREATE FUNCTION hapax.natural_type(target regclass, field text, allowed regtype[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found_type regtype;
BEGIN
    SELECT a.atttypid INTO found_type FROM pg_attribute AS a
    WHERE a.attrelid = target AND a.attname = field AND a.attnum > 0 AND NOT a.attisdropped;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'HX102', MESSAGE = format('%s has no column "%s"', target, field),
            HINT = 'Upper and lower case differ here.';
    ELSIF found_type <> ALL (allowed) THEN
        RAISE EXCEPTION USING ERRCODE = 'HX103',
            MESSAGE = format('column "%s" of %s is of type %s', field, target, found_type),
            HINT = format('Its type must be one of: %s.', array_to_string(allowed, ', '));
    END IF;
END
$$;

-- Refuses to go on where a statement touched another number of rows than one.
CREATE FUNCTION hapax.natural_one(target regclass, touched bigint) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF touched > 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX104', MESSAGE = format('the key names %s rows of %s', touched, target),
            HINT = 'Give all columns of a unique index.';
    ELSIF touched < 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX106', MESSAGE = format('a row of %s can be neither written nor seen', target),
            HINT = 'A trigger drops the write, a policy hides the row, or others delete it again and again.';
    END IF;
END
$$;

-- Writes the fields into the row that is there.
CREATE FUNCTION hapax.natural_update(target regclass, parts hapax.natural_parts) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    touched bigint;
BEGIN
    EXECUTE pg_catalog.format('UPDATE %s AS t SET %s FROM pg_catalog.jsonb_to_record($1) AS g(%s) WHERE %s',
                              parts.relation, parts.assigns, parts.columns, parts.matches)
    USING parts.content;
    GET DIAGNOSTICS touched = ROW_COUNT;
    PERFORM hapax.natural_one(target, touched);
END
$$;

-- Public. Makes a row be as given, and says what that took: 'inserted', 'updated', 'unchanged', or
-- 'stale' if the row that is there is not older.
CREATE FUNCTION hapax.upsert(target regclass, key jsonb, fields jsonb, newer text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    attempts_max CONSTANT integer := 16;
    parts hapax.natural_parts := hapax.natural_parse(target, key, fields);
    is_newer text := 'true';
    found_same boolean;
    found_older boolean;
    touched bigint;
BEGIN
    PERFORM hapax.natural_unique(target, key);
    IF newer IS NOT NULL THEN
        IF nullif(fields -> newer, 'null') IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'HX101', MESSAGE = 'the version is not among the fields, or is NULL',
                HINT = 'Give the version with the other fields, and name its column as `newer`.';
        END IF;
        is_newer := pg_catalog.format('coalesce(t.%1$I < g.%1$I, true)', newer);
    END IF;
    FOR attempt IN 1 .. attempts_max LOOP
        -- Locked, so that the answer is true until the transaction ends.
        EXECUTE pg_catalog.format(
            'SELECT %s, %s FROM %s AS t, pg_catalog.jsonb_to_record($1) AS g(%s) WHERE %s FOR NO KEY UPDATE OF t',
            parts.same, is_newer, parts.relation, parts.columns, parts.matches)
        INTO found_same, found_older USING parts.content;
        GET DIAGNOSTICS touched = ROW_COUNT;
        IF touched = 0 THEN
            EXECUTE pg_catalog.format(
                'INSERT INTO %s (%s) SELECT %s FROM pg_catalog.jsonb_to_record($1) AS g(%s) ON CONFLICT (%s) DO NOTHING',
                parts.relation, parts.names, parts.listed, parts.columns, parts.key_names)
            USING parts.content;
            GET DIAGNOSTICS touched = ROW_COUNT;
            CONTINUE WHEN touched = 0;
            RETURN 'inserted';
        ELSIF found_same THEN
            RETURN 'unchanged';
        ELSIF NOT found_older THEN
            RETURN 'stale';
        END IF;
        PERFORM hapax.natural_update(target, parts);
        RETURN 'updated';
    END LOOP;
    PERFORM hapax.natural_one(target, 0);
END
$$;

-- Public. Moves a row from one of these states to another: 'moved', 'already_there', 'refused' or
-- 'missing', and the state it is in now.
CREATE FUNCTION hapax.transition(
    target regclass, key jsonb, field text, from_states text[], to_state text,
    OUT answer text, OUT present text)
LANGUAGE plpgsql
AS $$
DECLARE
    parts hapax.natural_parts;
    wanted text;
    touched bigint;
BEGIN
    IF field IS NULL OR to_state IS NULL OR from_states IS NULL
       OR pg_catalog.array_position(from_states, NULL) IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'HX101', MESSAGE = 'the field or one of the states is missing',
            HINT = 'Give the states it may come from as an array, and the state it goes to; none is NULL.';
    END IF;
    parts := hapax.natural_parse(target, key, pg_catalog.jsonb_build_object(field, to_state));
    EXECUTE pg_catalog.format(
        'SELECT t.%1$I::text, g.%1$I::text FROM %2$s AS t, pg_catalog.jsonb_to_record($1) AS g(%3$s) '
        'WHERE %4$s FOR NO KEY UPDATE OF t', field, parts.relation, parts.columns, parts.matches)
    INTO present, wanted USING parts.content;
    GET DIAGNOSTICS touched = ROW_COUNT;
    IF touched = 0 THEN
        answer := 'missing';
        RETURN;
    END IF;
    PERFORM hapax.natural_one(target, touched);
    IF present = wanted THEN
        answer := 'already_there';
    ELSIF pg_catalog.array_position(from_states, present) IS NULL THEN
        answer := 'refused';
    ELSE
        PERFORM hapax.natural_update(target, parts);
        answer := 'moved';
        present := wanted;
    END IF;
END
$$;

-- Public. Changes a row only if its version is the one the caller saw: 'updated', 'stale' or
-- 'missing', and the version it has now.
CREATE FUNCTION hapax.update_versioned(
    target regclass, key jsonb, fields jsonb, version text, expected bigint,
    OUT answer text, OUT present bigint)
LANGUAGE plpgsql
AS $$
DECLARE
    parts hapax.natural_parts := hapax.natural_parse(target, key, fields);
    touched bigint;
BEGIN
    IF version IS NULL OR expected IS NULL OR fields ? version OR fields = '{}' THEN
        RAISE EXCEPTION USING ERRCODE = 'HX101', MESSAGE = 'the version, or what to change, is missing',
            HINT = 'Name the column of the version and the version you saw. It is raised by one, and not among the fields.';
    END IF;
    PERFORM hapax.natural_type(target, version, '{pg_catalog.int2,pg_catalog.int4,pg_catalog.int8}');
    EXECUTE pg_catalog.format(
        'SELECT t.%I FROM %s AS t, pg_catalog.jsonb_to_record($1) AS g(%s) WHERE %s FOR NO KEY UPDATE OF t',
        version, parts.relation, parts.columns, parts.matches)
    INTO present USING parts.content;
    GET DIAGNOSTICS touched = ROW_COUNT;
    IF touched = 0 THEN
        answer := 'missing';
        RETURN;
    END IF;
    PERFORM hapax.natural_one(target, touched);
    IF present = expected THEN
        parts.assigns := pg_catalog.format('%1$s, %2$I = t.%2$I + 1', parts.assigns, version);
        PERFORM hapax.natural_update(target, parts);
        answer := 'updated';
        present := expected + 1;
    ELSE
        answer := 'stale';
    END IF;
END
$$;

-- Public. Sets a field if it still has the expected value: 'set', 'already_set', 'changed' (by
-- somebody else) or 'missing', and the value it has now. NULL is a value like another.
CREATE FUNCTION hapax.set_if(
    target regclass, key jsonb, field text, expected jsonb, wanted jsonb,
    OUT answer text, OUT present jsonb)
LANGUAGE plpgsql
AS $$
DECLARE
    parts hapax.natural_parts;
    seen hapax.natural_parts;
    equals text;
    is_wanted boolean;
    is_expected boolean;
    as_set jsonb;
    touched bigint;
BEGIN
    IF field IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'HX101', MESSAGE = 'the field is missing', HINT = 'Name the column to set.';
    END IF;
    seen := hapax.natural_parse(target, key, pg_catalog.jsonb_build_object(field, expected));
    parts := hapax.natural_parse(target, key, pg_catalog.jsonb_build_object(field, wanted));
    SELECT hapax.natural_equals(a.atttypid) INTO equals FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid = target AND a.attname = field;
    EXECUTE pg_catalog.format(
        'SELECT coalesce(t.%1$I %2$s g.%1$I, t.%1$I IS NULL AND g.%1$I IS NULL), '
        'coalesce(t.%1$I %2$s e.%1$I, t.%1$I IS NULL AND e.%1$I IS NULL), '
        'pg_catalog.to_jsonb(t.%1$I), pg_catalog.to_jsonb(g.%1$I) '
        'FROM %3$s AS t, pg_catalog.jsonb_to_record($1) AS g(%4$s), pg_catalog.jsonb_to_record($2) AS e(%4$s) '
        'WHERE %5$s FOR NO KEY UPDATE OF t', field, equals, parts.relation, parts.columns, parts.matches)
    INTO is_wanted, is_expected, present, as_set USING parts.content, seen.content;
    GET DIAGNOSTICS touched = ROW_COUNT;
    IF touched = 0 THEN
        answer := 'missing';
        RETURN;
    END IF;
    PERFORM hapax.natural_one(target, touched);
    IF is_wanted THEN
        answer := 'already_set';
    ELSIF NOT is_expected THEN
        answer := 'changed';
    ELSE
        PERFORM hapax.natural_update(target, parts);
        answer := 'set';
        present := as_set;
    END IF;
END
$$;

-- Public. Takes the lock of a natural key until the transaction ends. False if another transaction
-- had it for longer than `wait`; the caller's transaction is usable either way.
CREATE FUNCTION hapax.lock_key(space text, key text, wait interval DEFAULT '2 seconds') RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF num_nulls(space, key) > 0 OR (wait >= '0' AND wait <= '60 seconds') IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'HX101', MESSAGE = 'the space, the key or the wait is missing or out of bounds',
            HINT = 'Give texts that are not NULL, and a wait from 0 to 60 seconds.';
    END IF;
    RETURN hapax.lock_operation(
        ('x' || encode(substr(sha256(convert_to(space, 'UTF8') || decode('00', 'hex') || convert_to(key, 'UTF8')), 1, 8),
                       'hex'))::bit(64)::bigint,
        (date_part('epoch', wait) * 1000000)::bigint);
END
$$;

-- What an account holds, by its entries. `account` is the column, the account itself is in `parts`.
CREATE FUNCTION hapax.natural_balance(ledger regclass, parts hapax.natural_parts, account text, amount text)
RETURNS numeric LANGUAGE plpgsql
AS $$
DECLARE
    balance numeric;
BEGIN
    EXECUTE pg_catalog.format(
        'SELECT coalesce(pg_catalog.sum(t.%1$I), 0) FROM %2$s AS t, pg_catalog.jsonb_to_record($1) AS g(%3$s) '
        'WHERE t.%4$I %5$s g.%4$I', amount, parts.relation, parts.columns, account,
        (SELECT hapax.natural_equals(a.atttypid) FROM pg_catalog.pg_attribute AS a
         WHERE a.attrelid = ledger AND a.attname = account))
    INTO balance USING parts.content;
    RETURN balance;
END
$$;

-- Public. Appends an entry to a ledger once: 'posted', 'already_posted', 'differs' if the key was used
-- for another entry, or 'below_floor' if it would overdraw the account. With a floor, also the balance.
CREATE FUNCTION hapax.post(
    ledger regclass, key jsonb, fields jsonb, floor numeric DEFAULT NULL,
    account text DEFAULT 'account', amount text DEFAULT 'amount',
    OUT answer text, OUT balance numeric)
LANGUAGE plpgsql
AS $$
DECLARE
    attempts_max CONSTANT integer := 16;
    parts hapax.natural_parts := hapax.natural_parse(ledger, key, fields);
    entry numeric;
    lock bigint;
    found_same boolean;
    touched bigint;
BEGIN
    PERFORM hapax.natural_unique(ledger, key);
    PERFORM hapax.natural_type(
        ledger, amount, '{pg_catalog.int2,pg_catalog.int4,pg_catalog.int8,pg_catalog.numeric}');
    IF nullif(parts.content -> account, 'null') IS NULL OR nullif(parts.content -> amount, 'null') IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'HX101', MESSAGE = 'the account or the amount of the entry is missing',
            HINT = 'Give both in the key or the fields, and name their columns if they are not account and amount.';
    END IF;
    -- Equal accounts have equal hashes, however they are written.
    EXECUTE pg_catalog.format(
        'SELECT g.%I, pg_catalog.hash_record_extended(ROW($2, g.%I), 0) '
        'FROM pg_catalog.jsonb_to_record($1) AS g(%s)', amount, account, parts.columns)
    INTO entry, lock USING parts.content, ledger::oid;
    IF entry IN ('NaN', 'Infinity', '-Infinity') OR floor IN ('NaN', 'Infinity', '-Infinity') THEN
        RAISE EXCEPTION USING ERRCODE = 'HX103', MESSAGE = 'the amount or the floor is no finite number',
            HINT = 'A balance with such an entry would mean nothing.';
    END IF;
    IF floor IS NOT NULL THEN
        -- An older snapshot would miss what others took out while we waited for the lock.
        IF pg_catalog.current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
            RAISE EXCEPTION USING ERRCODE = 'HX105', MESSAGE = 'a floor can only be kept under READ COMMITTED',
                HINT = 'Post in a transaction of that level, or keep the balance in a row that you update.';
        END IF;
        PERFORM pg_catalog.pg_advisory_xact_lock(lock);
    END IF;
    FOR attempt IN 1 .. attempts_max LOOP
        IF floor IS NOT NULL THEN
            balance := hapax.natural_balance(ledger, parts, account, amount);
        END IF;
        EXECUTE pg_catalog.format('SELECT %s FROM %s AS t, pg_catalog.jsonb_to_record($1) AS g(%s) WHERE %s',
                                  parts.same, parts.relation, parts.columns, parts.matches)
        INTO found_same USING parts.content;
        GET DIAGNOSTICS touched = ROW_COUNT;
        IF touched = 1 THEN
            answer := CASE WHEN found_same THEN 'already_posted' ELSE 'differs' END;
            RETURN;
        ELSIF entry < 0 AND balance + entry < floor THEN
            answer := 'below_floor';
            RETURN;
        END IF;
        EXECUTE pg_catalog.format(
            'INSERT INTO %s (%s) SELECT %s FROM pg_catalog.jsonb_to_record($1) AS g(%s) ON CONFLICT (%s) DO NOTHING',
            parts.relation, parts.names, parts.listed, parts.columns, parts.key_names)
        USING parts.content;
        GET DIAGNOSTICS touched = ROW_COUNT;
        IF touched = 1 THEN
            answer := 'posted';
            balance := balance + entry;
            RETURN;
        END IF;
    END LOOP;
    PERFORM hapax.natural_one(ledger, 0);
END
$$;
