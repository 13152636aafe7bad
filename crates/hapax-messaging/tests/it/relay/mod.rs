//! The relay: what it sends, in which order, and what becomes of what is not taken.

mod failure;
mod life;
mod moody;
mod order;
mod place;
mod scene;
mod sharing;
mod storm;
