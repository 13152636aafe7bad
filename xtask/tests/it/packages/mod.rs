//! Every package is put where nothing else is, and runs from there.
//!
//! They are made of the program that the other tests are built with: how it is packed does not depend on
//! how it was compiled. `cargo xtask dist --check` has the same tests look at what it made.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what a test did not expect ends it")]

mod debian;
mod gateway;
mod missing;
mod released;
mod sdks;
mod world;

use std::{collections::BTreeSet, fs, process::Command};

use serde_json::{Value, json};

use self::{
    gateway::replays,
    world::{made, packages, read_json, run, succeed},
};

#[test]
fn a_wheel_is_installed_into_an_empty_environment_and_runs() {
    let place = tempfile::tempdir().unwrap();
    let venv = place.path().join("venv");
    // Without a pip of its own, which takes longer to install than everything else.
    succeed(Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&venv));
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "--python"]).arg(&venv);
    pip.args(["install", "--quiet", "--no-index", "--disable-pip-version-check"]);
    succeed(pip.arg(made("x86_64.whl")));
    replays(&venv.join("bin/hapax"));
    let mut show = Command::new("python3");
    show.args(["-m", "pip", "--python"]).arg(&venv).args(["show", "--files", "hapax-cli"]);
    let said = run(&mut show);
    assert!(said.contains("bin/hapax") && said.contains("licenses/LICENSE-MIT"), "{said}");
}

#[test]
fn the_file_for_a_platform_runs_by_npx_alone() {
    let place = tempfile::tempdir().unwrap();
    let mut npx = Command::new("npx");
    // What npx keeps it knows by its address alone, whatever is there now.
    npx.args(["--yes", "--offline", "--cache"]).arg(place.path().join("cache"));
    npx.arg(format!("file:{}", made("-linux-x64-0.1.0.tgz").display())).arg("--version");
    assert!(run(npx.current_dir(place.path())).starts_with("hapax 0.1.0\nwith: "));
}

#[test]
fn the_package_that_people_name_finds_the_one_for_its_platform() {
    let place = tempfile::tempdir().unwrap();
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--offline", "--no-audit", "--no-fund", "--omit=optional"]);
    npm.arg(made("hapax-cli-0.1.0.tgz")).current_dir(place.path());
    succeed(&mut npm);
    let program = place.path().join("node_modules/.bin/hapax");
    let alone = Command::new(&program).arg("--version").output().unwrap();
    let said = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert_eq!(alone.status.code(), Some(1));
    let manifest = read_json(&place.path().join("node_modules/hapax-cli/package.json"));
    assert_eq!(manifest["optionalDependencies"], json!({ "hapax-cli-linux-x64": "0.1.0" }));
    assert!(said.contains("hapax-cli-linux-x64 is not installed"), "{said}");

    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--offline", "--no-audit", "--no-fund"]);
    npm.arg(made("-linux-x64-0.1.0.tgz")).current_dir(place.path());
    succeed(&mut npm);
    replays(&place.path().join("node_modules/hapax-cli/bin/hapax.js"));
}

#[test]
fn an_image_holds_what_its_manifest_says_and_runs_without_root() {
    let place = tempfile::tempdir().unwrap();
    let layout = place.path().join("layout");
    world::untar(&made(".oci.tar"), &layout);
    let index = read_json(&layout.join("index.json"));
    let blob = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let path = layout.join("blobs/sha256").join(digest);
        let sum = run(Command::new("sha256sum").arg(&path));
        assert!(sum.starts_with(digest), "{sum}");
        assert_eq!(fs::metadata(&path).unwrap().len(), descriptor["size"].as_u64().unwrap());
        path
    };
    let manifest = read_json(&blob(&index["manifests"][0]));
    let config = read_json(&blob(&manifest["config"]));
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/hapax");
    let root = place.path().join("root");
    world::untar(&blob(&manifest["layers"][0]), &root);
    let mut unzipped = Command::new("sh");
    unzipped.args(["-c", "gzip -dc \"$0\" | sha256sum"]).arg(blob(&manifest["layers"][0]));
    let diff = config["rootfs"]["diff_ids"][0].as_str().unwrap().to_owned();
    assert!(format!("sha256:{}", run(&mut unzipped)).starts_with(&diff));
    let certificates = fs::read_to_string(root.join("etc/ssl/certs/ca-certificates.crt")).unwrap();
    assert!(certificates.matches("BEGIN CERTIFICATE").count() > 50);
    assert!(fs::read_dir(root.join("var/lib/hapax")).unwrap().next().is_none());
    replays(&root.join("usr/bin/hapax"));
    let mut told = config["config"].clone();
    told.as_object_mut().unwrap().remove("Labels");
    assert_eq!(said_by_the_container_file(), told);
    let docker = read_json(&layout.join("manifest.json"));
    let layer = docker[0]["Layers"][0].as_str().unwrap();
    assert_eq!(layout.join(layer), blob(&manifest["layers"][0]));
}

