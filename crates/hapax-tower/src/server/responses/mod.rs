//! What clients are told: answers, refusals, and the pages that explain them.

pub(crate) mod answer;
pub(crate) mod async_status;
pub(crate) mod code;
pub(crate) mod dialects;
pub(crate) mod openapi;
pub(crate) mod pages;
pub(crate) mod problem;
pub(crate) mod wellknown;
