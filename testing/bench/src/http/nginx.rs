//! nginx, the yardstick: a reverse proxy that everybody knows.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use hapax_services::{ServiceError, process};

use super::child::{self, Child};
use crate::BenchError;

const REMEDY: &str = "install it (Debian: `apt-get install -y nginx-light`) or put it on the PATH";
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// The program, and what it says it is.
#[derive(Debug)]
pub(super) struct Nginx {
    program: PathBuf,
    pub(super) version: String,
}

impl Nginx {
    pub(super) fn find() -> Result<Self, ServiceError> {
        let path = env::var_os("PATH").unwrap_or_default();
        // Debian keeps it where only root looks.
        let places = env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
        let program = places.map(|place| place.join("nginx")).find(|program| program.is_file());
        let program = program.ok_or(ServiceError::Missing { server: "nginx", remedy: REMEDY })?;
        let said = process::run(Command::new(&program).arg("-v"), VERSION_LIMIT)?;
        let version = said.rsplit('/').next().unwrap_or_default().trim().to_owned();
        Ok(Self { program, version })
    }

    /// Starts it in front of the upstream, with connections to both sides kept open.
    pub(super) fn start(&self, directory: &Path, upstream: u16) -> Result<Child, BenchError> {
        let port = child::free_port()?;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let file = directory.join("nginx.conf");
        let written = fs::write(&file, configuration(directory, port, upstream, cores));
        written.map_err(BenchError::Directory)?;
        let mut command = Command::new(&self.program);
        command.arg("-p").arg(directory).arg("-c").arg(&file).args(["-e", "stderr"]);
        Ok(Child::start("nginx", &mut command, directory, port)?)
    }
}

fn configuration(directory: &Path, port: u16, upstream: u16, cores: usize) -> String {
    let directory = directory.display();
    format!(
        "daemon off;
worker_processes {cores};
pid {directory}/nginx.pid;
error_log stderr;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {directory}/nginx-body;
    proxy_temp_path {directory}/nginx-proxy;
    fastcgi_temp_path {directory}/nginx-fastcgi;
    uwsgi_temp_path {directory}/nginx-uwsgi;
    scgi_temp_path {directory}/nginx-scgi;
    keepalive_requests 1000000000;
    upstream api {{
        server 127.0.0.1:{upstream};
        keepalive 512;
        keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://api;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_next_upstream off;
        }}
    }}
}}
"
    )
}
