//! People whom a real provider signs in to the dashboard, in a real browser.
#![expect(clippy::unwrap_used, reason = "what a test did not expect ends it")]

use std::{
    env,
    error::Error,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use hapax_core::{AttemptEnd, OneLine, Salt, memory};
use hapax_engine::{Admission, wall_clock};
use hapax_gateway::{Config, Gateway, config::Overrides};
use hapax_services::{
    chromium,
    openid::{CLIENT_ID, CLIENT_SECRET, OidcServer},
};
use tokio::time::{sleep, timeout};

use crate::admin::world::ask;

const TOKEN: &str = "operate-token";
const KEY: &str = "order-4711";
const LIMIT: Duration = Duration::from_secs(120);

/// What a browser is driven by; the dashboard's other test has the same packages and the same visitor.
const FILES: [(&str, &str); 4] = [
    ("package.json", include_str!("../../../../hapax-cli/tests/it/dashboard/package.json")),
    (
        "package-lock.json",
        include_str!("../../../../hapax-cli/tests/it/dashboard/package-lock.json"),
    ),
    ("visitor.mjs", include_str!("../../../../hapax-cli/tests/it/dashboard/visitor.mjs")),
    ("people.mjs", include_str!("people.mjs")),
];

/// Says that something is not checked; in CI that is a failure.
fn not_checked(why: &dyn Error) {
    let must_be = env::var_os("CI").is_some_and(|value| value == "true");
    let why = OneLine::of(why);
    assert!(!must_be, "signing in by a provider cannot be checked: {why}");
    // Nobody is left to be told when the terminal is gone.
    let _ = writeln!(io::stderr(), "NOT CHECKED: signing in by a provider: {why}");
}

/// A folder with the script and its packages.
fn script() -> io::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sign_in");
    fs::create_dir_all(&folder)?;
    for (name, content) in FILES {
        fs::write(folder.join(name), content)?;
    }
    let mark = folder.join("installed");
    if fs::read_to_string(&mark).ok().as_deref() == Some(FILES[1].1) {
        return Ok(folder);
    }
    let install = ["ci", "--no-audit", "--no-fund", "--ignore-scripts"];
    let output = Command::new("npm").args(install).current_dir(&folder).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr)));
    }
    fs::write(mark, FILES[1].1).map(|()| folder)
}

/// A gateway whose people this provider signs in, with a key in doubt.
async fn gateway_of(provider: &OidcServer, dir: &Path) -> Gateway {
    fs::write(dir.join("oidc.secret"), CLIENT_SECRET).unwrap();
    let text = format!(
        "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nadmin_token = \"{TOKEN}\"\n\
         [upstream]\nurl = \"http://127.0.0.1:9\"\n\
         [admin_oidc]\nissuer = \"{}\"\nclient_id = \"{CLIENT_ID}\"\n\
         client_secret_file = \"oidc.secret\"\nscopes = [\"openid\", \"email\", \"groups\"]\n\
         operate = \"payments-oncall\"\nread = \"payments\"\ncalled = \"Example\"\n",
        provider.issuer()
    );
    let config = Config::parse(&dir.join("gateway.toml"), &text, &Overrides::default()).unwrap();
    let store = memory::Store::new(Salt::from_bytes([9; 32]), || wall_clock().into());
    let gateway = Gateway::start(config, store).await.unwrap();
    let Admission::Execute(permit) = gateway.engine().begin(&ask(KEY)).await.unwrap() else {
        unreachable!("nobody else runs it")
    };
    permit.settle(AttemptEnd::Unanswered).await.unwrap();
    gateway
}

/// Where the script is, which browser it drives, and where.
struct Stage<'a> {
    folder: &'a Path,
    browser: &'a Path,
    dashboard: String,
    provider: String,
}

impl Stage<'_> {
    /// Plays one part of the script to its good end.
    async fn play(&self, part: &str) {
        let said = tempfile::NamedTempFile::new().unwrap();
        let file = said.reopen().unwrap();
        let mut command = Command::new("node");
        command.arg("people.mjs").current_dir(self.folder).env("CHROMIUM", self.browser);
        command.env("DASHBOARD", &self.dashboard).env("PROVIDER", &self.provider);
        command.env("TOKEN", TOKEN).env("KEY", KEY).env("STAGE", part);
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        let mut child = command.spawn().unwrap();
        let ended = timeout(LIMIT, async {
            loop {
                if let Some(status) = child.try_wait().unwrap() {
                    return status;
                }
                sleep(Duration::from_millis(50)).await;
            }
        });
        let ended = ended.await;
        if ended.is_err() {
            child.kill().unwrap();
        }
        let said = fs::read_to_string(said.path()).unwrap();
        assert!(ended.is_ok_and(|status| status.success()), "{part}: {said}");
    }
}

#[tokio::test]
async fn people_sign_in_by_a_real_provider_and_what_they_change_is_kept_with_their_names() {
    let folder = match script() {
        Ok(folder) => folder,
        Err(error) => return not_checked(&error),
    };
    let (browser, mut provider) =
        match chromium::program().and_then(|browser| Ok((browser, OidcServer::start()?))) {
            Ok(both) => both,
            Err(error) => return not_checked(&error),
        };
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway_of(&provider, dir.path()).await;
    let dashboard = format!("http://{}", gateway.admin_address().unwrap());
    let stage =
        Stage { folder: &folder, browser: &browser, dashboard, provider: provider.issuer() };
    stage.play("there").await;
    provider.stop().unwrap();
    stage.play("away").await;
    // It comes back with other keys.
    provider.resume().unwrap();
    stage.play("back").await;
    assert!(gateway.drain().await);
}
