//! The Debian package, taken apart, and installed as dpkg installs it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    gateway::replays,
    world::{is_root, made, run, succeed},
};

#[test]
fn a_debian_package_has_a_service_and_a_file_that_the_program_accepts() {
    let place = tempfile::tempdir().unwrap();
    let (package, root) = (made(".deb"), place.path());
    succeed(Command::new("dpkg-deb").arg("-x").arg(&package).arg(root));
    let program = root.join("usr/bin/hapax");
    replays(&program);
    let config = root.join("etc/hapax/gateway.toml");
    let force = run(Command::new(&program).arg("check-config").arg(config));
    assert!(force.contains("/var/lib/hapax/hapax.db"), "{force}");
    for file in [
        "usr/share/man/man1/hapax-serve.1.gz",
        "usr/share/bash-completion/completions/hapax",
        "usr/share/zsh/vendor-completions/_hapax",
        "usr/share/fish/vendor_completions.d/hapax.fish",
        "usr/share/doc/hapax/copyright",
        "usr/share/hapax/hapax.sql",
    ] {
        assert!(fs::metadata(root.join(file)).unwrap().len() > 0, "{file}");
    }
    let unit = fs::read_to_string(root.join("usr/lib/systemd/system/hapax.service")).unwrap();
    for line in [
        "DynamicUser=yes",
        "StateDirectory=hapax",
        "EnvironmentFile=-/etc/default/hapax",
        "Type=notify",
    ] {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
    let socket = fs::read_to_string(root.join("usr/lib/systemd/system/hapax.socket")).unwrap();
    assert!(socket.lines().any(|line| line == "FileDescriptorName=clients"), "{socket}");
    let control = run(Command::new("dpkg-deb").arg("--info").arg(&package));
    for words in ["Architecture: amd64", "Version: 0.1.0", "postinst", "postrm", "prerm"] {
        assert!(control.contains(words), "{control}");
    }
    let conffiles = run(Command::new("dpkg-deb").arg("--info").arg(&package).arg("conffiles"));
    assert_eq!(conffiles, "/etc/default/hapax\n/etc/hapax/gateway.toml\n");
}

#[test]
fn a_debian_package_is_installed_upgraded_removed_and_purged() {
    if !is_root("an installation by dpkg") {
        return;
    }
    let machine = Machine::empty();
    machine.dpkg(&["--install"], &made(".deb"));
    assert_eq!(machine.state(), "install ok installed 0.1.0");
    assert_eq!(machine.asked_of_systemd(), "daemon-reload\n");
    replays(&machine.at("usr/bin/hapax"));

    // What an administrator wrote, and what a gateway did.
    let config = machine.at("etc/hapax/gateway.toml");
    let written = fs::read_to_string(&config).unwrap().replace("127.0.0.1:3000", "10.0.0.7:80");
    fs::write(&config, &written).unwrap();
    let records = machine.at("var/lib/hapax/hapax.db");
    fs::create_dir_all(records.parent().unwrap()).unwrap();
    fs::write(&records, "records").unwrap();

    machine.dpkg(&["--force-confdef", "--force-confold", "--install"], &machine.next_version());
    assert_eq!(machine.state(), "install ok installed 0.1.1");
    assert_eq!(
        machine.asked_of_systemd(),
        "daemon-reload\ndaemon-reload\ntry-restart hapax.service\n"
    );
    assert_eq!(fs::read_to_string(&config).unwrap(), written);

    machine.dpkg(&["--remove"], Path::new("hapax"));
    assert_eq!(machine.state(), "deinstall ok config-files 0.1.1");
    let asked = machine.asked_of_systemd();
    assert_eq!(asked, "disable --now hapax.socket hapax.service\ndaemon-reload\n");
    assert!(!machine.at("usr/bin/hapax").exists() && config.exists());

    machine.dpkg(&["--purge"], Path::new("hapax"));
    assert!(!config.exists() && !machine.at("etc/default/hapax").exists());
    assert_eq!(fs::read_to_string(&records).unwrap(), "records");
}

/// A root directory with a shell for scripts of packages, and a systemd that writes down what it is asked for.
struct Machine(tempfile::TempDir);

impl Machine {
    fn empty() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for folder in ["bin", "run/systemd/system", "var/lib/dpkg/info", "var/lib/dpkg/updates"] {
            fs::create_dir_all(machine.at(folder)).unwrap();
        }
        fs::write(machine.at("var/lib/dpkg/status"), "").unwrap();
        machine.take("/bin/sh", "bin/sh");
        let systemctl = "#!/bin/sh\necho \"$*\" >> /asked\n";
        fs::write(machine.at("bin/systemctl"), systemctl).unwrap();
        succeed(Command::new("chmod").arg("755").arg(machine.at("bin/systemctl")));
        machine
    }

    /// Copies a program of ours, and what loads it.
    fn take(&self, program: &str, to: &str) {
        fs::copy(program, self.at(to)).unwrap();
        let needed = run(Command::new("ldd").arg(program));
        for library in needed.split_whitespace().filter(|word| word.starts_with('/')) {
            let to = self.at(library.trim_start_matches('/'));
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(library, to).unwrap();
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn dpkg(&self, args: &[&str], of: &Path) {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", self.0.path().display())).env("PATH", PATH);
        // There is no C library here, which the program of other tests asks for; nor what configures one.
        dpkg.args(["--force-depends", "--force-bad-path"]);
        succeed(dpkg.args(args).arg(of));
    }

    fn state(&self) -> String {
        let mut query = Command::new("dpkg-query");
        query.arg(format!("--root={}", self.0.path().display()));
        run(query.args(["--show", "--showformat", "${Status} ${Version}", "hapax"]))
    }

    /// What systemd was asked for since the last time.
    fn asked_of_systemd(&self) -> String {
        let asked = fs::read_to_string(self.at("asked")).unwrap();
        fs::remove_file(self.at("asked")).unwrap();
        asked
    }

    /// The next version, whose file for administrators is another one.
    fn next_version(&self) -> PathBuf {
        let (files, package) = (self.at("next"), self.at("next.deb"));
        succeed(Command::new("dpkg-deb").arg("-R").arg(made(".deb")).arg(&files));
        let control = files.join("DEBIAN/control");
        let said = fs::read_to_string(&control).unwrap();
        fs::write(&control, said.replace("Version: 0.1.0", "Version: 0.1.1")).unwrap();
        fs::write(files.join("etc/hapax/gateway.toml"), "listen = \"127.0.0.1:80\"\n").unwrap();
        // Whatever it is: nobody runs it.
        fs::write(files.join("usr/bin/hapax"), "").unwrap();
        let mut build = Command::new("dpkg-deb");
        succeed(build.args(["-Znone", "--build"]).arg(&files).arg(&package));
        package
    }
}

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

#[test]
fn systemd_has_nothing_to_say_against_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        println!("NOT CHECKED: the units: there is no systemd-analyze");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let units = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/systemd"));
    let service = fs::read_to_string(units.join("hapax.service")).unwrap();
    // It looks for the program, which is installed nowhere.
    let (service, at) =
        (service.replace("/usr/bin/hapax", "/bin/true"), place.path().join("hapax.service"));
    fs::write(&at, service).unwrap();
    let socket = place.path().join("hapax.socket");
    fs::copy(units.join("hapax.socket"), &socket).unwrap();
    let mut verify = Command::new("systemd-analyze");
    let said = verify.args(["verify", "--man=no"]).args([&at, &socket]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stderr), "");
    assert!(said.status.success());

    let mut security = Command::new("systemd-analyze");
    let said = run(security.args(["security", "--offline=true", "--no-pager"]).arg(&at));
    let exposure = said.rsplit("hapax.service: ").next().and_then(|rest| rest.split(' ').next());
    let exposure: f64 = exposure.unwrap().parse().unwrap();
    assert!(exposure <= 2.0, "{said}");
}
