-- Which tenants a role may use. A role that is not named here, and belongs to none that is, may use any.
CREATE TABLE hapax.role_tenants (
    role          regrole NOT NULL,
    tenant        text NOT NULL,
    PRIMARY KEY (role, tenant)
);

-- What every call reads anyway says whether there is anything to check.
CREATE FUNCTION hapax.note_bound() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE hapax.meta AS m SET is_bound = true WHERE NOT m.is_bound;
    RETURN NULL;
END
$$;

CREATE TRIGGER note_bound AFTER INSERT ON hapax.role_tenants
FOR EACH STATEMENT EXECUTE FUNCTION hapax.note_bound();

-- Whether the caller may use a tenant; it is refused if not. Neither who logged in, nor the role it took on, and
-- each by itself or by a role it belongs to. Whoever has the rights of the schema's owner may use any.
CREATE FUNCTION hapax.check_tenant(tenant text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    caller name;
BEGIN
    FOREACH caller IN ARRAY ARRAY[session_user, nullif(current_setting('role'), 'none')::name] LOOP
        CONTINUE WHEN caller IS NULL OR pg_has_role(caller, current_user, 'MEMBER');
        IF (SELECT bool_or(t.tenant IS NOT DISTINCT FROM check_tenant.tenant) FROM hapax.role_tenants AS t
            WHERE pg_has_role(caller, t.role, 'MEMBER')) IS FALSE THEN
            RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = format('role %s may not use this tenant', quote_ident(caller)),
                HINT = 'The owner of schema hapax binds roles to tenants: see hapax.bind_tenants.';
        END IF;
    END LOOP;
    RETURN true;
END
$$;

-- Public. Lets a role use these tenants, and, from now on, no others but those it was bound to before.
CREATE FUNCTION hapax.bind_tenants(role regrole, tenants text[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    tenant text;
BEGIN
    IF role IS NULL OR coalesce(cardinality(tenants), 0) = 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'the role or the tenants are missing',
            HINT = 'Name a role that exists, and at least one tenant: a role without any is not bound.';
    END IF;
    FOREACH tenant IN ARRAY tenants LOOP
        PERFORM hapax.refuse_name('the tenant', tenant, 255);
        INSERT INTO hapax.role_tenants AS t (role, tenant) VALUES (role, tenant) ON CONFLICT DO NOTHING;
    END LOOP;
END
$$;

-- Public. Takes tenants from a role; all of them if none is named, after which it is not bound any more.
CREATE FUNCTION hapax.unbind_tenants(role regrole, tenants text[] DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
BEGIN
    IF tenants IS NOT NULL AND NOT EXISTS (
        SELECT FROM hapax.role_tenants AS t WHERE t.role = role AND t.tenant <> ALL (tenants)) THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'these are all tenants that the role is bound to',
            HINT = 'Without any it could use all. Bind it to another one first, or leave out the tenants if that is meant.';
    END IF;
    DELETE FROM hapax.role_tenants AS t WHERE t.role = role AND (tenants IS NULL OR t.tenant = ANY (tenants));
END
$$;
