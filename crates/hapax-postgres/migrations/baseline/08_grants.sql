-- Nobody may call these until told so. The others read and write nothing but what their caller may, or take
-- an advisory lock, as anybody may.

REVOKE ALL ON FUNCTION
    hapax.answer_of, hapax.are_parts, hapax.are_spans, hapax.at_least, hapax.begin,
    hapax.begin_bytes, hapax.begin_contended, hapax.bind_tenants,
    hapax.check_event, hapax.check_tenant, hapax.decide, hapax.earlier, hapax.emit, hapax.emit_bytes, hapax.end_bytes,
    hapax.ended_as, hapax.event_lock, hapax.fail, hapax.fail_delivery,
    hapax.fail_delivery_bytes, hapax.fingerprint, hapax.fingerprint_with,
    hapax.finish, hapax.first_delivery, hapax.first_delivery_bytes, hapax.has_bit, hapax.inbox_consumer,
    hapax.inbox_forget, hapax.is_attempt, hapax.is_bodily, hapax.is_end, hapax.is_delivery, hapax.is_in_segment,
    hapax.is_name, hapax.is_plain_event, hapax.is_status, hapax.later, hapax.later_delivery,
    hapax.mask, hapax.message_digest, hapax.message_headers, hapax.message_lock, hapax.micros, hapax.open_outcome, hapax.note_bound, hapax.operation_id,
    hapax.operation_lock, hapax.outbox_lane, hapax.outbox_park, hapax.outbox_replay, hapax.outbox_retire,
    hapax.outbox_wants, hapax.part_hash, hapax.parts_fingerprint, hapax.plain_answer, hapax.purge_inbox,
    hapax.record, hapax.record_bytes, hapax.refuse_answer, hapax.refuse_busy_delivery, hapax.refuse_delivery,
    hapax.refuse_end, hapax.refuse_name, hapax.refuse_operation, hapax.refuse_record, hapax.seal_head,
    hapax.schema_version, hapax.sealed_answer, hapax.signed_answer, hapax.span, hapax.status,
    hapax.transaction_owner, hapax.trusted_clock, hapax.unbind_tenants, hapax.unsigned_answer, hapax.whole_fingerprint
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
    EXECUTE format('GRANT EXECUTE ON FUNCTION '
                   'hapax.begin, hapax.begin_bytes, '
                   'hapax.finish, hapax.fail, hapax.end_bytes, hapax.record, hapax.record_bytes, '
                   'hapax.first_delivery, hapax.first_delivery_bytes, hapax.fail_delivery, hapax.fail_delivery_bytes, hapax.emit, hapax.emit_bytes, hapax.status, '
                   'hapax.operation_id, hapax.schema_version TO %s', role);
END
$$;

REVOKE ALL ON FUNCTION hapax.grant_functions FROM PUBLIC;
