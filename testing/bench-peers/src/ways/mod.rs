//! Who is compared.

mod gateway;
mod hapax;
mod idempotent;
mod proxy;
mod sessions;

use clap::ValueEnum;

pub(crate) use self::{
    gateway::serve as serve_gateway,
    hapax::protect as protect_by_hapax,
    idempotent::protect as protect_by_idempotent,
    proxy::{PATH as PROXY_PATH, Proxy},
    sessions::{LOGIN, protect as protect_by_sessions},
};

/// One way to give each key one effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub(crate) enum Way {
    /// The handler alone, which protects nothing.
    Bare,
    HapaxMemory,
    IdempotentMemory,
    SessionsMemory,
    HapaxPostgres,
    SessionsPostgres,
    HapaxSqlite,
    IdempotentRedisAlways,
    IdempotentRedisEverysec,
    GatewayMemory,
    ProxyMemory,
    GatewaySqlite,
    ProxyRedisAlways,
}

/// Ways that are held against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Memory,
    Postgres,
    Synced,
    ProxyMemory,
    ProxySynced,
}

impl Class {
    pub(crate) const ALL: &[Self] =
        &[Self::Memory, Self::Postgres, Self::Synced, Self::ProxyMemory, Self::ProxySynced];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Memory => "layer, in memory: forgotten with the process",
            Self::Postgres => "layer, on PostgreSQL: the store that both have",
            Self::Synced => {
                "layer, synced to disk: SQLite beside Redis, no store is common to both"
            }
            Self::ProxyMemory => "proxy, in memory",
            Self::ProxySynced => "proxy, synced to disk: SQLite beside Redis",
        }
    }
}

/// Where a way keeps what it remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping {
    Memory,
    File,
    Postgres,
    Redis(Fsync),
}

/// When Redis syncs its log to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fsync {
    /// Before every answer.
    Always,
    /// Each second: a crash of the machine loses up to one.
    Everysec,
}

/// By whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    Nobody,
    Hapax,
    HapaxGateway,
    Idempotent,
    Sessions,
    Proxy,
}

struct Facts {
    label: &'static str,
    maker: Maker,
    class: Class,
    keeping: Keeping,
}

const fn facts(label: &'static str, maker: Maker, class: Class, keeping: Keeping) -> Facts {
    Facts { label, maker, class, keeping }
}

impl Way {
    pub(crate) const ALL: &[Self] = &[
        Self::Bare,
        Self::HapaxMemory,
        Self::IdempotentMemory,
        Self::SessionsMemory,
        Self::HapaxPostgres,
        Self::SessionsPostgres,
        Self::HapaxSqlite,
        Self::IdempotentRedisAlways,
        Self::IdempotentRedisEverysec,
        Self::GatewayMemory,
        Self::ProxyMemory,
        Self::GatewaySqlite,
        Self::ProxyRedisAlways,
    ];

    const fn facts(self) -> Facts {
        use {Class as C, Fsync::*, Keeping as K, Maker as M};
        match self {
            Self::Bare => facts("no protection", M::Nobody, C::Memory, K::Memory),
            Self::HapaxMemory => facts("hapax, memory", M::Hapax, C::Memory, K::Memory),
            Self::IdempotentMemory => {
                facts("idempotent 2.0.0, memory", M::Idempotent, C::Memory, K::Memory)
            }
            Self::SessionsMemory => {
                facts("axum-idempotent 0.6.0, moka", M::Sessions, C::Memory, K::Memory)
            }
            Self::HapaxPostgres => facts("hapax, PostgreSQL", M::Hapax, C::Postgres, K::Postgres),
            Self::SessionsPostgres => {
                facts("axum-idempotent 0.6.0, PostgreSQL", M::Sessions, C::Postgres, K::Postgres)
            }
            Self::HapaxSqlite => facts("hapax, SQLite", M::Hapax, C::Synced, K::File),
            Self::IdempotentRedisAlways => {
                facts("idempotent 2.0.0, Redis always", M::Idempotent, C::Synced, K::Redis(Always))
            }
            Self::IdempotentRedisEverysec => facts(
                "idempotent 2.0.0, Redis everysec",
                M::Idempotent,
                C::Synced,
                K::Redis(Everysec),
            ),
            Self::GatewayMemory => {
                facts("hapax gateway, memory", M::HapaxGateway, C::ProxyMemory, K::Memory)
            }
            Self::ProxyMemory => {
                facts("idempotent-proxy 1.2.2, memory", M::Proxy, C::ProxyMemory, K::Memory)
            }
            Self::GatewaySqlite => {
                facts("hapax gateway, SQLite", M::HapaxGateway, C::ProxySynced, K::File)
            }
            Self::ProxyRedisAlways => facts(
                "idempotent-proxy 1.2.2, Redis always",
                M::Proxy,
                C::ProxySynced,
                K::Redis(Always),
            ),
        }
    }

    pub(crate) const fn label(self) -> &'static str {
        self.facts().label
    }

    pub(crate) const fn maker(self) -> Maker {
        self.facts().maker
    }

    pub(crate) const fn class(self) -> Class {
        self.facts().class
    }

    pub(crate) const fn keeping(self) -> Keeping {
        self.facts().keeping
    }

    /// What it is called on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether it protects anything, so that there is something to examine.
    pub(crate) fn protects(self) -> bool {
        self.maker() != Maker::Nobody
    }

    pub(crate) fn is_ours(self) -> bool {
        matches!(self.maker(), Maker::Hapax | Maker::HapaxGateway)
    }

    /// Whether others are held against it: a peer whose answers are as durable as ours.
    pub(crate) fn is_measure(self) -> bool {
        let durable = self.keeping() != Keeping::Redis(Fsync::Everysec);
        durable && matches!(self.maker(), Maker::Idempotent | Maker::Sessions | Maker::Proxy)
    }

    /// Whether it stands before a server of its own.
    pub(crate) fn is_proxy(self) -> bool {
        matches!(self.maker(), Maker::HapaxGateway | Maker::Proxy)
    }
}
