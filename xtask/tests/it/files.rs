use xtask::tidy::files;

use crate::check;

#[test]
fn leftovers_of_tools_and_files_over_a_mebibyte_are_found() {
    let large = "a".repeat((1 << 20) + 1);
    let expected = ["a.rs.orig:1: a tool left", "large.txt:1: 1048577 bytes"];
    check(files::check, &[("a.rs.orig", ""), ("large.txt", &large)], &expected);
    check(files::check, &[("exact.txt", &large[1..])], &[]);
}

#[test]
fn a_backend_without_one_of_the_common_files_is_found() {
    let names = ["commit", "error", "migrate", "retire", "row", "store"];
    let paths: Vec<_> = ["postgres", "sqlite"]
        .iter()
        .flat_map(|backend| names.map(|name| format!("crates/hapax-{backend}/src/{name}.rs")))
        .collect();
    let all: Vec<_> = paths.iter().map(|path| (path.as_str(), "")).collect();
    check(files::check_backends, &all, &[]);
    let expected = ["crates/hapax-postgres/src/lib.rs:1: there is no src/commit.rs"];
    check(files::check_backends, &all[1..], &expected);
}

#[test]
fn a_workspace_without_its_lock_file_is_found() {
    let manifests = [("Cargo.toml", "[workspace]\n"), ("a/Cargo.toml", "[package]\n")];
    check(files::check_locks, &manifests, &["Cargo.toml:1: there is no Cargo.lock"]);
    let locked = [manifests[0], ("Cargo.lock", ""), ("b/Cargo.toml", "[workspace]\n")];
    check(files::check_locks, &locked, &["b/Cargo.toml:1: there is no Cargo.lock"]);
}

#[test]
fn a_test_that_its_manifest_turns_off_is_found() {
    let manifest = |text| [("a/Cargo.toml", text), ("a/src/lib.rs", "mod b;\n")];
    let test = ("a/src/b.rs", "use x;\n    #[test]\nfn t() {}\n");
    let off = "[lib]\ntest = false\n[dependencies]\n";
    let expected = ["a/src/b.rs:2: it does not run: [lib]"];
    check(files::check_untested, &[&manifest(off)[..], &[test]].concat(), &expected);
    let on = "[lib]\n[[bin]]\ntest = false\n";
    check(files::check_untested, &[&manifest(on)[..], &[test]].concat(), &[]);
    let program = [("a/Cargo.toml", on), test];
    check(files::check_untested, &program, &["a/src/b.rs:2: it does not run: [[bin]]"]);
    let example = ("a/src/b.rs", "/// ```\n/// f();\n/// ```\nfn f() {}\n");
    let off = "[lib]\ndoctest = false\n";
    let expected = ["a/src/b.rs:1: it does not run: [lib]"];
    check(files::check_untested, &[&manifest(off)[..], &[example]].concat(), &expected);
}
