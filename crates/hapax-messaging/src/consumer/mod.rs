//! One effect for each message, however often it is delivered.
//!
//! A message goes through the files in order. `run` takes it from its source and finds out who it is
//! (`naming`), whom it must wait for (`lanes`) and who goes with it; `transactional` acts on it in one
//! transaction with its record, `together` on several in one; `delivery` settles them with the broker
//! afterwards.
//!
//! - `source`: [`Source`], what a broker's adapter implements;
//! - `builder`: [`Consumer`], put together and run; `options`: how it treats its messages;
//! - `handler`: what your code is given, and what it answers;
//! - `external`: [`External`], the same for effects that no transaction can take back;
//! - `dead`: [`DeadLetters`], where messages go that could not be acted on;
//! - `worker`: what is done with one message, whatever does it.

mod builder;
mod clock;
mod dead_letters;
mod delivery;
mod error;
mod external;
mod handler;
mod lanes;
mod naming;
mod options;
mod places;
mod run;
mod source;
mod together;
mod transactional;
mod worker;

pub use hapax_core::inbox::{Guard, Identity, Message, Partition, Place};

pub use self::{
    builder::Consumer,
    dead_letters::{
        CONSUMER_HEADER, DETAIL_HEADER, DeadLetters, ID_HEADER, REASON_HEADER, SOURCE_HEADER,
    },
    error::RunError,
    external::External,
    handler::{HandlerError, Tx},
    naming::Naming,
    options::{GapPolicy, GivenUp, Options, ProgressStorage},
    places::PLACES,
    source::{Arrived, Delivery, Disposition, Incoming, Receipt, Source, SourceError},
};
