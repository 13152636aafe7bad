//! The ways a request can take to the upstream.

use super::{gateway::GatewayProtection, load::KeyChoice};
use crate::{args::HttpWay, turns::NamedWay};

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
    Gateway(GatewayProtection, Records),
}

impl HttpWay {
    pub(super) fn between(self) -> Between {
        match self {
            Self::Direct => Between::Nothing,
            Self::Nginx => Between::Nginx,
            Self::Unprotected => Between::Gateway(GatewayProtection::Pass, Records::File),
            Self::Sqlite | Self::Replay => {
                Between::Gateway(GatewayProtection::Protect, Records::File)
            }
            Self::Postgres => Between::Gateway(GatewayProtection::Protect, Records::Server),
        }
    }

    pub(super) fn keys(self) -> KeyChoice {
        match self {
            Self::Replay => KeyChoice::Repeated(REPLAYED_KEYS),
            Self::Direct | Self::Nginx | Self::Unprotected | Self::Sqlite | Self::Postgres => {
                KeyChoice::Fresh
            }
        }
    }
}

impl NamedWay for HttpWay {
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
