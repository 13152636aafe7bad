//! What is not done, and why.

use http::StatusCode;

use super::{
    keys::ReadError,
    storm::{COPIES_MAX, STORM_ORDERS_MAX},
};
use crate::demo::error::DemoError;

/// Why something that was asked for is not done, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(super) enum ActionRefusal {
    #[error("this page is served under its address on this machine only")]
    Host,
    #[error("only the page of the demo may do that, and this request comes from elsewhere")]
    Origin,
    #[error("the token of the page is missing or of another demo; load the page again")]
    Token,
    #[error("there is nothing here")]
    Nowhere,
    #[error("cannot understand what is wanted: {0}")]
    Invalid(String),
    #[error("the gateway is down already; wait until it is up again")]
    GatewayDown,
    #[error("a storm is under way; one at a time")]
    StormUnderWay,
    #[error("a storm has 1 to {STORM_ORDERS_MAX} orders, each sent by 1 to {COPIES_MAX} clients")]
    StormSize,
    #[error("too many orders wait for their answer; try again in a moment")]
    Busy,
    #[error("this demo has seen enough orders; stop it and start it again")]
    Full,
    #[error("the gateway's records cannot be read just now")]
    Unreadable(#[source] ReadError),
    #[error("the gateway could not be killed")]
    NotKilled(#[source] DemoError),
    #[error("the page could not be made")]
    NoPage(#[source] DemoError),
}

impl ActionRefusal {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Origin | Self::Token => StatusCode::FORBIDDEN,
            Self::Nowhere => StatusCode::NOT_FOUND,
            Self::Invalid(_) | Self::StormSize => StatusCode::UNPROCESSABLE_ENTITY,
            Self::GatewayDown | Self::StormUnderWay => StatusCode::CONFLICT,
            Self::Busy | Self::Full => StatusCode::TOO_MANY_REQUESTS,
            Self::Unreadable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::NotKilled(_) | Self::NoPage(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}
