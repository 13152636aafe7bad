//! The program that is packed, and what its own header says about it.

use std::{fs, path::Path};

use clap::ValueEnum;

use super::{size, unusable};
use crate::TaskFailure;

/// A processor that programs are built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Architecture {
    #[value(name = "x86_64")]
    X86_64,
    #[value(name = "aarch64")]
    Aarch64,
}

impl Architecture {
    /// That of this machine.
    pub(super) fn ours() -> Result<Self, TaskFailure> {
        let known = Self::value_variants().iter().find(|one| one.is_ours());
        let none = "there are no packages for this machine's processor; `--target` names another";
        known.copied().ok_or_else(|| TaskFailure::new(none))
    }

    /// As compilers and Python call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// As Debian and container images call it.
    pub(super) fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// As Node calls it.
    pub(super) fn node(self) -> &'static str {
        match self {
            Self::X86_64 => "x64",
            Self::Aarch64 => "arm64",
        }
    }

    /// What static programs for it are compiled for.
    pub(super) fn target(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }

    /// Whether programs for it run here.
    pub(super) fn is_ours(self) -> bool {
        std::env::consts::ARCH == self.name()
    }
}

/// Whether a program brings everything that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Linkage {
    /// It runs on any Linux.
    Static,
    /// It needs the C library of the system it was built on, or a newer one.
    Dynamic,
}

/// A program for Linux.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) content: Vec<u8>,
    pub(super) architecture: Architecture,
    pub(super) linkage: Linkage,
    pub(super) path: std::path::PathBuf,
}

impl Program {
    /// The program at this path.
    pub(super) fn read(path: &Path) -> Result<Self, TaskFailure> {
        let content = fs::read(path).map_err(|error| unusable(path, &error))?;
        let what = "is no program for Linux on x86-64 or arm64";
        let (architecture, linkage) = header(&content)
            .ok_or_else(|| TaskFailure::new(format!("{} {what}", path.display())))?;
        Ok(Self { content, architecture, linkage, path: path.to_owned() })
    }

    pub(super) fn describe(&self) {
        let linkage = match self.linkage {
            Linkage::Static => "static",
            Linkage::Dynamic => "needs the C library of the machine it was built on",
        };
        let (name, size) = (self.architecture.name(), size(self.content.len()));
        println!("hapax for {name}: {size}, {linkage}");
    }
}

/// What the header of an ELF file says: the processor, and whether something else has to load it.
fn header(content: &[u8]) -> Option<(Architecture, Linkage)> {
    const MAGIC_64_BITS_LITTLE_ENDIAN: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
    const INTERPRETER: u32 = 3;
    if !content.starts_with(&MAGIC_64_BITS_LITTLE_ENDIAN) {
        return None;
    }
    let short = |at: usize| Some(u16::from_le_bytes(*content.get(at..)?.first_chunk()?));
    let architecture = match short(18)? {
        62 => Architecture::X86_64,
        183 => Architecture::Aarch64,
        _ => return None,
    };
    let table = u64::from_le_bytes(*content.get(32..)?.first_chunk()?);
    let (table, width, count) = (usize::try_from(table).ok()?, short(54)?, short(56)?);
    let mut kinds = (0..usize::from(count)).map(|number| {
        let at = table.checked_add(number * usize::from(width))?;
        Some(u32::from_le_bytes(*content.get(at..)?.first_chunk()?))
    });
    let is_dynamic = kinds.any(|kind| kind == Some(INTERPRETER));
    Some((architecture, if is_dynamic { Linkage::Dynamic } else { Linkage::Static }))
}
