//! The caller's layer, around a destination that says what a test wants it to say.

mod answers;
mod bodies;
mod deadlines;
mod doubts;
mod keys;
mod load;
mod script;
mod told;
mod watching;
