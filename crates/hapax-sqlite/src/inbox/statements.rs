//! What SQLite is told about messages. It has no clock of its own: the last parameter is the instant,
//! wherever one is written or judged. The write lock is held throughout.

use hapax_sql::inbox::InboxStatements;

use crate::clock_mark;

/// Forgets records that are past their retention: takes the most to remove, and the instant.
pub(crate) const FORGET: &str = "DELETE FROM hapax_inbox WHERE (consumer, message_id) IN \
     (SELECT i.consumer, i.message_id FROM hapax_inbox_consumers AS c \
      JOIN hapax_inbox AS i ON i.consumer = c.number \
       AND i.received_at <= min(?2, coalesce((SELECT value FROM hapax_meta \
                                              WHERE name = 'clock_trusted_until'), ?2)) - c.retention \
      WHERE i.state <> 3 LIMIT ?1) RETURNING 1";
/// The same for failed attempts.
pub(crate) const FORGET_ATTEMPTS: &str = "DELETE FROM hapax_inbox_attempts WHERE (consumer, message_id) IN \
     (SELECT a.consumer, a.message_id FROM hapax_inbox_consumers AS c \
      JOIN hapax_inbox_attempts AS a ON a.consumer = c.number \
       AND a.changed_at <= min(?2, coalesce((SELECT value FROM hapax_meta \
                                             WHERE name = 'clock_trusted_until'), ?2)) - c.retention \
      LIMIT ?1) RETURNING 1";

pub(crate) const STATEMENTS: InboxStatements = InboxStatements {
    record: "INSERT INTO hapax_inbox (consumer, message_id, content, state, received_at) \
         VALUES (?1, ?2, ?3, 1, ?4) ON CONFLICT DO NOTHING RETURNING 1",
    record_all: "INSERT INTO hapax_inbox (consumer, message_id, content, state, received_at) \
         SELECT ?1, i.value, unhex(d.value), 1, ?4 \
         FROM json_each(?2) AS i JOIN json_each(?3) AS d ON d.key = i.key WHERE true \
         ON CONFLICT DO NOTHING RETURNING 1",
    look: "SELECT 1, i.content, i.state, i.reason, i.received_at, \
                min(?3, coalesce((SELECT value FROM hapax_meta \
                                  WHERE name = 'clock_trusted_until'), ?3)) \
         FROM (SELECT 1) LEFT JOIN hapax_inbox AS i ON i.consumer = ?1 AND i.message_id = ?2",
    renew: "UPDATE hapax_inbox SET content = ?3, state = 1, reason = NULL, received_at = ?5 \
         WHERE consumer = ?1 AND message_id = ?2 AND received_at = ?4 RETURNING 1",
    place: "UPDATE hapax_inbox_offsets SET next = ?6 + 1 \
         WHERE consumer = ?1 AND source = ?2 AND partition = ?3 AND fence = ?4 \
           AND (next IS NULL OR next <= ?5) RETURNING 1",
    fence: "SELECT fence FROM hapax_inbox_offsets \
         WHERE consumer = ?1 AND source = ?2 AND partition = ?3",
    lock_key: None,
    read_key: "SELECT \
         (SELECT version FROM hapax_inbox_versions WHERE consumer = ?1 AND key = ?2), \
         (SELECT count(*) FROM hapax_inbox_held WHERE consumer = ?1 AND key = ?2)",
    let_go: "DELETE FROM hapax_inbox_held \
         WHERE consumer = ?1 AND key = ?2 AND version = ?3 AND message_id = ?4 RETURNING 1",
    move_on: "INSERT INTO hapax_inbox_versions (consumer, key, version) VALUES (?1, ?2, ?3) \
         ON CONFLICT DO UPDATE SET version = max(version, excluded.version) RETURNING 1",
    mark: "UPDATE hapax_inbox SET state = ?3 WHERE consumer = ?1 AND message_id = ?2 RETURNING 1",
    hold: "INSERT INTO hapax_inbox_held \
         (consumer, key, version, message_id, business_id, source, headers, payload, held_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING RETURNING 1",
    fail: "INSERT INTO hapax_inbox (consumer, message_id, content, state, reason, received_at) \
         VALUES (?1, ?2, ?3, 2, ?4, ?5) \
         ON CONFLICT DO UPDATE SET state = 2, reason = excluded.reason RETURNING 1",
    bury: "INSERT INTO hapax_inbox_dead \
         (consumer, message_id, content, reason, detail, source, key, headers, payload, dead_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING RETURNING 1",
    enlist: "INSERT INTO hapax_inbox_consumers (name, retention) VALUES (?1, ?2) \
         ON CONFLICT (name) DO UPDATE SET retention = excluded.retention RETURNING number",
    missed: "INSERT INTO hapax_inbox_attempts (consumer, message_id, attempts, changed_at) \
         VALUES (?1, ?2, 1, ?3) \
         ON CONFLICT DO UPDATE SET attempts = attempts + 1, changed_at = excluded.changed_at \
         RETURNING attempts",
    take: "INSERT INTO hapax_inbox_offsets (consumer, source, partition, fence) \
         VALUES (?1, ?2, ?3, 1) ON CONFLICT DO UPDATE SET fence = fence + 1 RETURNING fence, next",
    waiting: "SELECT h.message_id, h.business_id, h.source, h.key, h.version, h.headers, h.payload \
         FROM hapax_inbox_held AS h \
         LEFT JOIN hapax_inbox_versions AS v ON v.consumer = h.consumer AND v.key = h.key \
         WHERE h.consumer = ?1 AND (?2 IS NULL OR h.key = ?2) \
           AND (h.version <= coalesce(v.version + 1, ?3) \
                OR h.held_at <= min(?6, coalesce((SELECT value FROM hapax_meta \
                                                  WHERE name = 'clock_trusted_until'), ?6)) - ?4) \
           AND NOT EXISTS (SELECT 1 FROM hapax_inbox_held AS l \
                           WHERE l.consumer = h.consumer AND l.key = h.key AND l.version < h.version) \
         ORDER BY h.held_at LIMIT ?5",
    forget: &[FORGET, FORGET_ATTEMPTS],
    clock: clock_mark::READ,
    keep_clock: clock_mark::KEEP,
};
