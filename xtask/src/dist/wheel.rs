//! A Python wheel that carries the program, so that `pipx run hapax-cli` needs no Rust.
//!
//! `hapax` is somebody else's name there; `hapax-cli` is the crate's own.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use super::{
    Package,
    archive::{Entry, zip},
    payload::Payload,
    program::{Linkage, Program},
    release::{AUTHORS, LICENCE, Release},
};
use crate::TaskFailure;

/// `hapax_cli-VERSION-py3-none-PLATFORMS.whl`.
pub(super) fn pack(
    program: &Program,
    payload: &Payload,
    release: &Release,
) -> Result<Package, TaskFailure> {
    let stem = format!("hapax_cli-{}", release.version);
    let platforms = platforms(program);
    let info = format!("{stem}.dist-info");
    let mut entries = vec![
        Entry::program(format!("{stem}.data/scripts/hapax"), program.content.clone()),
        Entry::file(format!("{info}/METADATA"), metadata(payload, release)),
        Entry::file(format!("{info}/WHEEL"), wheel(&platforms)),
    ];
    entries.extend(payload.licences.iter().map(|entry| entry.below(&format!("{info}/licenses"))));
    // The list names itself, without a sum.
    let record: String = entries.iter().map(recorded).collect();
    entries.push(Entry::file(format!("{info}/RECORD"), format!("{record}{info}/RECORD,,\n")));
    let name = format!("{stem}-py3-none-{}.whl", platforms.join("."));
    Ok(Package::new(name, zip(&entries, release)?))
}

/// Where pip installs it. A static program needs no C library: these are the oldest systems that pip
/// still knows by a name of this kind.
fn platforms(program: &Program) -> Vec<String> {
    let kinds: &[&str] = match program.linkage {
        Linkage::Static => &["manylinux_2_17", "manylinux2014", "musllinux_1_1"],
        Linkage::Dynamic => &["linux"],
    };
    kinds.iter().map(|kind| format!("{kind}_{}", program.architecture.name())).collect()
}

fn metadata(payload: &Payload, release: &Release) -> String {
    let Release { version, description, .. } = release;
    let licences = payload.licences.iter().map(|entry| format!("License-File: {}\n", entry.path));
    format!(
        "Metadata-Version: 2.4\nName: hapax-cli\nVersion: {version}\nSummary: {description}\n\
         Author: {AUTHORS}\nLicense-Expression: {LICENCE}\n{}\
         Classifier: Operating System :: POSIX :: Linux\nClassifier: Programming Language :: Rust\n\
         Keywords: idempotency,retry,outbox,gateway\nDescription-Content-Type: text/markdown\n\n{}",
        licences.collect::<String>(),
        String::from_utf8_lossy(&payload.readme)
    )
}

fn wheel(platforms: &[String]) -> String {
    let tags = platforms.iter().map(|platform| format!("Tag: py3-none-{platform}\n"));
    let head = "Wheel-Version: 1.0\nGenerator: cargo xtask dist\nRoot-Is-Purelib: false\n";
    format!("{head}{}", tags.collect::<String>())
}

fn recorded(entry: &Entry) -> String {
    let sum = URL_SAFE_NO_PAD.encode(Sha256::digest(entry.content()));
    format!("{},sha256={sum},{}\n", entry.path, entry.content().len())
}
