//! What is run, once: the engine is asked, the service called, its answer kept, and found out about if it is lost.

pub(crate) mod admission;
pub(crate) mod background;
pub(crate) mod body_capture;
pub(crate) mod failed_attempt;
pub(crate) mod inner_answer;
pub(crate) mod probe;
pub(crate) mod rate_limit;
pub(crate) mod recovery;
pub(crate) mod revalidate;
pub(crate) mod service_call;
pub(crate) mod status_meaning;
pub(crate) mod transactional;
pub(crate) mod unit;
pub(crate) mod usual_time;
