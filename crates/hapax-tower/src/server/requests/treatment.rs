//! What happens to the requests of a route.

use std::sync::Arc;

use crate::server::{options::Protection, requests::route::InvalidRoute};

/// What happens to the requests of a route.
///
/// ```
/// use hapax_tower::{Protection, Routes, Treatment};
/// use http::Method;
///
/// // Nothing gets through that no route names.
/// let routes = Routes::new(Treatment::Refuse)?
///     .route(Method::POST, "/search", Treatment::PassThrough)?
///     .route(Method::POST, "/payments", Treatment::Protect(Protection::default()))?;
/// assert_eq!(routes.labels().len(), 3);
/// # Ok::<(), hapax_tower::InvalidRoute>(())
/// ```
#[derive(Debug, Clone)]
pub enum Treatment {
    /// They are protected so.
    Protect(Protection),
    /// They pass; a key on them is ignored.
    PassThrough,
    /// They pass as if nothing protected them, and an [`Observer`](crate::Observer) is told what would
    /// have been done, had they been protected so.
    Observe(Protection),
    /// They are refused, and never reach the service.
    Refuse,
}

/// A treatment that was found good.
#[derive(Debug, Clone)]
pub(crate) enum Treated {
    Protected(Arc<Protection>),
    Observed(Arc<Protection>),
    Passes,
    Refused,
}

impl Treated {
    /// The treatment of a route with this label, unless it contradicts itself.
    pub(crate) fn checked(treatment: Treatment, label: &str) -> Result<Self, InvalidRoute> {
        match treatment {
            Treatment::Protect(protection) => Ok(Self::Protected(labelled(protection, label)?)),
            Treatment::Observe(protection) => Ok(Self::Observed(labelled(protection, label)?)),
            Treatment::PassThrough => Ok(Self::Passes),
            Treatment::Refuse => Ok(Self::Refused),
        }
    }

    pub(crate) fn protection(&self) -> Option<&Arc<Protection>> {
        match self {
            Self::Protected(protection) => Some(protection),
            Self::Observed(_) | Self::Passes | Self::Refused => None,
        }
    }

    pub(crate) fn observed(&self) -> Option<&Arc<Protection>> {
        match self {
            Self::Observed(protection) => Some(protection),
            Self::Protected(_) | Self::Passes | Self::Refused => None,
        }
    }

    /// Whether its requests go on whatever they say.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Observed(_) | Self::Passes => true,
            Self::Protected(_) | Self::Refused => false,
        }
    }

    pub(crate) fn protection_mut(&mut self) -> Option<&mut Arc<Protection>> {
        match self {
            Self::Protected(protection) => Some(protection),
            Self::Observed(_) | Self::Passes | Self::Refused => None,
        }
    }
}

fn labelled(mut protection: Protection, label: &str) -> Result<Arc<Protection>, InvalidRoute> {
    protection.check()?;
    if protection.label.is_empty() {
        protection.label = label.into();
    }
    Ok(Arc::new(protection))
}
