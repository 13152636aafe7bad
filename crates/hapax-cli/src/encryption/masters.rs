//! Where the data keys and their master keys are.

use std::path::Path;

use hapax::{Encryption, LocalMasterKey, client::journal::JournalEncryption};
use hapax_gateway::config::{ConfigSource, Overrides};

use super::error::EncryptionTaskError;
use crate::{
    args::{KeyStoreArgs, MasterKeyArgs},
    relay::load_gateway,
    token::token_in,
};

/// Where the data keys are, and what a gateway's file says about them.
pub(super) struct KeyPlace {
    pub(super) store: String,
    pub(super) encryption: Option<Encryption>,
}

impl KeyPlace {
    pub(super) fn of(args: &KeyStoreArgs) -> Result<Self, EncryptionTaskError> {
        let Some(file) = &args.config else {
            return Ok(Self { store: args.usual_store(), encryption: None });
        };
        // Nothing is sent upstream, which a gateway may be told by a flag.
        let upstream = Some("http://upstream.invalid".to_owned());
        let overrides = Overrides { store: args.typed_store(), upstream, ..Overrides::default() };
        let config = load_gateway(&ConfigSource { file: Some(file.clone()), overrides })?.config;
        Ok(Self { store: config.store, encryption: config.encryption })
    }
}

/// What to read a store with, from files that hold a master key each; `None` if none is named.
pub(crate) fn from_files(args: &MasterKeyArgs) -> Result<Option<Encryption>, EncryptionTaskError> {
    Ok(match local_keys(args)? {
        Some((master, Some(previous))) => Some(Encryption::new(master).following(previous)),
        Some((master, None)) => Some(Encryption::new(master)),
        None => None,
    })
}

/// What a client's journal is encrypted with, from the same files.
pub(crate) fn for_journal(
    args: &MasterKeyArgs,
) -> Result<Option<JournalEncryption>, EncryptionTaskError> {
    Ok(match local_keys(args)? {
        Some((master, Some(previous))) => Some(JournalEncryption::new(master).following(previous)),
        Some((master, None)) => Some(JournalEncryption::new(master)),
        None => None,
    })
}

/// The master key that is named, and the one before it.
fn local_keys(
    args: &MasterKeyArgs,
) -> Result<Option<(LocalMasterKey, Option<LocalMasterKey>)>, EncryptionTaskError> {
    let Some(path) = &args.master_key_file else { return Ok(None) };
    let previous = args.previous_master_key_file.as_deref().map(master_key).transpose()?;
    Ok(Some((master_key(path)?, previous)))
}

fn master_key(path: &Path) -> Result<LocalMasterKey, EncryptionTaskError> {
    let path = path.to_owned();
    match token_in(&path) {
        Ok(text) => LocalMasterKey::parse(&text)
            .map_err(|source| EncryptionTaskError::InvalidKey { path, source }),
        Err(source) => Err(EncryptionTaskError::KeyFile { path, source }),
    }
}
