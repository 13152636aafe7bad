//! Where a journal may be made to fail.

use hapax_sqlite_file::Places;

pub(super) const MAKE_BEFORE_BEGIN: &str = "journal.make.before_begin";
pub(super) const MAKE_AFTER_BEGIN: &str = "journal.make.after_begin";
pub(super) const MAKE_BEFORE_COMMIT: &str = "journal.make.before_commit";
pub(super) const MAKE_AFTER_COMMIT: &str = "journal.make.after_commit";
pub(super) const BEGIN: &str = "journal.begin";
pub(super) const TAKE_UP: &str = "journal.take_up";
pub(super) const RENEW: &str = "journal.renew";
pub(super) const RELEASE: &str = "journal.release";
pub(super) const SETTLE: &str = "journal.settle";
pub(super) const FORGET: &str = "journal.forget";
pub(super) const PURGE: &str = "journal.purge";

/// Those of a round of writes.
pub(super) const WRITE: Places = Places {
    before_begin: "journal.write.before_begin",
    after_begin: "journal.write.after_begin",
    before_commit: "journal.write.before_commit",
    after_commit: "journal.write.after_commit",
};

/// The places of [`hapax_core::Faults`] a journal passes, in the order it passes them.
///
/// A file is made once. After that every round of writes, whatever is in it, passes those of
/// `write`, and each item in between the one of its kind, just before it is written.
pub const PLACES: &[&str] = &[
    MAKE_BEFORE_BEGIN,
    MAKE_AFTER_BEGIN,
    MAKE_BEFORE_COMMIT,
    MAKE_AFTER_COMMIT,
    WRITE.before_begin,
    WRITE.after_begin,
    BEGIN,
    TAKE_UP,
    RENEW,
    RELEASE,
    SETTLE,
    FORGET,
    PURGE,
    WRITE.before_commit,
    WRITE.after_commit,
];
