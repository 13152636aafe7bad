//! The model of a disk.

use bytes::Bytes;
use fastrand::Rng;
use hapax_power::{
    disk::{DiskImage, DiskModel, Loss, SECTOR_BYTES, Syncs},
    log::DiskCall,
};

const INODE: u64 = 7;

fn created() -> DiskCall {
    DiskCall::Created { inode: INODE, name: "file".to_owned() }
}

fn written(offset: u64, bytes: &'static [u8]) -> DiskCall {
    DiskCall::Written { inode: INODE, offset, bytes: Bytes::from_static(bytes) }
}

fn disk(calls: &[DiskCall]) -> DiskModel {
    let mut disk = DiskModel::new(&DiskImage::default(), Syncs::Honest);
    calls.iter().try_for_each(|call| disk.perform(call)).unwrap();
    disk
}

/// What is in the file after the loss, if it is there.
fn left(disk: &DiskModel, loss: Loss, seed: u64) -> Option<Vec<u8>> {
    disk.after_power_loss(loss, &mut Rng::with_seed(seed)).files.remove("file")
}

const SYNCED: DiskCall = DiskCall::Synced { inode: INODE };

#[test]
fn what_was_synced_survives_every_loss() {
    let disk = disk(&[created(), written(0, b"kept"), SYNCED, DiskCall::DirectorySynced]);
    for loss in [Loss::Nothing, Loss::Everything].into_iter().chain(Loss::BY_CHANCE) {
        assert_eq!(left(&disk, loss, 1).as_deref(), Some(&b"kept"[..]), "{loss:?}");
    }
}

#[test]
fn a_synced_file_whose_name_was_not_synced_may_not_be_found() {
    let disk = disk(&[created(), written(0, b"kept"), SYNCED]);
    assert_eq!(left(&disk, Loss::Everything, 1), None);
    assert_eq!(left(&disk, Loss::Nothing, 1).as_deref(), Some(&b"kept"[..]));
}

#[test]
fn a_removed_name_that_was_not_synced_may_come_back() {
    let removed = DiskCall::Unlinked { name: "file".to_owned() };
    let calls = [created(), written(0, b"kept"), SYNCED, DiskCall::DirectorySynced, removed];
    let disk = disk(&calls);
    assert_eq!(left(&disk, Loss::Everything, 1).as_deref(), Some(&b"kept"[..]));
    assert_eq!(left(&disk, Loss::Nothing, 1), None);
}

#[test]
fn unsynced_writes_are_lost_kept_and_swapped() {
    let calls = [created(), DiskCall::DirectorySynced, written(0, b"one"), written(3, b"two")];
    let disk = disk(&calls);
    let lost = (0..100).map(|seed| left(&disk, Loss::Some, seed).unwrap());
    let mut lost: Vec<_> = lost.collect();
    lost.sort();
    lost.dedup();
    assert_eq!(lost, [&b""[..], b"\0\0\0two", b"one", b"onetwo"]);
    let (calls, both) = ([written(0, b"new")], [b"one", b"new"]);
    let mut swapped = disk;
    calls.iter().try_for_each(|call| swapped.perform(call)).unwrap();
    for text in both {
        let found =
            (0..100).any(|seed| left(&swapped, Loss::Some, seed).unwrap().starts_with(text));
        assert!(found, "{text:?} never came last");
    }
}

#[test]
fn a_torn_write_is_torn_between_sectors_only() {
    const BYTES: &[u8] = &[1; 3 * SECTOR_BYTES];
    let disk = disk(&[created(), DiskCall::DirectorySynced, written(100, BYTES)]);
    let mut torn = 0;
    for seed in 0..100 {
        let found = left(&disk, Loss::Torn, seed).unwrap();
        for sector in found.chunks(SECTOR_BYTES).skip(1) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is torn");
        }
        torn += usize::from(found.contains(&1) && found.iter().skip(100).any(|byte| *byte == 0));
    }
    assert!(torn > 0, "no write was torn");
}

#[test]
fn what_comes_later_is_lost_first() {
    let calls = [created(), DiskCall::DirectorySynced, written(0, b"one"), written(3, b"two")];
    let disk = disk(&calls);
    for seed in 0..100 {
        let found = left(&disk, Loss::Later, seed).unwrap();
        assert!(b"onetwo".starts_with(&found[..]), "{found:?}");
    }
}
