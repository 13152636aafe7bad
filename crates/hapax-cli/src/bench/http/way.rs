//! The ways a request can take to the upstream.

use super::{gateway::Protection, load::Keys};
use crate::{args::HttpWay, bench::turns::Named};

/// How many keys the replays share: more than there are connections, and few enough for memory.
pub(super) const REPLAYED_KEYS: u64 = 1000;

/// Where a gateway keeps its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Records {
    File,
    Server,
}

/// What stands between the load and the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    Nothing,
    Nginx,
    Gateway(Protection, Records),
}

impl HttpWay {
    pub(super) fn between(self) -> Between {
        match self {
            Self::Direct => Between::Nothing,
            Self::Nginx => Between::Nginx,
            Self::Unprotected => Between::Gateway(Protection::Pass, Records::File),
            Self::Sqlite | Self::Replay => Between::Gateway(Protection::Protect, Records::File),
            Self::Postgres => Between::Gateway(Protection::Protect, Records::Server),
        }
    }

    pub(super) fn keys(self) -> Keys {
        match self {
            Self::Replay => Keys::Repeated(REPLAYED_KEYS),
            Self::Direct | Self::Nginx | Self::Unprotected | Self::Sqlite | Self::Postgres => {
                Keys::Fresh
            }
        }
    }
}

impl Named for HttpWay {
    fn label(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::Unprotected => "gateway, unprotected",
            Self::Sqlite => "gateway, SQLite",
            Self::Postgres => "gateway, PostgreSQL",
            Self::Replay => "gateway, replays",
        }
    }
}
