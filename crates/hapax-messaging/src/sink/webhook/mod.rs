//! Webhooks: events as signed HTTP requests to somebody's address.
//!
//! - `send`: [`Webhook`], the sink (feature `webhook`);
//! - `answer`: what a receiver's answer means;
//! - `signature`: [`verify`], for those who receive (feature `signatures`), and [`sign`].

#[cfg(feature = "webhook")]
mod answer;
#[cfg(feature = "webhook")]
mod send;
mod signature;

#[cfg(feature = "webhook")]
pub use self::send::{InvalidWebhook, Webhook, WebhookOptions};
pub use self::signature::{
    ID, InvalidSecret, SIGNATURE, Secret, TIMESTAMP, TOLERANCE, Unverified, Verified, sign, verify,
};
