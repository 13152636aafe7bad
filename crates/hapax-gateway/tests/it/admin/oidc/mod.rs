//! Signing in by an OpenID provider.

mod flow;
mod outages;
mod people;
mod provider;
mod tokens;
