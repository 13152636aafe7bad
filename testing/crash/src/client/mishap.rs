//! What can happen to a request on its way, drawn from a seed.

use std::time::Duration;

/// What happens to one request on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    /// The connection breaks, and nobody has read the request.
    RequestLost,
    /// It is worked on only now, when its sender may have given it up or died.
    RequestLate(Duration),
    /// It is worked on, and the connection breaks.
    AnswerLost,
    /// It is worked on, and the answer breaks off.
    AnswerCut,
    /// It is worked on, and the answer is held back.
    AnswerLate(Duration),
    /// It is worked on, and somebody on the way says 502.
    BadGateway,
    /// Nobody has read it, and somebody on the way says 503.
    Unavailable,
    /// Nobody has read it, and somebody on the way says that another one is at work: 409.
    InFlight,
    /// Nobody has read it, and somebody on the way says that there are too many: 429.
    Busy,
    /// Nobody has read it, and somebody on the way says late that it does not know who asks: 401.
    Stranger(Duration),
}

/// How many requests of a hundred arrive and are answered as they should be.
const WELL_PERCENT: u32 = 45;
/// One operation in so many is always turned away, while things go wrong.
const ALWAYS_BUSY: u32 = 10;
/// Around what an attempt waits for.
const LATE_MS: std::ops::Range<u64> = 20..400;

impl Mishap {
    /// What happens to this operation when it arrives for this time.
    pub fn draw(seed: u64, name: &str, arrival: u64) -> Option<Self> {
        if dice(seed, name, u64::MAX).u32(..ALWAYS_BUSY) == 0 {
            return Some(Self::Busy);
        }
        let mut dice = dice(seed, name, arrival);
        if dice.u32(..100) < WELL_PERCENT {
            return None;
        }
        let late = Duration::from_millis(dice.u64(LATE_MS));
        let all = [
            Self::RequestLost,
            Self::RequestLate(late),
            Self::AnswerLost,
            Self::AnswerCut,
            Self::AnswerLate(late),
            Self::BadGateway,
            Self::Unavailable,
            Self::InFlight,
            Self::Busy,
        ];
        // Seldom, as nothing more comes of an operation that was refused.
        let stranger = dice.u32(..12) == 0;
        Some(if stranger { Self::Stranger(late) } else { all[dice.usize(..all.len())] })
    }
}

/// The same for the same operation and time, whatever else there was.
pub(super) fn dice(seed: u64, name: &str, number: u64) -> fastrand::Rng {
    let name = name.bytes().fold(seed, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17)
    });
    fastrand::Rng::with_seed(name ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
