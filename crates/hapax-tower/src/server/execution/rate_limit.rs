//! How many new operations a tenant may begin.

use std::{
    collections::HashMap,
    fmt,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hapax_core::Tenant;
use tokio::time::Instant;

/// Limits the rate of new executions; replays, duplicates and recoveries are free. Clones share
/// what was used.
///
/// ```
/// use std::num::NonZeroU32;
///
/// use hapax_tower::{Protection, RateLimit};
///
/// let (per_second, burst) = (NonZeroU32::try_from(5)?, NonZeroU32::try_from(20)?);
/// let limit = RateLimit::per_tenant(per_second, burst);
/// let protection = Protection { limit: Some(limit), ..Protection::default() };
/// # drop(protection);
/// # Ok::<(), std::num::TryFromIntError>(())
/// ```
#[derive(Clone)]
pub struct RateLimit {
    /// What one operation costs.
    interval: Duration,
    /// What a tenant that began nothing for a while may use at once.
    burst: Duration,
    full_at: Arc<Mutex<HashMap<Tenant, Instant>>>,
}

/// Most tenants whose use is remembered. A tenant that is forgotten may begin a whole burst again,
/// so those that used least are forgotten first.
const TENANTS_MAX: usize = 1 << 16;

impl RateLimit {
    /// Each tenant may begin `burst` operations at once, and `per_second` in the long run.
    pub fn per_tenant(per_second: NonZeroU32, burst: NonZeroU32) -> Self {
        let interval = Duration::from_secs(1) / per_second.get();
        Self { interval, burst: interval * burst.get(), full_at: Arc::default() }
    }

    /// Counts an operation of this tenant, or says how long it has to wait.
    pub(crate) fn begin(&self, tenant: &Tenant, now: Instant) -> Result<(), Duration> {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let full = full_at.get(tenant).map_or(now, |full| (*full).max(now)) + self.interval;
        let used = full.duration_since(now);
        if used > self.burst {
            return Err(used - self.burst);
        }
        if full_at.len() >= TENANTS_MAX && !full_at.contains_key(tenant) {
            forget_some(&mut full_at, now);
        }
        full_at.insert(tenant.clone(), full);
        Ok(())
    }
}

/// Forgets those that have their whole burst again; if all are at work, the quarter that used least.
fn forget_some(full_at: &mut HashMap<Tenant, Instant>, now: Instant) {
    full_at.retain(|_, full| *full > now);
    if full_at.len() >= TENANTS_MAX {
        let mut all: Vec<_> = full_at.values().copied().collect();
        let (_, least, _) = all.select_nth_unstable(TENANTS_MAX / 4);
        full_at.retain(|_, full| *full > *least);
    }
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limit = f.debug_struct("RateLimit");
        limit.field("interval", &self.interval).field("burst", &self.burst).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(per_second: u32, burst: u32) -> RateLimit {
        let number = |number| NonZeroU32::new(number).unwrap();
        RateLimit::per_tenant(number(per_second), number(burst))
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_granted_at_once_and_refilled_with_time() {
        let limit = limit(2, 3);
        let (tenant, now) = (Tenant::parse("a").unwrap(), Instant::now());
        let begin = |millis| limit.begin(&tenant, now + Duration::from_millis(millis));
        assert_eq!([(); 3].map(|()| begin(0)), [Ok(()); 3]);
        assert_eq!(begin(0), Err(Duration::from_millis(500)));
        assert_eq!(begin(400), Err(Duration::from_millis(100)));
        assert_eq!((begin(500), begin(501)), (Ok(()), Err(Duration::from_millis(499))));
        assert_eq!([(); 4].map(|()| begin(9000).is_ok()), [true, true, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded_and_who_used_most_is_remembered_longest() {
        let limit = limit(1, 9);
        let (busy, now) = (Tenant::parse("busy").unwrap(), Instant::now());
        for _ in 0..9 {
            limit.begin(&busy, now).unwrap();
        }
        for at in 0..2 * TENANTS_MAX {
            limit.begin(&Tenant::parse(format!("t-{at}")).unwrap(), now).unwrap();
        }
        assert!(limit.full_at.lock().unwrap().len() <= TENANTS_MAX);
        assert!(limit.begin(&busy, now).is_err());
    }
}
