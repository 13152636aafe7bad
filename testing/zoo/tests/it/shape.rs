//! What the zoo says of itself.

use std::{collections::BTreeSet, fs, path::Path};

use hapax_zoo::{SPECIES, Species};

const LINES_OF_CODE_MAX: usize = 40;

#[test]
fn names_are_unique_and_each_fault_has_its_probe() {
    let names: BTreeSet<_> = SPECIES.iter().map(|species| species.name).collect();
    assert_eq!(names.len(), SPECIES.len());
    let broken = SPECIES.iter().filter_map(|species| species.fault.as_ref());
    let sentences: BTreeSet<_> = broken.clone().map(|fault| fault.sentence).collect();
    assert_eq!(sentences.len(), broken.clone().count());
    assert!(sentences.len() >= 32, "{} species are broken", sentences.len());
    assert!(broken.clone().all(|fault| !fault.found_by.is_empty()));
}

#[test]
fn every_probe_is_meant_for_some_fault() {
    let broken = SPECIES.iter().filter_map(|species| species.fault.as_ref());
    let found: BTreeSet<_> =
        broken.flat_map(|fault| fault.found_by).map(|probe| (*probe).to_owned()).collect();
    let all: BTreeSet<_> = (1..=32).map(|number| format!("V{number:02}")).collect();
    assert_eq!(found, all);
}

#[test]
fn each_species_is_a_short_file_of_its_own() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/species");
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().replace('_', "-");
        if name == "mod" {
            continue;
        }
        files += 1;
        let text = fs::read_to_string(&path).unwrap();
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let lines = text.lines().filter(is_code).count();
        assert!(lines <= LINES_OF_CODE_MAX, "{name} has {lines} lines of code");
        assert!(text.contains(&format!("\"{name}\"")), "{name} is not named after its file");
    }
    assert!(files >= SPECIES.len());
    assert!(Species::named("honest").is_some_and(|species| !species.is_broken()));
    assert!(Species::named("unicorn").is_none());
}
