//! A package for Debian and its kin: the program, its pages, and a service that is not started yet.

use ar::{Builder, Header};

use super::{
    Package,
    archive::{Entry, gzip, tar_gz},
    payload::Payload,
    program::{Linkage, Program},
    release::{AUTHORS, Release},
};
use crate::TaskFailure;

/// What belongs to the administrator once it is there.
const CONFFILES: [&str; 2] = ["etc/default/hapax", "etc/hapax/gateway.toml"];

/// `hapax_VERSION_PROCESSOR.deb`.
pub(super) fn pack(
    program: &Program,
    payload: &Payload,
    release: &Release,
) -> Result<Package, TaskFailure> {
    let files = files(program, payload, release)?;
    let control = control(program, payload, release, &files);
    let parts = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", tar_gz(&control, release)?),
        ("data.tar.gz", tar_gz(&files, release)?),
    ];
    let mut archive = Builder::new(Vec::new());
    for (name, content) in parts {
        let mut header = Header::new(name.as_bytes().to_vec(), content.len() as u64);
        header.set_mode(0o100_644);
        header.set_mtime(release.timestamp);
        let appended = archive.append(&header, content.as_slice());
        appended.map_err(|error| TaskFailure::new(format!("no Debian package: {error}")))?;
    }
    let packed = archive.into_inner();
    let packed = packed.map_err(|error| TaskFailure::new(format!("no Debian package: {error}")))?;
    let (version, processor) = (&release.version, program.architecture.debian());
    Ok(Package::new(format!("hapax_{version}_{processor}.deb"), packed))
}

/// What is installed, below `.` as is the custom there.
fn files(
    program: &Program,
    payload: &Payload,
    release: &Release,
) -> Result<Vec<Entry>, TaskFailure> {
    let mut files = vec![
        Entry { mode: 0o640, ..Entry::file("etc/default/hapax", payload.packaging("hapax.env")) },
        Entry::file("etc/hapax/gateway.toml", payload.packaging("gateway.toml")),
        Entry::program("usr/bin/hapax", program.content.clone()),
        Entry::file(
            "usr/lib/systemd/system/hapax.service",
            payload.packaging("systemd/hapax.service"),
        ),
        Entry::file(
            "usr/lib/systemd/system/hapax.socket",
            payload.packaging("systemd/hapax.socket"),
        ),
        Entry::file("usr/share/doc/hapax/README.md", payload.readme.clone()),
        Entry::file("usr/share/doc/hapax/hapax.cdx.json", payload.bill.clone()),
        Entry::file("usr/share/hapax/hapax.sql", payload.schema.clone()),
    ];
    let licences: Vec<_> = payload.licences.iter().map(Entry::content).collect();
    files.push(Entry::file("usr/share/doc/hapax/copyright", licences.join(&b"\n\n"[..])));
    for completion in &payload.completions {
        let place = match completion.path.as_str() {
            "hapax.bash" => "usr/share/bash-completion/completions/hapax",
            "_hapax" => "usr/share/zsh/vendor-completions/_hapax",
            _ => "usr/share/fish/vendor_completions.d/hapax.fish",
        };
        files.push(Entry::file(place, completion.content()));
    }
    for page in &payload.manual {
        files.push(Entry::file(
            format!("usr/share/man/man1/{}.gz", page.path),
            gzip(page.content(), release)?,
        ));
    }
    Ok(files.iter().map(|entry| entry.below(".")).collect())
}

fn control(program: &Program, payload: &Payload, release: &Release, files: &[Entry]) -> Vec<Entry> {
    let bytes: usize = files.iter().map(|entry| entry.content().len()).sum();
    let needs = match program.linkage {
        Linkage::Static => "",
        Linkage::Dynamic => "Depends: libc6\n",
    };
    let fields = format!(
        "Package: hapax\nVersion: {}\nArchitecture: {}\nMaintainer: {AUTHORS}\n\
         Installed-Size: {}\n{needs}Recommends: ca-certificates\nSuggests: postgresql\n\
         Section: net\nPriority: optional\nDescription: {}\n \
         A gateway in front of an API that lets each Idempotency-Key have one effect,\n \
         and a relay that sends committed events to brokers and webhooks.\n",
        release.version,
        program.architecture.debian(),
        bytes / 1024,
        release.description.trim_end_matches('.'),
    );
    let conffiles: String = CONFFILES.map(|path| format!("/{path}\n")).concat();
    vec![
        Entry::file("./control", fields),
        Entry::file("./conffiles", conffiles),
        Entry::program("./postinst", payload.packaging("debian/postinst")),
        Entry::program("./prerm", payload.packaging("debian/prerm")),
        Entry::program("./postrm", payload.packaging("debian/postrm")),
    ]
}
