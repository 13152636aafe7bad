//! `hapax encryption`: what a person does with the keys of a store.
//!
//! - `masters` finds the store and its master keys, in a gateway's file or in files of their own;
//! - `print` says what came of it.

mod error;
mod masters;
mod print;

use std::io::{self, BufRead, IsTerminal, Write};

use hapax::{OpenStore, Reason, StoreAddress, Tenant, encryption::rewrap, store::KeyStorage};

pub(crate) use self::{
    error::EncryptionTaskError,
    masters::{for_journal, from_files},
};
use self::{masters::KeyPlace, print::KeyPrinter};
use crate::{
    args::{EncryptionTask, EraseArgs, KeyStoreArgs, RewrapArgs, ShowKeysArgs},
    store::Access,
    user::user_name,
};

/// Does the task.
pub(crate) fn run(task: EncryptionTask) -> Result<(), EncryptionTaskError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let perform = async {
        match task {
            EncryptionTask::Show(args) => show(&args).await,
            EncryptionTask::Rewrap(args) => rewrap_all(&args).await,
            EncryptionTask::Erase(args) => erase(&args).await,
        }
    };
    runtime.map_err(EncryptionTaskError::Runtime)?.block_on(perform)
}

async fn show(args: &ShowKeysArgs) -> Result<(), EncryptionTaskError> {
    let store = open(&KeyPlace::of(&args.store)?, Access::Look).await?;
    let masters = store.master_keys().await?;
    let keys = match &args.tenant {
        Some(tenant) => Some(store.data_keys(tenant.clone()).await?.keys),
        None => None,
    };
    printer(&args.store).shown(&masters, keys.as_deref())
}

async fn rewrap_all(args: &RewrapArgs) -> Result<(), EncryptionTaskError> {
    let place = KeyPlace::of(&args.store)?;
    let encryption = match from_files(&args.keys)? {
        Some(encryption) => encryption,
        None => place.encryption.clone().ok_or(EncryptionTaskError::NoMasterKey)?,
    };
    let store = open(&place, Access::Change).await?;
    let done = rewrap(&store, &encryption).await?;
    printer(&args.store).rewrapped(encryption.master.name(), done)
}

async fn erase(args: &EraseArgs) -> Result<(), EncryptionTaskError> {
    let who = args.who.clone().unwrap_or_else(user_name);
    let reason = Reason::new(&who, &args.why)?;
    let store = open(&KeyPlace::of(&args.store)?, Access::Change).await?;
    if !args.yes {
        ask(&args.tenant)?;
    }
    let erased = store.erase_data_keys(args.tenant.clone(), reason).await?;
    if erased == 0 {
        return Err(EncryptionTaskError::NothingToErase);
    }
    printer(&args.store).erased(&args.tenant, erased)
}

/// Asks on a terminal; where there is none, whoever wrote the command has decided.
fn ask(tenant: &Tenant) -> Result<(), EncryptionTaskError> {
    if !io::stdin().is_terminal() {
        return Ok(());
    }
    let mut terminal = io::stderr().lock();
    let what = "nothing that was stored for it so far can be read again, by anybody";
    write!(terminal, "{}: {what}. Type yes to go on: ", tenant.as_str())?;
    terminal.flush()?;
    let mut said = String::new();
    io::stdin().lock().read_line(&mut said)?;
    if said.trim() == "yes" { Ok(()) } else { Err(EncryptionTaskError::Declined) }
}

async fn open(place: &KeyPlace, access: Access) -> Result<OpenStore, EncryptionTaskError> {
    let address: StoreAddress = place.store.parse()?;
    match &address {
        StoreAddress::Memory => Err(EncryptionTaskError::Memory),
        StoreAddress::Sqlite(_) | StoreAddress::Postgres(_) => {
            Ok(OpenStore::open(&address, access).await?)
        }
    }
}

fn printer(args: &KeyStoreArgs) -> KeyPrinter {
    KeyPrinter::new(args.json)
}
