//! Requests whose connection may go on in another protocol: the handshake, and who gets what it opened.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hapax_tower::{AnswerBy, Body};
use http::{Request, Response};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use super::{Inner, Overdue, stall::Stalling};
use crate::client::{OfferAnswer, SendError, SwitchedConnection, UpgradeOffer};

/// An extension of a request whose client would go on in another protocol.
#[derive(Debug, Clone)]
pub(crate) struct UpgradeWish {
    offer: UpgradeOffer,
    granted: Arc<Mutex<Option<GrantedUpgrade>>>,
}

/// A connection to the upstream that is a client's own from now on.
pub(crate) struct GrantedUpgrade {
    pub(crate) upstream: SwitchedConnection,
    pub(crate) silence_max: Duration,
    /// Given back when the connection has ended.
    pub(crate) turn: OwnedSemaphorePermit,
}

impl UpgradeWish {
    pub(crate) fn new(offer: UpgradeOffer) -> Self {
        Self { offer, granted: Arc::default() }
    }

    /// What it came to, once there is an answer.
    pub(crate) fn granted(&self) -> Option<GrantedUpgrade> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn grant(&self, granted: GrantedUpgrade) {
        *self.granted.lock().unwrap_or_else(PoisonError::into_inner) = Some(granted);
    }
}

impl fmt::Debug for GrantedUpgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GrantedUpgrade").field(&self.upstream.protocol).finish()
    }
}

/// The wish of a request that is not protected, where the upstream and the configuration let it be
/// passed on.
pub(super) fn wish(inner: &Inner, request: &mut Request<Body>) -> Option<UpgradeWish> {
    let wish = request.extensions_mut().remove::<UpgradeWish>()?;
    (inner.turns.may_last() && inner.client.may_switch()).then_some(wish)
}

/// Sends a request with its client's wish. It takes a turn of those that last, not of the others.
pub(super) async fn pass(
    inner: &Inner,
    mut request: Request<Body>,
    wish: UpgradeWish,
) -> Result<Response<Body>, SendError> {
    let turn = inner.turns.lasting()?;
    wish.offer.say(request.headers_mut());
    let within = match request.extensions_mut().get_mut::<AnswerBy>() {
        Some(by) => {
            *by = by.within(inner.answer_timeout);
            by.left()
        }
        None => inner.answer_timeout,
    };
    let answered = timeout(within, inner.client.send_offering(request, &wish.offer)).await;
    match answered.unwrap_or_else(|_| Err(SendError::Unanswered(Overdue.into())))? {
        OfferAnswer::TakenUp(response, upstream) => {
            wish.grant(GrantedUpgrade { upstream, silence_max: inner.silence_max, turn });
            Ok(response)
        }
        OfferAnswer::Declined(response) if response.body().is_whole() => Ok(response),
        OfferAnswer::Declined(response) => {
            let patience = inner.patience(&response);
            Ok(response.map(|body| Body::new(Stalling::new(body, patience, turn))))
        }
    }
}
