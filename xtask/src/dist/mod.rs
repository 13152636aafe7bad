//! `cargo xtask dist`: everything that people install, made from one program.
//!
//! - `build` compiles it, static and for each processor; `program` is one, wherever it comes from;
//! - `payload` is what goes along with it: licences, manual pages, completions, the schema;
//! - `tarball`, `wheel`, `npm`, `debian` and `image` are the packages, `archive` is below them;
//! - `bill` says what is in the program, `notices` under which licences;
//! - `crates` packs what Rust services depend on, `sdk` what those in other languages do.
//!
//! No daemon, no root, and nothing that differs from one run to the next: the same program gives the
//! same packages, byte for byte.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use flate2::Compression;
use sha2::{Digest, Sha256};

pub use self::program::Architecture;
use self::{
    archive::hex, dependencies::Brokers, payload::Payload, program::Program, release::Release,
};
use crate::{
    TaskFailure,
    ci::{command, succeed, target_dir},
};

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
mod sdk;
mod tarball;
mod wheel;

/// What to make, and where to put it.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  cargo xtask dist                                    a static program for this processor, and all packages
  cargo xtask dist --target x86_64 --target aarch64   for both
  cargo xtask dist --check                            and has each of them installed in an empty place, and run
  cargo xtask dist --binary target/debug/hapax        packages of a program that is there already")]
pub struct Dist {
    /// Where everything is put; `dist-packages` in the target directory unless said otherwise.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Packs this program instead of building one; may be given once for each processor.
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    pub binary: Vec<PathBuf>,
    /// For this processor, instead of that of this machine; may be given for each.
    #[arg(long, value_enum, value_name = "PROCESSOR")]
    pub target: Vec<Architecture>,
    /// Leaves a part out; may be given for each.
    #[arg(long, value_enum, value_name = "PART")]
    pub without: Vec<Part>,
    /// Installs every package from its file into an empty place and runs it there, which takes a minute.
    #[arg(long)]
    pub check: bool,
    /// Compresses little, for those who only want to see whether it works.
    #[arg(long)]
    pub fast: bool,
}

/// What can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The client of Kafka and its OpenSSL, a quarter of the program, where one is built.
    Kafka,
    /// The packages for Python, Node, Go and Java, each of which needs its language here.
    Sdks,
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
        let architectures: Vec<_> = programs.iter().map(|program| program.architecture).collect();
        shelf.put(&npm::pack_main(&architectures, &payload, &release)?)?;
        shelf.put(&Package::new("hapax.sql", payload.schema))?;
        let without_sdks = self.without.contains(&Part::Sdks);
        let (packages, handed) =
            if without_sdks { (Vec::new(), Vec::new()) } else { sdk::pack(root, &release)? };
        let bill = bill::with_packages(&payload.bill, &handed, &release)?;
        shelf.put(&Package::new(format!("hapax-{}.cdx.json", release.version), bill))?;
        for package in packages.into_iter().chain(crates::pack(root)?) {
            shelf.put(&package)?;
        }
        shelf.close()?;
        if self.check { check(root, &out) } else { Ok(()) }
    }

    fn programs(&self, root: &Path) -> Result<Vec<Program>, TaskFailure> {
        if !self.binary.is_empty() {
            return self.binary.iter().map(|path| Program::read(path)).collect();
        }
        let wanted =
            if self.target.is_empty() { vec![Architecture::ours()?] } else { self.target.clone() };
        wanted.into_iter().map(|one| build::run(root, one, self.with())).collect()
    }

    fn with(&self) -> Brokers {
        Brokers { kafka: !self.without.contains(&Part::Kafka) }
    }
}

/// Has the tests that install packages install these, and say how long each took.
fn check(root: &Path, out: &Path) -> Result<(), TaskFailure> {
    let mut cargo = command(root);
    cargo.args(["test", "--locked", "--package", "xtask", "--test", "it", "packages"]);
    // One at a time: the seconds it tells are those that somebody waits.
    cargo.args(["--", "--nocapture", "--test-threads", "1"]);
    let out = fs::canonicalize(out).map_err(|error| unusable(out, &error))?;
    succeed(cargo.env(PACKAGES, out))
}

/// The variable that names packages to those who test them, where they shall not make their own.
pub const PACKAGES: &str = "HAPAX_PACKAGES";

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
        // Whoever dies before the end leaves a directory that the next one knows, and sums that nobody accepts.
        fs::write(directory.join(SUMS), "").map_err(unusable)?;
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
