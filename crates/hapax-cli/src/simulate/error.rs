use std::{io, path::PathBuf};

use hapax::retry::{InvalidBreaker, InvalidSchedule, InvalidTerms};

/// Why nothing could be simulated, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SimulateError {
    #[error("this is no schedule; give another --base or --cap")]
    Schedule(#[from] InvalidSchedule),
    #[error("this is no budget")]
    Terms(#[from] InvalidTerms),
    #[error("this is no breaker")]
    Breaker(#[from] InvalidBreaker),
    #[error(
        "{attempts} attempts in each of {layers} layers are more than {most} for one request; \
         give fewer --layers or --attempts"
    )]
    TooDeep { layers: u32, attempts: u32, most: u32 },
    #[error("cannot print the tables")]
    Print(#[source] io::Error),
    #[error("cannot write {path}; name a file that can be written")]
    Save {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}
