//! Who signs people in to the dashboard, beside the tokens: `[admin_oidc]`.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

use http::{Uri, uri::Scheme};
use toml::Spanned;
use zeroize::Zeroizing;

use super::{
    files,
    names::ADMIN_OIDC,
    reader::{At, TableReader},
    upstream::address,
};

/// What is asked for, where nothing is said about it.
const SCOPES: [&str; 3] = ["openid", "email", "profile"];

/// An OpenID provider that says who somebody is, and what of that lets them in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminOidc {
    /// The provider, spelled as it spells itself.
    pub issuer: String,
    /// What it calls this gateway.
    pub client_id: String,
    /// What it knows this gateway by; a public client, which has none, is known by its address alone.
    pub client_secret: Option<ClientSecret>,
    /// Where browsers find the dashboard; an address of loopback, whichever they came by, if `None`.
    pub dashboard: Option<Uri>,
    /// What it is asked for.
    pub scopes: Vec<String>,
    /// The claim that holds somebody's groups.
    pub claim: String,
    /// Groups whose members may look and change.
    pub operate: Vec<String>,
    /// Groups whose members may look.
    pub read: Vec<String>,
    /// The claim that says who somebody is.
    pub person: String,
    /// What people know the provider as.
    pub called: String,
    /// Certificates to trust, as a PEM file, instead of those of the system.
    pub ca: Option<PathBuf>,
}

/// What a gateway shows its provider. It is never shown to anybody else.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientSecret(Zeroizing<String>);

impl ClientSecret {
    /// The secret itself.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for ClientSecret {
    fn from(secret: String) -> Self {
        Self(Zeroizing::new(secret))
    }
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientSecret(..)")
    }
}

impl AdminOidc {
    /// Who signs in and who may, in one line.
    pub(super) fn described(&self) -> String {
        let Self { issuer, claim, operate, read, .. } = self;
        let named = |groups: &[String], may: &str| {
            let groups = groups.join(" or ");
            (!groups.is_empty()).then(|| format!("{groups} may {may}"))
        };
        let roles = [named(operate, "change keys"), named(read, "look")];
        let roles = roles.into_iter().flatten().collect::<Vec<_>>().join(", ");
        format!("the dashboard signs in by {issuer}: by claim {claim}, {roles}")
    }
}

/// What `[admin_oidc]` says; nothing without it. The files it names are read, nobody is contacted.
///
/// `admin` is where the dashboard is, `hosts` are the names it has beside that.
pub(super) fn read(
    top: &TableReader<'_>,
    dir: &Path,
    admin: Option<SocketAddr>,
    hosts: &[String],
) -> Option<AdminOidc> {
    let is_table = top.value("admin_oidc")?.get_ref().is_table();
    let table = top.table("admin_oidc", ADMIN_OIDC);
    if !is_table {
        return None;
    }
    let issuer = required(&table, "issuer", table.parsed("issuer", issuer));
    let client_id = required(&table, "client_id", table.parsed("client_id", word));
    let client_secret = client_secret(&table, dir);
    let dashboard = table.parsed("dashboard", dashboard).map(Spanned::into_inner);
    refuse_unreachable(&table, top, admin, hosts);
    let (operate, read) = groups(&table);
    let (issuer, client_id) = (issuer?, client_id?);
    let host = issuer.parse::<Uri>().ok()?.host()?.to_owned();
    let text = |name| table.parsed(name, word).map(Spanned::into_inner);
    Some(AdminOidc {
        issuer,
        client_id,
        client_secret,
        dashboard,
        scopes: scopes(&table),
        claim: text("claim").unwrap_or_else(|| "groups".to_owned()),
        operate,
        read,
        person: text("person").unwrap_or_else(|| "email".to_owned()),
        called: text("called").unwrap_or(host),
        ca: table
            .text("ca")
            .map(|path| files::expected(&table, "ca", &path, dir, "BEGIN CERTIFICATE")),
    })
}

/// The secret in a file or a variable; a public client has none.
fn client_secret(table: &TableReader<'_>, dir: &Path) -> Option<ClientSecret> {
    const FILE: &str = "client_secret_file";
    const VARIABLE: &str = "client_secret_env";
    if table.has(FILE) && table.has(VARIABLE) {
        let what = format!("`{FILE}` says already what the secret is; write one of them");
        table.fault(table.place(VARIABLE), what);
    }
    let in_file = table.text(FILE).and_then(|path| {
        let secret = table.file(FILE, &path, dir)?;
        Some(Spanned::new(path.span(), secret))
    });
    let in_variable = || {
        let name = table.text(VARIABLE)?;
        Some(Spanned::new(name.span(), table.variable(VARIABLE, &name)?))
    };
    let secret = in_file.or_else(in_variable)?;
    let text = secret.get_ref().trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        let advice = "write the secret into it, or leave the setting out for a public client";
        table.fault(secret.span(), format!("the client secret is empty; {advice}"));
    }
    Some(text.to_owned().into())
}

