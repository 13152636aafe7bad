//! Each fault shown by the requests that bring it out, which bring out nothing where there is none.

mod connections;
mod failures;
mod keys;
mod races;
mod replays;
mod restarts;

use std::collections::BTreeSet;

use futures_util::future::{BoxFuture, join_all};
use hapax_zoo::{RunningSpecies, SPECIES, Species};

use crate::client::{Ask, MARKER, Told};

/// Whether the fault shows.
type Shown = BoxFuture<'static, bool>;
type Demonstration = (&'static str, fn(&'static Species) -> Shown);

fn demonstrations() -> impl Iterator<Item = Demonstration> {
    let all = [connections::ALL, failures::ALL, keys::ALL, races::ALL, replays::ALL, restarts::ALL];
    all.into_iter().flatten().copied()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_shows_on_its_species() {
    let shown = demonstrations().map(|(name, demonstration)| async move {
        let species = Species::named(name).unwrap();
        (name, tokio::spawn(demonstration(species)).await.unwrap_or_default())
    });
    let hidden: Vec<_> = join_all(shown).await.into_iter().filter(|(_, shown)| !shown).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_fault_shows_where_there_is_none() {
    for species in SPECIES.iter().filter(|species| !species.is_broken()) {
        let is_about_restarts =
            |(name, _): &Demonstration| restarts::ALL.iter().any(|(about, _)| about == name);
        let fitting =
            demonstrations().filter(|one| species.is_about_restarts || !is_about_restarts(one));
        let shown = fitting.map(|(name, demonstration)| async move {
            (name, tokio::spawn(demonstration(species)).await.unwrap_or(true))
        });
        let shown: Vec<_> = join_all(shown).await.into_iter().filter(|(_, shown)| *shown).collect();
        assert!(shown.is_empty(), "{}: {shown:?}", species.name);
    }
}

#[test]
fn each_broken_species_is_demonstrated_once() {
    let names: Vec<_> = demonstrations().map(|(name, _)| name).collect();
    let unique: BTreeSet<_> = names.iter().copied().collect();
    assert_eq!(unique.len(), names.len());
    let broken = SPECIES.iter().filter(|species| species.is_broken());
    assert_eq!(unique, broken.map(|species| species.name).collect());
}

/// One ask after the other.
async fn in_turn(species: &Species, first: Ask, second: Ask) -> (RunningSpecies, Told, Told) {
    let running = species.start().await.unwrap();
    let first = first.send(running.address).await;
    let second = second.send(running.address).await;
    (running, first, second)
}

/// Whether the second, sent after the first has been answered, has an effect of its own.
async fn acts_on_second(species: &Species, first: Ask, second: Ask) -> bool {
    let (running, first, second) = in_turn(species, first, second).await;
    assert_eq!(first.status, 201);
    let effects = running.effects("payments", MARKER);
    assert!((1..=2).contains(&effects), "{}: {effects} effects", species.name);
    effects == 2 && second.status == 201
}
