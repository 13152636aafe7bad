//! What PostgreSQL is told about messages. Its own clock is the only one.

use hapax_core::Salt;
use hapax_sql::inbox::{InboxContext, InboxStatements};

use crate::clock_mark;

/// For what is said outside of a transaction, where no record is written.
pub(crate) const CONTEXT: InboxContext =
    InboxContext { statements: &STATEMENTS, now: None, salt: None };

/// For a transaction that acts on messages.
pub(crate) fn context(salt: Salt) -> InboxContext {
    InboxContext { salt: Some(salt), ..CONTEXT }
}

const STATEMENTS: InboxStatements = InboxStatements {
    record: include_str!("../sql/inbox_record.sql"),
    record_all: include_str!("../sql/inbox_record_all.sql"),
    look: include_str!("../sql/inbox_look.sql"),
    renew: include_str!("../sql/inbox_renew.sql"),
    place: include_str!("../sql/inbox_place.sql"),
    fence: include_str!("../sql/inbox_fence.sql"),
    lock_key: Some(include_str!("../sql/inbox_lock_key.sql")),
    read_key: include_str!("../sql/inbox_read_key.sql"),
    let_go: include_str!("../sql/inbox_let_go.sql"),
    move_on: include_str!("../sql/inbox_move_on.sql"),
    mark: include_str!("../sql/inbox_mark.sql"),
    hold: include_str!("../sql/inbox_hold.sql"),
    fail: include_str!("../sql/inbox_fail.sql"),
    bury: include_str!("../sql/inbox_bury.sql"),
    // Waits five seconds for whoever makes the same consumer known.
    enlist: "SELECT hapax.inbox_consumer('messages', $1::text, $2::int8, true, 5000000)::int8",
    missed: include_str!("../sql/inbox_missed.sql"),
    take: include_str!("../sql/inbox_take.sql"),
    waiting: include_str!("../sql/inbox_waiting.sql"),
    forget: &["SELECT hapax.inbox_forget($1::int8)"],
    clock: clock_mark::READ,
    keep_clock: clock_mark::KEEP,
};
