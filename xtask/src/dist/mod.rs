//! `cargo xtask dist`: everything that people install, made from one program.
//!
//! - `build` compiles it, static and for each processor; `program` is one, wherever it comes from;
//! - `payload` is what goes along with it: licences, manual pages, completions, the schema;
//! - `tarball`, `wheel`, `npm`, `debian` and `image` are the packages, `archive` is below them;
//! - `bill` says what is in the program, `notices` under which licences;
//! - `crates` packs what Rust services depend on.
//!
//! No daemon, no root, and nothing that differs from one run to the next: the same program gives the
//! same packages, byte for byte.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use flate2::Compression;
use sha2::{Digest, Sha256};

pub use self::program::Architecture;
use self::{
    archive::hex, dependencies::Brokers, payload::Payload, program::Program, release::Release,
};
use crate::{TaskFailure, ci::target_dir};

mod archive;
mod bill;
mod build;
mod crates;
mod debian;
mod dependencies;
mod image;
mod notices;
mod npm;
mod payload;
mod program;
mod release;
mod tarball;
mod wheel;

/// What to make, and where to put it.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  cargo xtask dist                                    static programs for x86-64 and arm64, and all packages
  cargo xtask dist --only x86_64 --out packages
  cargo xtask dist --binary target/debug/hapax        packages of a program that is there already")]
pub struct Dist {
    /// Where everything is put; `dist-packages` in the target directory unless said otherwise.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Packs this program instead of building one; may be given once for each processor.
    #[arg(long, value_name = "FILE", conflicts_with = "only")]
    pub binary: Vec<PathBuf>,
    /// Only for this processor.
    #[arg(long, value_enum)]
    pub only: Option<Architecture>,
    /// Builds programs without Kafka, whose client and its OpenSSL are a quarter of their size.
    #[arg(long, conflicts_with = "binary")]
    pub without_kafka: bool,
    /// Compresses little, for those who only want to see whether it works.
    #[arg(long)]
    pub fast: bool,
}

impl Dist {
    /// Makes all packages, and says of each where it is and how large.
    pub fn run(&self, root: &Path) -> Result<(), TaskFailure> {
        let out = match &self.out {
            Some(out) => out.clone(),
            None => target_dir()?.join("dist-packages"),
        };
        let effort = if self.fast { Compression::fast() } else { Compression::best() };
        let release = Release::of(root, effort)?;
        let programs = self.programs(root)?;
        let payload = match programs.iter().find(|program| program.architecture.is_ours()) {
            Some(ours) => Payload::gather(root, ours, &release)?,
            None => Payload::gather(root, &build::for_this_machine(root, self.with())?, &release)?,
        };
        let mut shelf = Shelf::empty(&out)?;
        for program in &programs {
            program.describe();
            shelf.put(&tarball::pack(program, &payload, &release)?)?;
            shelf.put(&wheel::pack(program, &payload, &release)?)?;
            shelf.put(&npm::pack_platform(program, &payload, &release)?)?;
            shelf.put(&debian::pack(program, &payload, &release)?)?;
            shelf.put(&image::pack(program, &payload, &release)?)?;
        }
        shelf.put(&npm::pack_main(&payload, &release)?)?;
        shelf.put(&Package::new("hapax.sql", payload.schema))?;
        shelf.put(&Package::new(format!("hapax-{}.cdx.json", release.version), payload.bill))?;
        for package in crates::pack(root)? {
            shelf.put(&package)?;
        }
        shelf.close()
    }

    fn programs(&self, root: &Path) -> Result<Vec<Program>, TaskFailure> {
        if !self.binary.is_empty() {
            return self.binary.iter().map(|path| Program::read(path)).collect();
        }
        let wanted =
            |architecture: &Architecture| self.only.is_none_or(|only| only == *architecture);
        Architecture::ALL
            .into_iter()
            .filter(wanted)
            .map(|one| build::run(root, one, self.with()))
            .collect()
    }

    fn with(&self) -> Brokers {
        Brokers { kafka: !self.without_kafka }
    }
}

/// A file that is handed out.
struct Package {
    name: String,
    content: Vec<u8>,
}

impl Package {
    fn new(name: impl Into<String>, content: Vec<u8>) -> Self {
        Self { name: name.into(), content }
    }
}

/// The directory that is handed out, and the checksums of what is in it.
struct Shelf {
    directory: PathBuf,
    sums: Vec<(String, String)>,
}

impl Shelf {
    /// The directory, without what an earlier run left in it.
    fn empty(directory: &Path) -> Result<Self, TaskFailure> {
        let unusable = |error| unusable(directory, &error);
        if directory.join(SUMS).exists() {
            fs::remove_dir_all(directory).map_err(unusable)?;
        }
        fs::create_dir_all(directory).map_err(unusable)?;
        Ok(Self { directory: directory.to_owned(), sums: Vec::new() })
    }

    fn put(&mut self, package: &Package) -> Result<(), TaskFailure> {
        let path = self.directory.join(&package.name);
        fs::write(&path, &package.content).map_err(|error| unusable(&path, &error))?;
        println!("{:>10}  {}", size(package.content.len()), path.display());
        self.sums.push((package.name.clone(), hex(&Sha256::digest(&package.content))));
        Ok(())
    }

    /// Writes the checksums, as `sha256sum --check` reads them.
    fn close(mut self) -> Result<(), TaskFailure> {
        self.sums.sort();
        let lines = self.sums.iter().map(|(name, sum)| format!("{sum}  {name}\n"));
        let path = self.directory.join(SUMS);
        fs::write(&path, lines.collect::<String>()).map_err(|error| unusable(&path, &error))?;
        println!("{:>10}  {}", "", path.display());
        Ok(())
    }
}

const SUMS: &str = "SHA256SUMS";

/// Bytes as people say them.
fn size(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..1_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

fn unusable(path: &Path, error: &std::io::Error) -> TaskFailure {
    TaskFailure::new(format!("{}: {error}", path.display()))
}
