//! The packages for other languages, each used where nothing else is.

use std::{fs, path::Path, process::Command};

use super::world::{made, run, succeed};

#[test]
fn python_imports_what_the_wheel_and_the_source_archive_install() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for package in ["once-0.1.0-py3-none-any.whl", "once-0.1.0.tar.gz"] {
        let place = tempfile::tempdir().unwrap();
        // What builds a source archive is there already.
        let mut pip = Command::new(repository.join("sdk/python/.venv/bin/pip"));
        pip.args(["install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]);
        pip.args(["--disable-pip-version-check", "--target"]).arg(place.path());
        succeed(pip.arg(made(package)));
        let mut python = Command::new("python3");
        python.args(["-c", "import hapax_once; print(hapax_once.__file__, hapax_once.Refused)"]);
        let said = run(python.env("PYTHONPATH", place.path()).current_dir(place.path()));
        assert!(said.starts_with(&*place.path().to_string_lossy()), "{said}");
        let licences = place.path().join("hapax_once-0.1.0.dist-info/licenses");
        assert_eq!(fs::read_dir(licences).unwrap().count(), 2, "{package}");
    }
}

#[test]
fn node_imports_and_requires_what_npm_installs() {
    let place = tempfile::tempdir().unwrap();
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--offline", "--no-audit", "--no-fund"]);
    succeed(npm.arg(made("hapax-once-0.1.0.tgz")).current_dir(place.path()));
    for (kind, code) in [
        ("commonjs", "console.log(require('hapax-once').Refused.name)"),
        ("module", "import { Refused } from 'hapax-once'; console.log(Refused.name)"),
    ] {
        let mut node = Command::new("node");
        node.args(["--input-type", kind, "--eval", code]).current_dir(place.path());
        assert_eq!(run(&mut node), "Refused\n", "{kind}");
    }
    let package = place.path().join("node_modules/hapax-once");
    assert!(package.join("LICENSE-MIT").exists() && package.join("LICENSE-APACHE").exists());
}

#[test]
fn java_runs_with_the_jar_alone_and_its_sources_and_documentation_are_there() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("Shop.java");
    let code = "import dev.hapax.once.Refused; class Shop { public static void main(String[] args) { \
                System.out.println(Refused.class.getName()); } }";
    fs::write(&file, code).unwrap();
    let jar = made("hapax-once-0.1.0.jar");
    let mut java = Command::new("java");
    java.args(["-XX:TieredStopAtLevel=1", "--class-path"]).arg(&jar).arg(&file);
    assert_eq!(run(&mut java), "dev.hapax.once.Refused\n");
    for (jar, file) in [
        (".jar", "META-INF/LICENSE-MIT"),
        (".jar", "META-INF/LICENSE-APACHE"),
        ("-sources.jar", "dev/hapax/once/Hapax.java"),
        ("-sources.jar", "LICENSE-MIT"),
        ("-javadoc.jar", "dev/hapax/once/Hapax.html"),
    ] {
        let mut list = Command::new("unzip");
        let files = run(list.arg("-Z1").arg(made(&format!("hapax-once-0.1.0{jar}"))));
        assert!(files.lines().any(|one| one == file), "{jar}: {files}");
    }
    let pom = fs::read_to_string(made("hapax-once-0.1.0.pom")).unwrap();
    for part in ["<url>", "<licenses>", "<developers>", "<scm>", "<version>0.1.0</version>"] {
        assert!(pom.contains(part), "{part}");
    }
}

#[test]
fn go_gets_the_module_from_a_proxy_that_has_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let versions = place.path().join("proxy/hapax.dev/once/@v");
    fs::create_dir_all(&versions).unwrap();
    fs::copy(made("hapax-once-go-0.1.0.zip"), versions.join("v0.1.0.zip")).unwrap();
    fs::write(versions.join("list"), "v0.1.0\n").unwrap();
    fs::write(versions.join("v0.1.0.info"), r#"{"Version":"v0.1.0"}"#).unwrap();
    let mut unzip = Command::new("unzip");
    unzip.arg("-p").arg(versions.join("v0.1.0.zip")).arg("hapax.dev/once@v0.1.0/go.mod");
    let manifest = run(&mut unzip);
    fs::write(versions.join("v0.1.0.mod"), manifest).unwrap();

    let shop = place.path().join("shop");
    fs::create_dir(&shop).unwrap();
    fs::write(shop.join("go.mod"), "module shop\n\ngo 1.24\n\nrequire hapax.dev/once v0.1.0\n")
        .unwrap();
    let code = "package main\n\nimport \"hapax.dev/once\"\n\nfunc main() { println(once.Event{}.Topic == \"\") }\n";
    fs::write(shop.join("main.go"), code).unwrap();
    let mut go = Command::new("go");
    go.args(["run", "-mod=mod", "."]).current_dir(&shop);
    go.env("GOPROXY", format!("file://{}", place.path().join("proxy").display()));
    go.env("GOMODCACHE", place.path().join("modules")).env("GOSUMDB", "off");
    // Else nobody could remove what it fetched.
    succeed(go.env("GOFLAGS", "-modcacherw"));
    let module = place.path().join("modules/hapax.dev/once@v0.1.0");
    assert!(module.join("LICENSE-MIT").exists() && module.join("LICENSE-APACHE").exists());
}
