//! The static program as it is handed out, which runs where nothing else is.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use super::world::{is_released, is_root, made, packages, read_json, run, succeed, untar};

#[test]
fn pipx_runs_the_demo_to_its_end() {
    if !is_released("`pipx run`") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let pipx = place.path().join("pipx");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--target"]).arg(&pipx);
    succeed(pip.args(["pipx", "--disable-pip-version-check", "--root-user-action", "ignore"]));
    let mut demo = Command::new("python3");
    demo.args(["-m", "pipx", "run", "--spec"]).arg(made("x86_64.whl")).args(["hapax", "demo"]);
    demo.env("PYTHONPATH", &pipx).env("PIPX_HOME", place.path().join("home"));
    ends_well("pipx run", demo.current_dir(place.path()));
}

#[test]
fn npx_runs_the_demo_to_its_end() {
    if !is_released("`npx`") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let mut demo = Command::new("npx");
    demo.args(["--yes", "--offline", "--cache"]).arg(place.path().join("cache"));
    demo.arg(format!("file:{}", made("-linux-x64-0.1.0.tgz").display())).arg("demo");
    ends_well("npx", demo.current_dir(place.path()));
}

#[test]
fn the_program_of_the_archive_says_what_is_inside_and_runs_the_demo() {
    if !is_released("the archive's demo") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let watch = start();
    untar(&made("-linux.tar.gz"), place.path());
    let program = place.path().join("hapax-0.1.0-x86_64-linux/hapax");
    tell("unpacked", watch);
    let said = run(Command::new(&program).arg("--version"));
    assert!(said.contains("kafka") && !said.contains("without: "), "{said}");
    assert!(run(Command::new(&program).arg("--help")).contains("kafka"));
    ends_well("the archive's program", Command::new(&program).arg("demo"));
}

#[test]
fn the_image_runs_as_its_user_with_nothing_but_itself() {
    if !is_released("the image's root directory") || !is_root("the image's root directory") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let root = image_root(place.path());
    let libraries = ["lib", "lib64", "usr/lib", "bin"].map(|folder| root.join(folder).exists());
    assert_eq!(libraries, [false; 4]);
    let inside = |args: &[&str]| {
        let mut program = Command::new("chroot");
        program.args(["--userspec=65532:65532"]).arg(&root).arg("/usr/bin/hapax");
        run(program.args(args).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"))
    };
    assert!(inside(&["--version"]).contains("kafka"));
    // It can write where it is meant to: a store is made there.
    inside(&["migrate", "--store", "sqlite:/var/lib/hapax/hapax.db"]);
    assert!(root.join("var/lib/hapax/hapax.db").exists());
}

fn image_root(place: &Path) -> PathBuf {
    let (layout, root) = (place.join("layout"), place.join("root"));
    untar(&made(".oci.tar"), &layout);
    let blob =
        |digest: &str| layout.join("blobs/sha256").join(digest.trim_start_matches("sha256:"));
    let index = read_json(&layout.join("index.json"));
    let manifest = read_json(&blob(index["manifests"][0]["digest"].as_str().unwrap()));
    untar(&blob(manifest["layers"][0]["digest"].as_str().unwrap()), &root);
    root
}

#[test]
fn pip_takes_the_wheel_on_old_systems_and_on_musl() {
    if !is_released("other systems' pip") {
        return;
    }
    for platform in ["manylinux2014_x86_64", "manylinux_2_17_x86_64", "musllinux_1_1_x86_64"] {
        let place = tempfile::tempdir().unwrap();
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--no-index", "--no-deps", "--find-links"]);
        pip.arg(packages()).args(["--only-binary=:all:", "--platform", platform, "hapax-cli"]);
        succeed(pip.arg("--dest").arg(place.path()).env_remove("PIP_FIND_LINKS"));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "{platform}");
    }
}

#[test]
fn the_container_file_is_built_where_there_is_an_engine() {
    let answers = |engine: &&str| {
        Command::new(engine).arg("info").output().is_ok_and(|answer| answer.status.success())
    };
    if !is_released("the container file") {
        return;
    }
    let Some(engine) = ["podman", "docker"].into_iter().find(answers) else {
        println!("NOT CHECKED: the container file: no engine answers");
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut build = Command::new(engine);
    build.args(["build", "-f", "packaging/Containerfile", "-t", "hapax-check", "."]);
    succeed(build.current_dir(root));
    let said = run(Command::new(engine).args(["run", "--rm", "hapax-check", "--version"]));
    assert!(said.contains("kafka"), "{said}");
}

/// Runs the demo, which fails unless every payment was charged exactly once.
fn ends_well(what: &str, demo: &mut Command) {
    let watch = start();
    let said = run(demo.env_remove("HAPAX_STORE"));
    assert!(said.contains("With Hapax, 60 of 60 payments were charged exactly once"), "{said}");
    tell(&format!("{what}: the demo's end"), watch);
}

#[expect(clippy::disallowed_methods, reason = "how long people wait is by their clock")]
fn start() -> Instant {
    Instant::now()
}

#[expect(clippy::print_stdout, reason = "who asks for the check reads how long it took")]
fn tell(what: &str, watch: Instant) {
    println!("{what} after {:.1} s", watch.elapsed().as_secs_f64());
}
