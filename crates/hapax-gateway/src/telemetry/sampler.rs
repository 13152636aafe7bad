//! Which traces are recorded.

use super::trace_context::{TraceContext, TraceId};

/// Decides whether a trace is recorded, before anything is paid for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    follows_caller: bool,
    /// Traces whose name, as a number of 63 bits, is below this.
    below: u64,
}

impl Sampler {
    /// Records what its caller records, and this part of the traces that begin here; from 0 to 1, and what is
    /// beyond counts as the nearer of these.
    #[must_use]
    pub fn following_callers(ratio: f64) -> Self {
        Self { follows_caller: true, ..Self::of_all(ratio) }
    }

    /// Records this part of all traces, whatever callers do.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a part of 2^63, cut to what there is"
    )]
    pub fn of_all(ratio: f64) -> Self {
        let below = (ratio.clamp(0.0, 1.0) * (1_u64 << 63) as f64) as u64;
        Self { follows_caller: false, below }
    }

    /// Whether a trace is recorded that this caller, if there is one, belongs to.
    pub(super) fn samples(self, caller: Option<TraceContext>, trace_id: TraceId) -> bool {
        match caller {
            Some(caller) if self.follows_caller => caller.is_sampled,
            Some(_) | None => {
                // The random end of the name, so that all who sample by it choose the same traces.
                let mut end = [0; 8];
                end.copy_from_slice(&trace_id.as_bytes()[8..]);
                u64::from_be_bytes(end) >> 1 < self.below
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::SpanId;

    fn sampled_of_10_000(sampler: Sampler) -> usize {
        (0..10_000).filter(|_| sampler.samples(None, TraceId::random())).count()
    }

    #[test]
    fn a_part_is_recorded_of_what_begins_here() {
        assert_eq!(sampled_of_10_000(Sampler::of_all(0.0)), 0);
        assert_eq!(sampled_of_10_000(Sampler::of_all(1.0)), 10_000);
        let half = sampled_of_10_000(Sampler::following_callers(0.5));
        assert!((4_000..6_000).contains(&half), "{half}");
    }

    #[test]
    fn a_caller_is_followed_or_not_as_was_said() {
        for is_sampled in [false, true] {
            let trace_id = TraceId::random();
            let caller = Some(TraceContext { trace_id, span_id: SpanId::random(), is_sampled });
            let ratio = if is_sampled { 0.0 } else { 1.0 };
            let following = Sampler::following_callers(ratio);
            assert_eq!(following.samples(caller, trace_id), is_sampled);
            assert_eq!(Sampler::of_all(ratio).samples(caller, trace_id), !is_sampled);
        }
    }
}
