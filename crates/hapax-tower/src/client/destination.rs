//! What all calls to one place share.

use std::{fmt, sync::Arc, time::Duration};

use hapax_core::retry::{
    Breaker, BreakerOptions, BreakerPosition, Budget, InvalidBreaker, InvalidTerms, Terms,
};
use http::{
    Uri,
    uri::{Authority, Scheme},
};
use quick_cache::sync::Cache;
use tokio::time::Instant;

/// How many places are remembered; the one least asked is forgotten for another.
const DESTINATIONS_MAX: usize = 1024;

/// The retry budget and the breaker of every place that is called, shared by whoever has a clone.
///
/// ```
/// use hapax_core::retry::BreakerPosition;
/// use hapax_tower::client::{Destinations, RetryOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // Two layers with clones of it share what they know of a place.
/// let destinations = Destinations::default();
/// let options = RetryOptions { destinations: destinations.clone(), ..RetryOptions::default() };
/// let api = http::Uri::from_static("https://api.example.com/charges");
/// assert_eq!(destinations.position(&api), BreakerPosition::Closed);
/// # drop(options);
/// # }
/// ```
#[derive(Clone)]
pub struct Destinations(Arc<Inner>);

struct Inner {
    budget: Terms,
    breaker: BreakerOptions,
    /// What every `now` is measured from.
    start: Instant,
    known: Cache<DestinationOrigin, Arc<DestinationState>>,
    /// For requests that do not name their destination.
    unnamed: Arc<DestinationState>,
}

/// What is shared by all calls to one place.
#[derive(Debug, Default)]
pub(super) struct DestinationState {
    pub(super) budget: Budget,
    pub(super) breaker: Breaker,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct DestinationOrigin {
    scheme: Option<Scheme>,
    authority: Authority,
}

impl Destinations {
    /// Destinations that all have a budget and a breaker of these kinds.
    pub fn new(budget: Terms, breaker: BreakerOptions) -> Result<Self, InvalidDestinations> {
        Ok(Self::like(budget, breaker, DestinationState::new(budget, breaker)?))
    }

    fn like(budget: Terms, breaker: BreakerOptions, unnamed: DestinationState) -> Self {
        let known = Cache::new(DESTINATIONS_MAX);
        let (start, unnamed) = (Instant::now(), Arc::new(unnamed));
        Self(Arc::new(Inner { budget, breaker, start, known, unnamed }))
    }

    /// Where the breaker of a destination stands now.
    pub fn position(&self, uri: &Uri) -> BreakerPosition {
        self.of(uri).breaker.position(self.now())
    }

    pub(super) fn of(&self, uri: &Uri) -> Arc<DestinationState> {
        let Some(authority) = uri.authority() else { return Arc::clone(&self.0.unnamed) };
        let origin =
            DestinationOrigin { scheme: uri.scheme().cloned(), authority: authority.clone() };
        if let Some(known) = self.0.known.get(&origin) {
            return known;
        }
        // A copy of its own: a part of an address keeps all of it in memory.
        let authority = Authority::try_from(authority.as_str()).unwrap_or(origin.authority);
        let origin = DestinationOrigin { authority, ..origin };
        let make = || DestinationState::new(self.0.budget, self.0.breaker).map(Arc::new);
        // The same terms were accepted for the unnamed one, so there is no other case.
        let known = self.0.known.get_or_insert_with(&origin, make);
        known.unwrap_or_else(|_| Arc::clone(&self.0.unnamed))
    }

    /// The time since a start of our own: no wall clock, so nobody can set it.
    pub(super) fn now(&self) -> Duration {
        Instant::now().saturating_duration_since(self.0.start)
    }
}

impl DestinationState {
    fn new(budget: Terms, breaker: BreakerOptions) -> Result<Self, InvalidDestinations> {
        Ok(Self { budget: Budget::new(budget)?, breaker: Breaker::new(breaker)? })
    }
}

impl Default for Destinations {
    /// The default budget and the default breaker.
    fn default() -> Self {
        Self::like(Terms::default(), BreakerOptions::default(), DestinationState::default())
    }
}

impl fmt::Debug for Destinations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destinations")
            .field("budget", &self.0.budget)
            .field("breaker", &self.0.breaker)
            .field("known", &self.0.known.len())
            .finish_non_exhaustive()
    }
}

/// Why destinations were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDestinations {
    /// The budget is out of bounds.
    #[error("the retry budget is refused")]
    Budget(#[from] InvalidTerms),
    /// The breaker is out of bounds.
    #[error("the breaker is refused")]
    Breaker(#[from] InvalidBreaker),
}
