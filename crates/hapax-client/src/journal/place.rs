//! Where a journal may be made to fail.

pub(super) const MAKE_BEFORE_BEGIN: &str = "journal.make.before_begin";
pub(super) const MAKE_AFTER_BEGIN: &str = "journal.make.after_begin";
pub(super) const MAKE_BEFORE_COMMIT: &str = "journal.make.before_commit";
pub(super) const MAKE_AFTER_COMMIT: &str = "journal.make.after_commit";
pub(super) const WRITE_BEFORE_BEGIN: &str = "journal.write.before_begin";
pub(super) const WRITE_AFTER_BEGIN: &str = "journal.write.after_begin";
pub(super) const BEGIN: &str = "journal.begin";
pub(super) const TAKE_UP: &str = "journal.take_up";
pub(super) const RENEW: &str = "journal.renew";
pub(super) const RELEASE: &str = "journal.release";
pub(super) const SETTLE: &str = "journal.settle";
pub(super) const FORGET: &str = "journal.forget";
pub(super) const PURGE: &str = "journal.purge";
pub(super) const WRITE_BEFORE_COMMIT: &str = "journal.write.before_commit";
pub(super) const WRITE_AFTER_COMMIT: &str = "journal.write.after_commit";

/// The places of [`hapax_core::Faults`] a journal passes, in the order it passes them.
///
/// A file is made once. After that every round of writes, whatever is in it, passes those of
/// `write`, and each item in between the one of its kind, just before it is written.
pub const PLACES: &[&str] = &[
    MAKE_BEFORE_BEGIN,
    MAKE_AFTER_BEGIN,
    MAKE_BEFORE_COMMIT,
    MAKE_AFTER_COMMIT,
    WRITE_BEFORE_BEGIN,
    WRITE_AFTER_BEGIN,
    BEGIN,
    TAKE_UP,
    RENEW,
    RELEASE,
    SETTLE,
    FORGET,
    PURGE,
    WRITE_BEFORE_COMMIT,
    WRITE_AFTER_COMMIT,
];
