//! Real crashes on real stores, and whether broken promises are noticed.

mod broken;
mod check;
mod crashes;
