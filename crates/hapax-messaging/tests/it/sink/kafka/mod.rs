//! Kafka, the real one.

pub(crate) mod cluster;
mod own;
mod worlds;

mod plain {
    use super::worlds::Plain;
    use crate::sink::suite::{sink_conformance, sink_copies, sink_outages, sink_refusals};

    sink_conformance!(Plain);
    sink_refusals!(Plain);
    sink_copies!(Plain);
    sink_outages!(Plain);
}

/// The broker refuses what the client would let pass.
mod narrow {
    use super::worlds::Narrow;
    use crate::sink::suite::sink_refusals;

    sink_refusals!(Narrow);
}

/// Each call is a transaction.
mod transactional {
    use super::worlds::Transactional;
    use crate::sink::suite::{cases, sink_conformance, sink_copies, sink_refusals};

    sink_conformance!(Transactional);
    sink_refusals!(Transactional);
    sink_copies!(Transactional);
    cases!(Transactional: nothing_is_lost_or_swapped_when_the_server_is_killed);
}
