//! What Patroni is told.

use std::{net::Ipv4Addr, path::Path};

use super::{Replication, inner_address};

/// Where etcd is, for the machines alone.
pub(super) const ETCD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(super) const ETCD_PORT: u16 = 2379;
pub(super) const POSTGRES_PORT: u16 = 5432;
pub(super) const REST_PORT: u16 = 8008;

/// For how many seconds a leader that says nothing is believed to be there. Patroni 3.0 takes this; newer ones take
/// 20 for anything below.
const TTL: u32 = 6;
const LOOP_WAIT: u32 = 1;
const RETRY_TIMEOUT: u32 = 2;

pub(super) fn name(node: usize) -> String {
    format!("node{node}")
}

/// The file of one machine, which keeps its data in `files`.
pub(super) fn of_node(node: usize, files: &Path, bin: &Path, replication: Replication) -> String {
    let (name, address) = (name(node), inner_address(node));
    let (files, bin) = (files.display(), bin.display());
    let synchronous = replication == Replication::Synchronous;
    format!(
        "scope: hapax
name: {name}
restapi: {{listen: '0.0.0.0:{REST_PORT}', connect_address: '{address}:{REST_PORT}'}}
etcd3: {{hosts: '{ETCD}:{ETCD_PORT}'}}
bootstrap:
  dcs:
    ttl: {TTL}
    loop_wait: {LOOP_WAIT}
    retry_timeout: {RETRY_TIMEOUT}
    maximum_lag_on_failover: 1073741824
    synchronous_mode: {synchronous}
    synchronous_mode_strict: {synchronous}
    postgresql:
      use_pg_rewind: true
      parameters: {{wal_log_hints: 'on', max_connections: 100}}
  initdb: [auth: trust, encoding: UTF8, locale: C, no-sync]
postgresql:
  listen: '0.0.0.0:{POSTGRES_PORT}'
  connect_address: '{address}:{POSTGRES_PORT}'
  data_dir: {files}/data
  bin_dir: {bin}
  pgpass: {files}/pgpass
  authentication: {{superuser: {{username: postgres}}, replication: {{username: postgres}}}}
  parameters: {{unix_socket_directories: {files}}}
  basebackup: [checkpoint: fast, no-sync]
  pg_hba: [local all all trust, host all all 0.0.0.0/0 trust, host replication all 0.0.0.0/0 trust]
"
    )
}
