//! Where operators connect, and what lets them in: the settings that begin with `admin`.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use toml::Spanned;

use super::{
    admin_oidc::{self, AdminOidc},
    files,
    load::{Sources, host, socket},
};

const ADMIN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8081));

/// Where operators connect, and what lets them in.
pub(super) struct AdminSettings {
    pub(super) address: Option<SocketAddr>,
    pub(super) token: Option<String>,
    pub(super) read_token: Option<String>,
    pub(super) hosts: Vec<String>,
    pub(super) oidc: Option<AdminOidc>,
}

impl AdminSettings {
    /// Whether there is a listener that answers nobody, because nothing says who may ask.
    pub(super) fn is_mute(&self) -> bool {
        let has_token = self.token.is_some() || self.read_token.is_some();
        self.address.is_some() && !has_token && self.oidc.is_none()
    }
}

impl Sources<'_> {
    /// What the file and flags say; `listen` is for clients alone.
    pub(super) fn admin(&self, listen: SocketAddr) -> AdminSettings {
        let address = |text: &str| match text {
            "off" => Ok(None),
            address => socket(address).map(Some),
        };
        let admin = self.either("--admin", &self.overrides.admin, "admin", &self.top, address);
        let token = self.either(
            "--admin-token",
            &self.overrides.admin_token,
            "admin_token",
            &self.top,
            admin_token,
        );
        // Files are read whether or not they count, so that what is wrong with them is told.
        let (in_file, read_in_file) =
            (self.token_in("admin_token_file"), self.token_in("admin_read_token_file"));
        let token = token.map(|(token, _)| token).or(in_file);
        let read_token = self.top.parsed("admin_read_token", admin_token).map(Spanned::into_inner);
        let read_token = read_token.or(read_in_file);
        if read_token.is_some() && read_token == token {
            let named = ["admin_read_token", "admin_read_token_file"];
            let name = named.into_iter().find(|name| self.top.has(name)).unwrap_or(named[0]);
            let what = format!("`{name}` is the same as the admin token, which may change keys");
            self.top.fault(self.top.place(name), format!("{what}; write another one instead"));
        }
        let (address, place) =
            admin.unwrap_or_else(|| (Some(ADMIN), self.top.place("admin").into()));
        let hosts = self.top.list("admin_hosts", host).map(Spanned::into_inner).unwrap_or_default();
        let oidc = admin_oidc::read(&self.top, self.dir, address, &hosts);
        let is_guarded = token.is_some() || read_token.is_some() || self.top.has("admin_oidc");
        let settings = AdminSettings { address, token, read_token, hosts, oidc };
        let Some(address) = address else { return settings };
        if !address.ip().is_loopback() && !is_guarded {
            let what = "anybody who reaches this address could change keys";
            let advice = "write `admin_token_file` too, or an address of 127.0.0.1, instead";
            self.top.fault(place.clone(), format!("{what}; {advice}"));
        }
        if address == listen && address.port() != 0 {
            let what = "`admin` and `listen` cannot share an address; write another port instead";
            self.top.fault(place, what);
        }
        settings
    }

    /// The token in the file that this setting names, if it does.
    fn token_in(&self, name: &str) -> Option<String> {
        let path = self.top.text(name)?;
        let text = files::named(&self.top, name, &path, self.dir)?;
        Some(text.trim_end_matches(['\r', '\n']).to_owned())
    }
}

fn admin_token(text: &str) -> Result<String, String> {
    let is_visible = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let refusal = "cannot be sent in a header; write visible ASCII characters instead";
    is_visible.then(|| text.to_owned()).ok_or_else(|| refusal.to_owned())
}
