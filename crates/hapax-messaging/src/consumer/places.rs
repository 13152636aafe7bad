//! Where a message may be made to fail.

/// The places of [`Faults`](hapax_core::Faults) a message passes, in order.
pub const PLACES: &[&str] = &[
    place::BEFORE_ENTER,
    place::AFTER_ENTER,
    place::AFTER_HANDLER,
    place::AFTER_LEAVE,
    place::BEFORE_MISSED,
    place::AFTER_MISSED,
    place::BEFORE_LETTER,
    place::AFTER_LETTER,
];

pub(super) mod place {
    pub(in super::super) const BEFORE_ENTER: &str = "consumer.before_enter";
    pub(in super::super) const AFTER_ENTER: &str = "consumer.after_enter";
    pub(in super::super) const AFTER_HANDLER: &str = "consumer.after_handler";
    pub(in super::super) const AFTER_LEAVE: &str = "consumer.after_leave";
    pub(in super::super) const BEFORE_MISSED: &str = "consumer.before_missed";
    pub(in super::super) const AFTER_MISSED: &str = "consumer.after_missed";
    pub(in super::super) const BEFORE_LETTER: &str = "consumer.before_letter";
    pub(in super::super) const AFTER_LETTER: &str = "consumer.after_letter";
}
