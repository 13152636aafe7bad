//! The PostgreSQL store of Hapax: coalesced multi-row writes on few connections.
