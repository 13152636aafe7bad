-- What a role can put in the way of functions that run with the rights of another: a temporary view, function,
-- operator and type, and the same in a schema of its own that comes first in its path, for every name that
-- the functions of schema hapax use. Each ends what walks into it.
SET search_path = pg_catalog, pg_temp;
DO $$
DECLARE
    x record;
    place text;
BEGIN
    CREATE FUNCTION own.spring(what text) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog AS
        'BEGIN RAISE EXCEPTION USING ERRCODE = ''HX666'', MESSAGE = ''sprung '' || what || '' as '' || current_user; END';
    CREATE TABLE own.words AS
        SELECT DISTINCT w.word[1] AS word
        FROM pg_proc AS p, regexp_matches(coalesce(pg_get_function_sqlbody(p.oid), p.prosrc), '\w+', 'g') AS w(word)
        WHERE p.pronamespace = 'hapax'::regnamespace;
    FOREACH place IN ARRAY ARRAY['pg_temp', 'own'] LOOP
        FOR x IN SELECT DISTINCT c.relname AS name FROM pg_class AS c
                 WHERE c.relnamespace IN ('pg_catalog'::regnamespace, 'hapax'::regnamespace) AND c.relkind IN ('r', 'v', 'p', 'S')
                   AND (c.relname IN (SELECT word FROM own.words) OR c.relnamespace = 'hapax'::regnamespace
                        -- No function of ours: the one that is meant to walk into it.
                        OR c.relname = 'pg_inherits') LOOP
            EXECUTE format('CREATE VIEW %s.%I AS SELECT own.spring(%L) AS inhrelid', place, x.name, x.name);
            EXECUTE format('GRANT SELECT ON %s.%I TO PUBLIC', place, x.name);
        END LOOP;
        FOR x IN SELECT t.typname AS name FROM pg_type AS t JOIN own.words AS w ON w.word = t.typname
                 WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype = 'b' LOOP
            EXECUTE format('CREATE DOMAIN %s.%I AS pg_catalog.%I CHECK (own.spring(%L))', place, x.name, x.name, x.name);
        END LOOP;
        FOR x IN SELECT p.proname AS name, pg_get_function_identity_arguments(p.oid) AS arguments,
                        pg_get_function_result(p.oid) AS result
                 FROM pg_proc AS p JOIN own.words AS w ON w.word = p.proname JOIN pg_type AS r ON r.oid = p.prorettype
                 WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND p.provariadic = 0
                   AND NOT p.proretset AND r.typtype = 'b' AND p.proargmodes IS NULL
                   AND NOT EXISTS (SELECT FROM unnest(p.proargtypes) AS a(type) JOIN pg_type AS t ON t.oid = a.type
                                   WHERE t.typtype = 'p') LOOP
            EXECUTE format('CREATE FUNCTION %s.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', place, x.name, x.arguments, x.result,
                           format('BEGIN PERFORM own.spring(%L); RETURN NULL; END', x.name));
        END LOOP;
        FOR x IN SELECT l.name AS l, r.name AS r
                 FROM unnest('{bytea,text,int2,int4,int8,float8,jsonb,uuid,bool,interval,timestamptz,name,oid}'::text[]) AS l(name),
                      unnest('{bytea,text,int2,int4,int8,float8,jsonb,uuid,bool,interval,timestamptz,name,oid}'::text[]) AS r(name) LOOP
            EXECUTE format('CREATE FUNCTION %1$s.operate(pg_catalog.%2$I, pg_catalog.%3$I) RETURNS text LANGUAGE plpgsql AS '
                           '''BEGIN PERFORM own.spring(''''an operator''''); RETURN NULL; END''', place, x.l, x.r);
            FOR symbol IN 1 .. 16 LOOP
                EXECUTE format('CREATE OPERATOR %1$s.%2$s (LEFTARG = pg_catalog.%3$I, RIGHTARG = pg_catalog.%4$I, FUNCTION = %1$s.operate)',
                    place, (ARRAY['||', '=', '<>', '<', '>', '<=', '>=', '+', '-', '*', '/', '>>', '&', '#', '~', '#>>'])[symbol],
                    x.l, x.r);
            END LOOP;
        END LOOP;
    END LOOP;
END
$$;
GRANT ALL ON SCHEMA own TO PUBLIC;
SET search_path = own, pg_temp, pg_catalog, hapax, public;
