SELECT hapax.clock(), n.origin, n.timeline,
       current_setting('synchronous_standby_names') <> ''
       AND current_setting('synchronous_commit') IN ('on', 'remote_apply'),
       i.origin, i.timeline, i.position, i.began,
       i.quarantined_since, i.cause, i.before_origin, i.before_timeline, i.seen_before,
       i.lifted_at, i.lifted_by, i.lifted_why
FROM hapax.incarnation_now() AS n LEFT JOIN hapax.incarnation AS i ON true