/// The provider sends people back to an address that the gateway has to know.
fn refuse_unreachable(
    table: &TableReader<'_>,
    top: &TableReader<'_>,
    admin: Option<SocketAddr>,
    hosts: &[String],
) {
    let Some(admin) = admin else {
        let what = "there is no dashboard to sign in to, since `admin` is \"off\"";
        let advice = "leave `[admin_oidc]` out, or write an address as `admin`";
        return table.fault(top.place("admin_oidc"), format!("{what}; {advice}"));
    };
    let is_elsewhere = !admin.ip().is_loopback() || !hosts.is_empty();
    if is_elsewhere && !table.has("dashboard") {
        let what = "nobody says where the provider is to send people back to";
        let advice = "write `dashboard = \"https://hapax.example.com\"`, as browsers reach it";
        table.fault(top.place("admin_oidc"), format!("{what}; {advice}"));
    }
}

/// Whose members may do what.
fn groups(table: &TableReader<'_>) -> (Vec<String>, Vec<String>) {
    let named = |name| match table.has(name) {
        true => table.list(name, group).map(Spanned::into_inner),
        false => Some(Vec::new()),
    };
    let (operate, read) = (named("operate"), named("read"));
    let is_nobody = |groups: &Option<Vec<_>>| groups.as_ref().is_some_and(Vec::is_empty);
    if is_nobody(&operate) && is_nobody(&read) {
        let what = "nobody could sign in, since no group may do anything";
        let advice = "write `operate = [\"payments-oncall\"]`, or `read`, or both";
        table.fault(table.span(), format!("{what}; {advice}"));
    }
    let (operate, read) = (operate.unwrap_or_default(), read.unwrap_or_default());
    if let Some(both) = read.iter().find(|group| operate.contains(group)) {
        let what = format!("{both:?} may change keys by `operate`, and so look, too");
        table.fault(table.place("read"), format!("{what}; leave it out of `read`"));
    }
    (operate, read)
}

fn scopes(table: &TableReader<'_>) -> Vec<String> {
    let Some(scopes) = table.list("scopes", scope) else {
        return SCOPES.map(str::to_owned).to_vec();
    };
    if !scopes.get_ref().iter().any(|scope| scope == "openid") {
        let what = "`scopes` has no \"openid\", so the provider would not say who somebody is";
        table.fault(scopes.span(), format!("{what}; write it too"));
    }
    scopes.into_inner()
}

fn required<T>(table: &TableReader<'_>, name: &str, value: Option<At<T>>) -> Option<T> {
    if !table.has(name) {
        table.fault(table.span(), format!("`{name}` is missing; write it too"));
    }
    value.map(Spanned::into_inner)
}

/// Whether what goes there cannot be read or changed on its way.
pub(crate) fn is_private(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = || host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    url.scheme() == Some(&Scheme::HTTPS) || is_here()
}

fn issuer(text: &str) -> Result<String, String> {
    let url = address(text)?;
    if !is_private(&url) {
        let why = "anybody on the way could sign in as anybody";
        return Err(format!("cannot be {text:?}: {why}; write an https:// address instead"));
    }
    if url.query().is_some() {
        return Err(format!("cannot hold a query, as {text:?} does; leave out what follows `?`"));
    }
    Ok(text.to_owned())
}

fn dashboard(text: &str) -> Result<Uri, String> {
    let url = address(text)?;
    if !is_private(&url) {
        let why = "anybody on the way could take the session";
        return Err(format!("cannot be {text:?}: {why}; write an https:// address instead"));
    }
    if url.path() != "/" || url.query().is_some() {
        let why = "the dashboard is at the top of its host";
        return Err(format!("cannot be {text:?}: {why}; leave out what follows the host"));
    }
    Ok(url)
}

fn word(text: &str) -> Result<String, String> {
    let is_word = !text.trim().is_empty() && !text.chars().any(char::is_control);
    is_word.then(|| text.to_owned()).ok_or_else(|| "is empty; write a word instead".to_owned())
}

fn group(text: &str) -> Result<String, String> {
    let advice = "write a group as the provider calls it, or leave it out";
    if text.trim().is_empty() { Err(format!("is empty; {advice}")) } else { Ok(text.to_owned()) }
}

fn scope(text: &str) -> Result<String, String> {
    let is_scope = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    let is_one = !text.is_empty() && text.bytes().all(is_scope);
    let refusal = || format!("cannot be {text:?}; write one word for each scope instead");
    is_one.then(|| text.to_owned()).ok_or_else(refusal)
}