/// What the file for container engines says, in the words of an image, but for its labels.
fn said_by_the_container_file() -> Value {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/Containerfile");
    let file = fs::read_to_string(file).unwrap();
    let said = |word: &str| {
        let line = file.lines().rev().find_map(|line| line.strip_prefix(word));
        line.unwrap_or_else(|| panic!("there is no {word}")).trim().to_owned()
    };
    let list = |word: &str| serde_json::from_str::<Value>(&said(word)).unwrap();
    json!({
        "User": said("USER"), "Env": [said("ENV")], "Entrypoint": list("ENTRYPOINT"), "Cmd": list("CMD"),
        "WorkingDir": said("WORKDIR"), "Volumes": { said("VOLUME"): {} },
        "ExposedPorts": { format!("{}/tcp", said("EXPOSE")): {} }, "StopSignal": said("STOPSIGNAL"),
    })
}

#[test]
fn an_archive_has_the_program_its_pages_and_licences() {
    let place = tempfile::tempdir().unwrap();
    world::untar(&made("-linux.tar.gz"), place.path());
    let folder = place.path().join("hapax-0.1.0-x86_64-linux");
    replays(&folder.join("hapax"));
    for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "man/man1/hapax.1", "hapax.sql"] {
        assert!(fs::metadata(folder.join(file)).unwrap().len() > 0, "{file}");
    }
    let others = fs::read_to_string(folder.join("THIRD-PARTY.txt")).unwrap();
    assert!(others.contains("\ntokio 1.") && others.contains("Permission is hereby granted"));
}

#[test]
fn the_bill_of_materials_names_what_is_compiled_in_and_nothing_else() {
    let bill = read_json(&made(".cdx.json"));
    let components = bill["components"].as_array().unwrap();
    let names: BTreeSet<_> =
        components.iter().filter_map(|component| component["name"].as_str()).collect();
    for name in ["hapax-core", "tokio", "libsqlite3-sys", "rdkafka-sys"] {
        assert!(names.contains(name), "{name}");
    }
    for purl in [
        "pkg:pypi/hapax-once@0.1.0",
        "pkg:npm/hapax-once@0.1.0",
        "pkg:maven/dev.hapax/hapax-once@0.1.0",
        "pkg:golang/hapax.dev/once@v0.1.0",
    ] {
        let found = components.iter().find(|one| one["purl"] == purl).unwrap();
        assert_eq!(found["hashes"][0]["content"].as_str().unwrap().len(), 64, "{found}");
    }
    for name in ["hapax-verify", "hapax-services", "serde_derive", "proptest"] {
        assert!(!names.contains(name), "{name}");
    }
    let foreign =
        components.iter().filter(|one| !one["name"].as_str().unwrap().starts_with("hapax"));
    assert!(foreign.into_iter().all(|one| one["hashes"][0]["alg"] == "SHA-256"));
    let references: BTreeSet<_> =
        components.iter().filter_map(|component| component["bom-ref"].as_str()).collect();
    assert_eq!(references.len(), components.len());
}

#[test]
fn checksums_are_there_for_all_and_right() {
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--quiet", "SHA256SUMS"]).current_dir(packages());
    succeed(&mut check);
    let listed = fs::read_to_string(packages().join("SHA256SUMS")).unwrap().lines().count();
    assert_eq!(listed, fs::read_dir(packages()).unwrap().count() - 1);
}
