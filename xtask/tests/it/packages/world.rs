//! The packages, made once for all tests.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use serde_json::Value;
use xtask::dist::{self, Dist};

/// The directory with everything that is handed out: what `cargo xtask dist --check` has just made, else our own.
pub(super) fn packages() -> &'static Path {
    static PACKAGES: LazyLock<PathBuf> = LazyLock::new(|| {
        if let Some(made) = env::var_os(dist::PACKAGES) {
            return made.into();
        }
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
        fs::create_dir_all(&place).unwrap();
        // What debuggers read is more than half of it, and would be packed five times.
        let program = place.join("hapax");
        succeed(Command::new("strip").arg("-o").arg(&program).arg(built()));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let out = place.join("out");
        // As it is left by a run that was killed.
        fs::create_dir_all(&out).unwrap();
        fs::write(out.join("SHA256SUMS"), "").unwrap();
        fs::write(out.join("half.tar.gz"), "").unwrap();
        let dist =
            Dist { out: Some(out.clone()), binary: vec![program], fast: true, ..Dist::default() };
        dist.run(root).unwrap();
        out
    });
    &PACKAGES
}

/// The package whose name ends so.
pub(super) fn made(end: &str) -> PathBuf {
    let listed = fs::read_dir(packages()).unwrap().flatten().map(|file| file.path());
    let mut found = listed.filter(|path| path.to_string_lossy().ends_with(end));
    found.next().unwrap_or_else(|| panic!("there is no package {end}"))
}

/// Whether it is the static program that is handed out; where it is not, it is told that this is not checked.
#[expect(clippy::print_stdout, reason = "what is not checked is told")]
pub(super) fn is_released(what: &str) -> bool {
    let is_released = env::var_os(dist::PACKAGES).is_some();
    if !is_released {
        println!("NOT CHECKED: {what}: `cargo xtask dist --check` does");
    }
    is_released
}

/// Whether we are root, without whom there is no other root directory; told where we are not.
#[expect(clippy::print_stdout, reason = "what is not checked is told")]
pub(super) fn is_root(what: &str) -> bool {
    let is_root = run(Command::new("id").arg("-u")).trim() == "0";
    if !is_root {
        println!("NOT CHECKED: {what}: it takes root");
    }
    is_root
}

/// The program of the other tests: cargo puts it into the folder above our own.
fn built() -> PathBuf {
    let own = env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("hapax");
    if !program.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--locked", "--workspace", "--all-features", "--bin", "hapax"]);
        succeed(&mut cargo);
    }
    program
}

pub(super) fn succeed(command: &mut Command) {
    run(command);
}

/// What a command prints that ends well.
pub(super) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

pub(super) fn untar(archive: &Path, into: &Path) {
    fs::create_dir_all(into).unwrap();
    succeed(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(into));
}

pub(super) fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}
