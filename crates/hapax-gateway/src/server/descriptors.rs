//! How many files and sockets the process may open, and who may have them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;

/// Files and sockets for everything that is no connection of a client, an operator or to the
/// upstream: the store, its log, listeners, runtimes.
const SPARE: usize = 64;

/// How many connections of clients fit beside everybody else's.
///
/// The limit of the process is raised as far as it may be. If it is still too low for all that is
/// configured, operators keep theirs and clients share the rest with the upstream, so that nobody
/// is kept out by somebody else's connections.
pub(crate) fn for_clients(config: &Config) -> usize {
    let wanted = config.limits.connections_max;
    let upstream = config.upstream.connections_max.saturating_add(config.upstream.long_lived_max);
    let reserved = SPARE + config.limits.admin_connections_max;
    let Some(limit) = raised() else { return wanted };
    let free = limit.saturating_sub(reserved);
    let fit = wanted.min(free.saturating_sub(upstream).max(free / 2)).max(1);
    if fit < wanted {
        tracing::warn!(
            limit,
            fit,
            wanted,
            "the system allows too few open files for `connections`; raise `ulimit -n`"
        );
    }
    fit
}

/// The limit, after it was raised; `None` if there is none.
fn raised() -> Option<usize> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current?;
    let is_raised = maximum.is_none_or(|maximum| current < maximum)
        && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let limit = if is_raised { maximum } else { Some(current) };
    limit.and_then(|limit| usize::try_from(limit).ok())
}
