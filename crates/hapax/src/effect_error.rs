//! What an error of the work says about its effect.

use std::{error::Error, fmt};

/// An error of the work given to [`once`](crate::Hapax::once), and what is known of its effect.
///
/// Any error becomes one with `?`, and says that nobody knows: the operation is in doubt. Work that
/// knows better says so:
///
/// ```
/// use hapax::EffectError;
///
/// async fn charge(cents: u64) -> Result<String, EffectError> {
///     if cents == 0 {
///         return Err(EffectError::is_final("there is nothing to pay"));
///     }
///     let connected = std::net::TcpStream::connect("127.0.0.1:1");
///     let _connection = connected.map_err(EffectError::not_sent)?;
///     Ok("paid".to_owned())
/// }
/// ```
pub struct EffectError {
    pub(crate) known: EffectKnowledge,
    pub(crate) cause: Cause,
}

pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// What is known of an effect whose work failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EffectKnowledge {
    /// There is none.
    NotSent,
    /// There is none, and never will be.
    Final,
    /// Nothing.
    Nothing,
}

impl EffectError {
    /// Nothing was sent, so nothing happened: the key is free, and the next call runs.
    pub fn not_sent(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { known: EffectKnowledge::NotSent, cause: cause.into() }
    }

    /// It failed for good: this is kept, and told to everybody who asks again.
    pub fn is_final(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { known: EffectKnowledge::Final, cause: cause.into() }
    }

    /// It may have happened or not: as every error that says nothing else.
    pub fn unknown(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { known: EffectKnowledge::Nothing, cause: cause.into() }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for EffectError {
    fn from(error: E) -> Self {
        Self::unknown(error)
    }
}

impl fmt::Debug for EffectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({:?})", self.known, self.cause)
    }
}
