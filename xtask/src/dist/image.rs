//! A container image without a container engine: an OCI layout in a tar, which `podman load`, `docker
//! load` and `skopeo` read. The program, certificates, and a user that is not root; no shell.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    Package,
    archive::{Entry, gzip, hex, tar},
    payload::Payload,
    program::Program,
    release::{LICENCE, Release},
};
use crate::TaskFailure;

/// Nobody, as images without a distribution call it.
const USER: u64 = 65532;

/// `hapax-VERSION-PROCESSOR.oci.tar`.
pub(super) fn pack(
    program: &Program,
    payload: &Payload,
    release: &Release,
) -> Result<Package, TaskFailure> {
    let architecture = program.architecture.debian();
    let layer_tar = tar(&files(program, payload), release)?;
    let layer =
        Blob::new("application/vnd.oci.image.layer.v1.tar+gzip", gzip(&layer_tar, release)?);
    let diff = format!("sha256:{}", hex(&Sha256::digest(&layer_tar)));
    let config = Blob::json(
        "application/vnd.oci.image.config.v1+json",
        &config(architecture, &diff, release),
    );
    let manifest = Blob::json(
        MANIFEST,
        &json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": config.descriptor(), "layers": [layer.descriptor()],
        }),
    );
    let tag = format!("hapax:{}", release.version);
    let mut named = manifest.descriptor();
    named["platform"] = json!({ "architecture": architecture, "os": "linux" });
    named["annotations"] = json!({
        "io.containerd.image.name": tag, "org.opencontainers.image.ref.name": release.version,
    });
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [named],
    });
    // The same in words of older engines, about the same blobs.
    let docker = json!([{
        "Config": config.path(), "RepoTags": [tag], "Layers": [layer.path()],
    }]);
    let mut entries = vec![
        Entry::file("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#),
        Entry::file("index.json", index.to_string()),
        Entry::file("manifest.json", docker.to_string()),
    ];
    let blobs = [layer, config, manifest];
    entries.extend(blobs.into_iter().map(|blob| Entry::file(blob.path(), blob.content)));
    let name = format!("hapax-{}-{architecture}.oci.tar", release.version);
    Ok(Package::new(name, tar(&entries, release)?))
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// All there is in the image.
fn files(program: &Program, payload: &Payload) -> Vec<Entry> {
    let mut files = vec![
        Entry::file("etc/group", format!("hapax:x:{USER}:\n")),
        Entry::file("etc/passwd", format!("hapax:x:{USER}:{USER}::/var/lib/hapax:/sbin/nologin\n")),
        Entry::file("etc/ssl/certs/ca-certificates.crt", certificates()),
        Entry::directory("tmp", 0o1777, 0),
        Entry::program("usr/bin/hapax", program.content.clone()),
        Entry::file("usr/share/hapax/hapax.sql", payload.schema.clone()),
        Entry::directory("var/lib/hapax", 0o700, USER),
    ];
    files.extend(payload.licences.iter().map(|entry| entry.below("usr/share/doc/hapax")));
    files
}

/// Those that Mozilla trusts, from the crate that has them as data: the same on every machine.
fn certificates() -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    const LINE: usize = 64;
    let mut text = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let mut code = STANDARD.encode(certificate);
        while code.len() > LINE {
            let rest = code.split_off(LINE);
            text.push_str(&code);
            text.push('\n');
            code = rest;
        }
        text.push_str(&code);
        text.push_str("\n-----END CERTIFICATE-----\n");
    }
    text
}

fn config(architecture: &str, diff: &str, release: &Release) -> Value {
    json!({
        "architecture": architecture, "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            // Loopback in a container is reached by nobody else.
            "Env": ["HAPAX_LISTEN=0.0.0.0:8080"],
            "Entrypoint": ["/usr/bin/hapax"], "Cmd": ["--help"],
            "WorkingDir": "/var/lib/hapax", "Volumes": { "/var/lib/hapax": {} },
            "ExposedPorts": { "8080/tcp": {} }, "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "hapax",
                "org.opencontainers.image.description": release.description,
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": LICENCE,
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [diff] },
        "history": [{ "created_by": "cargo xtask dist" }],
    })
}

/// Content that is named by its sum.
struct Blob {
    kind: &'static str,
    sum: String,
    content: Vec<u8>,
}

impl Blob {
    fn new(kind: &'static str, content: Vec<u8>) -> Self {
        Self { kind, sum: hex(&Sha256::digest(&content)), content }
    }

    fn json(kind: &'static str, value: &Value) -> Self {
        Self::new(kind, value.to_string().into_bytes())
    }

    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.sum)
    }

    fn descriptor(&self) -> Value {
        let digest = format!("sha256:{}", self.sum);
        json!({ "mediaType": self.kind, "digest": digest, "size": self.content.len() })
    }
}
