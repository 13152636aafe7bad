//! Static programs, whatever machine this is.
//!
//! C libraries are inside (SQLite, ring, mimalloc, librdkafka, OpenSSL), so a C compiler for musl and for
//! each processor is needed. Zig is all of them in one package that pip installs by name, on any
//! distribution; Debian's musl-gcc knows no other processor, and its cross compilers no musl. The machine
//! itself has to have make and perl, for OpenSSL.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    dependencies::Brokers,
    program::{Architecture, Program},
};
use crate::{
    TaskFailure,
    ci::{command, succeed, target_dir},
};

/// The compilers, as pip calls them.
const TOOLS: [&str; 2] = ["ziglang==0.17.0", "cargo-zigbuild==0.24.0"];
const PROFILE: &str = "packed";

/// The program for this processor, compiled as releases are.
pub(super) fn run(
    root: &Path,
    architecture: Architecture,
    brokers: Brokers,
) -> Result<Program, TaskFailure> {
    let target = architecture.target();
    succeed(Command::new("rustup").args(["target", "add", &target]))
        .map_err(|error| missing(&target, "Rust's standard library for it, from rustup", &error))?;
    let tools = find_or_install()
        .map_err(|error| missing(&target, "a C compiler for it, from pip", &error))?;
    let mut cargo = command(root);
    cargo.args(["zigbuild", "--locked", "--package", "hapax-cli"]).args(brokers.flags());
    cargo.args(["--profile", PROFILE, "--target", &target]);
    cargo.env("CARGO_TARGET_DIR", target_dir()?);
    let path = env::var_os("PATH").unwrap_or_default();
    let places = [tools.join("bin")].into_iter().chain(env::split_paths(&path));
    let path = env::join_paths(places)
        .map_err(|error| TaskFailure::new(format!("the PATH cannot be used: {error}")))?;
    let zig = tools.join("ziglang/zig");
    compile_c_with(&zig, architecture, &mut cargo);
    succeed(cargo.env("PATH", path).env("CARGO_ZIGBUILD_ZIG_PATH", zig))?;
    Program::read(&target_dir()?.join(target).join(PROFILE).join("hapax"))
}

fn missing(target: &str, what: &str, error: &TaskFailure) -> TaskFailure {
    TaskFailure::new(format!(
        "nothing is built for {target}, because this is missing: {what} ({error})"
    ))
}

/// A program that runs here, compiled in haste: to be asked for its pages where those that are packed
/// are for another processor.
pub(super) fn for_this_machine(root: &Path, brokers: Brokers) -> Result<Program, TaskFailure> {
    let mut cargo = command(root);
    cargo.args(["build", "--locked", "--package", "hapax-cli"]).args(brokers.flags());
    succeed(cargo.env("CARGO_TARGET_DIR", target_dir()?))?;
    Program::read(&target_dir()?.join("debug/hapax"))
}

/// For those who build C without asking cargo-zigbuild for a compiler, which is librdkafka.
fn compile_c_with(zig: &Path, architecture: Architecture, cargo: &mut Command) {
    for (variable, language) in [("CC", "cc"), ("CXX", "c++")] {
        let target = format!("{}-linux-musl", architecture.name());
        cargo.env(variable, format!("{} {language} -target {target}", zig.display()));
        cargo.env(format!("HOST_{variable}"), language);
    }
    // What nobody calls is left out. No panic passes through C: it needs no tables that say how.
    let unwinding = "-fno-asynchronous-unwind-tables -fno-unwind-tables";
    cargo.env("CFLAGS", format!("-ffunction-sections -fdata-sections {unwinding}"));
    // It also links a library that is thrown away, whose list of names has some that are not there.
    cargo.env("LDFLAGS", "-Wl,--undefined-version");
}

/// Where the compilers are: a folder of our own, filled when it is needed first.
fn find_or_install() -> Result<PathBuf, TaskFailure> {
    let folder = target_dir()?.join("tools/zig");
    if !folder.join("bin/cargo-zigbuild").exists() {
        println!("installing {}", TOOLS.join(", "));
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--upgrade", "--target"]).arg(&folder);
        succeed(pip.args(TOOLS))?;
    }
    Ok(folder)
}
