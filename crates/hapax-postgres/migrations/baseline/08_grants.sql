-- Nobody may call these until told so. The others read and write nothing but what their caller may, or take
-- an advisory lock, as anybody may.

REVOKE ALL ON FUNCTION
    hapax.begin, hapax.begin_bytes, hapax.begin_contended, hapax.bind_tenants, hapax.check_event_headers,
    hapax.check_tenant, hapax.decide, hapax.emit, hapax.emit_bytes, hapax.end_operation,
    hapax.fail, hapax.fail_bytes, hapax.fingerprint, hapax.fingerprint_with, hapax.finish, hapax.finish_bytes,
    hapax.first_delivery, hapax.first_delivery_bytes, hapax.inbox_consumer, hapax.inbox_forget,
    hapax.mac, hapax.mask, hapax.open_outcome, hapax.operation_id, hapax.outbox_lane, hapax.outbox_park,
    hapax.outbox_replay, hapax.outbox_retire, hapax.outbox_wants, hapax.purge_inbox, hapax.refuse_name,
    hapax.seal_head, hapax.span, hapax.status, hapax.trusted_clock, hapax.unbind_tenants
FROM PUBLIC;

-- Public. Lets a role call the public functions, and read no table.
CREATE FUNCTION hapax.grant_functions(role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF role IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'HX001', MESSAGE = 'the role is NULL',
            HINT = 'Name a role that exists: see CREATE ROLE.';
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA hapax TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION hapax.begin, hapax.begin_bytes, hapax.finish, hapax.finish_bytes, '
                   'hapax.fail, hapax.fail_bytes, hapax.first_delivery, hapax.first_delivery_bytes, '
                   'hapax.emit, hapax.emit_bytes, hapax.status, hapax.operation_id TO %s', role);
END
$$;

REVOKE ALL ON FUNCTION hapax.grant_functions FROM PUBLIC;
