#![cfg(feature = "sqlite")]
//! The facade, as a service uses it.

mod payment;
mod restart;
