//! How a layer without routes of its own protects, said call by call.

use std::time::Duration;

use hapax_core::Recovery;

use super::{
    execution::probe::Prober,
    layer::IdempotencyLayer,
    mode::Mode,
    options::{BodyForm, InFlight, KeyRule, Protection, Scoping},
};

/// What is said of a layer holds for every request that no route of it names: for all of them, where
/// it has none and the service's own router says what it is put around.
///
/// # Panics
///
/// Each of these refuses what contradicts the rest, such as a retention shorter than the lease: that
/// is a mistake in the program, and is told where it is made, before anything is served.
impl<M: Mode> IdempotencyLayer<M> {
    /// The same layer, comparing bodies so: by their media type unless told otherwise.
    #[must_use]
    pub fn compare(self, body: impl Into<BodyForm>) -> Self {
        let body = body.into();
        self.protect(|protection| protection.body = body)
    }

    /// The same layer, letting a duplicate wait so long for the first answer, instead of telling it
    /// 409 at once.
    #[must_use]
    pub fn wait(self, longest: Duration) -> Self {
        self.protect(|protection| protection.in_flight = InFlight::Wait(longest))
    }

    /// The same layer, keeping answers for so long from when an operation was first asked for.
    #[must_use]
    pub fn retain(self, window: Duration) -> Self {
        self.protect(|protection| {
            protection.policy = valid(protection.policy.retaining(window));
        })
    }

    /// The same layer, doing this about operations whose outcome is unknown. For
    /// [`Recovery::Probe`] it needs somebody to ask: [`IdempotencyLayer::probe`].
    #[must_use]
    pub fn recover(self, recovery: Recovery) -> Self {
        self.protect(|protection| protection.policy = protection.policy.recovering(recovery))
    }

    /// The same layer, asking this one whether an operation happened that nobody answered for.
    #[must_use]
    pub fn probe(self, prober: Prober) -> Self {
        self.protect(|protection| {
            protection.policy = protection.policy.recovering(Recovery::Probe);
            protection.probe = Some(prober);
        })
    }

    /// The same layer, letting requests without a key pass without protection.
    #[must_use]
    pub fn optional_key(self) -> Self {
        self.protect(|protection| protection.key = KeyRule::Optional)
    }

    /// The same layer with keys that are unique within this: the method and the concrete path unless
    /// told otherwise.
    #[must_use]
    pub fn scope(self, scope: Scoping) -> Self {
        self.protect(|protection| protection.scope = scope)
    }

    /// The same layer, protecting as the change to its [`Protection`] says: for everything that has no
    /// call of its own.
    #[must_use]
    pub fn protect(self, change: impl FnOnce(&mut Protection)) -> Self {
        valid(self.with_protection(change))
    }
}

#[expect(clippy::panic, reason = "a layer that contradicts itself is a mistake of its program")]
fn valid<T, E: std::fmt::Display>(checked: Result<T, E>) -> T {
    checked.unwrap_or_else(|error| panic!("the layer contradicts itself: {error}"))
}
