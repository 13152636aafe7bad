//! What SQLite is told to show people its consumers. The instant is the last parameter, wherever one is
//! judged; it counts no further than the clock is trusted.

use hapax_sql::inbox::InboxAdminStatements;

/// What is left of a dead letter's statement once it is said which letters are meant.
macro_rules! letters {
    ($more:literal, $now:literal, $which:literal) => {
        concat!(
            "SELECT d.message_id, d.content, d.dead_at, d.reason, d.detail, d.source, d.key, \
                    v.version, length(d.payload), c.retention, \
                    min(", $now, ", coalesce((SELECT value FROM hapax_meta \
                                              WHERE name = 'clock_trusted_until'), ", $now, ")), \
                    i.content, i.state, i.received_at", $more, " \
             FROM hapax_inbox_dead AS d \
             JOIN hapax_inbox_consumers AS c ON c.number = d.consumer \
             LEFT JOIN hapax_inbox AS i ON i.consumer = d.consumer AND i.message_id = d.message_id \
             LEFT JOIN hapax_inbox_versions AS v ON v.consumer = d.consumer AND v.key = d.key \
             WHERE d.consumer = ?1 AND ", $which
        )
    };
}

/// Whether a message with a count of attempts is not done: no record that still counts says so.
macro_rules! again {
    ($now:literal) => {
        concat!(
            "NOT EXISTS (SELECT 1 FROM hapax_inbox AS i \
                         WHERE i.consumer = c.number AND i.message_id = s.message_id AND i.state <> 3 \
                           AND i.received_at + c.retention > \
                               min(", $now, ", coalesce((SELECT value FROM hapax_meta \
                                    WHERE name = 'clock_trusted_until'), ", $now, ")))"
        )
    };
}

pub(super) const STATEMENTS: InboxAdminStatements = InboxAdminStatements {
    consumers: concat!(
        "SELECT c.number, 'messages', c.name, c.retention, \
                (SELECT count(*) FROM (SELECT 1 FROM hapax_inbox AS i \
                                       WHERE i.consumer = c.number LIMIT ?4)), \
                (SELECT count(*) FROM (SELECT 1 FROM hapax_inbox_attempts AS a \
                                       WHERE a.consumer = c.number LIMIT ?4)), \
                (SELECT count(*) FROM (SELECT a.message_id FROM hapax_inbox_attempts AS a \
                                       WHERE a.consumer = c.number LIMIT ?4) AS s \
                 WHERE ",
        again!("?5"),
        "), \
                (SELECT count(*) FROM (SELECT 1 FROM hapax_inbox_held AS h \
                                       WHERE h.consumer = c.number LIMIT ?4)), \
                (SELECT count(*) FROM (SELECT 1 FROM hapax_inbox_dead AS d \
                                       WHERE d.consumer = c.number LIMIT ?4)), \
                EXISTS (SELECT 1 FROM hapax_inbox_offsets AS o WHERE o.consumer = c.number) \
         FROM hapax_inbox_consumers AS c WHERE ('messages', c.name) >= (?1, ?2) \
         ORDER BY c.name LIMIT ?3"
    ),
    partitions: "SELECT source, partition, fence, next FROM hapax_inbox_offsets \
         WHERE consumer = ?1 ORDER BY source, partition LIMIT ?2",
    retried: concat!(
        "SELECT s.message_id, s.attempts, s.changed_at, ",
        again!("?4"),
        " \
         FROM hapax_inbox_attempts AS s JOIN hapax_inbox_consumers AS c ON c.number = s.consumer \
         WHERE s.consumer = ?1 AND s.message_id > ?2 ORDER BY s.message_id LIMIT ?3"
    ),
    held: "WITH RECURSIVE keys (key, nth) AS ( \
             SELECT CASE WHEN ?2 IS NULL \
                    THEN (SELECT min(h.key) FROM hapax_inbox_held AS h WHERE h.consumer = ?1) \
                    ELSE (SELECT min(h.key) FROM hapax_inbox_held AS h \
                          WHERE h.consumer = ?1 AND h.key > ?2) END, 1 \
             UNION ALL \
             SELECT (SELECT min(h.key) FROM hapax_inbox_held AS h \
                     WHERE h.consumer = ?1 AND h.key > k.key), k.nth + 1 \
             FROM keys AS k WHERE k.key IS NOT NULL AND k.nth < ?3) \
         SELECT k.key, \
                (SELECT count(*) FROM (SELECT 1 FROM hapax_inbox_held AS h \
                                       WHERE h.consumer = ?1 AND h.key = k.key LIMIT ?4)), \
                l.version, l.held_at, v.version \
         FROM keys AS k \
         JOIN hapax_inbox_held AS l ON l.rowid = \
              (SELECT h.rowid FROM hapax_inbox_held AS h WHERE h.consumer = ?1 AND h.key = k.key \
               ORDER BY h.version, h.message_id LIMIT 1) \
         LEFT JOIN hapax_inbox_versions AS v ON v.consumer = ?1 AND v.key = k.key \
         ORDER BY k.key",
    letters: letters!(
        "",
        "?5",
        "(d.message_id, d.content) > (?2, ?3) ORDER BY d.message_id, d.content LIMIT ?4"
    ),
    letter: letters!(
        ", d.headers, substr(d.payload, 1, ?4)",
        "?5",
        "d.message_id = ?2 AND d.content = ?3"
    ),
    discard: "DELETE FROM hapax_inbox_dead \
         WHERE consumer = ?1 AND message_id = ?2 AND content = ?3 AND dead_at = ?4 RETURNING 1",
    forgive: &[
        "DELETE FROM hapax_inbox WHERE consumer = ?1 AND message_id = ?2 AND content = ?3 \
           AND state = 2 \
           AND EXISTS (SELECT 1 FROM hapax_inbox_dead AS d WHERE d.consumer = ?1 \
                       AND d.message_id = ?2 AND d.content = ?3 AND d.dead_at = ?4) RETURNING 1",
        "DELETE FROM hapax_inbox_dead \
         WHERE consumer = ?1 AND message_id = ?2 AND content = ?3 AND dead_at = ?4 RETURNING 1",
        "DELETE FROM hapax_inbox_attempts \
         WHERE consumer = ?1 AND message_id = ?2 AND ?3 IS NOT NULL AND ?4 IS NOT NULL RETURNING 1",
    ],
};
