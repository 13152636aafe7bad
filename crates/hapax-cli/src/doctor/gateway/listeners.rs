//! Who can reach the gateway, and its operators' side.

use std::net::SocketAddr;

use hapax_gateway::Config;

use super::Diagnosis;

/// A token that nobody guesses: 128 random bits in hexadecimal digits.
const TOKEN_CHARACTERS: usize = 32;

struct ListenerFacts {
    listen: SocketAddr,
    has_tls: bool,
    admin: Option<SocketAddr>,
    /// How long the token is, if there is one.
    token_characters: Option<usize>,
    /// Whether a provider signs people in.
    has_provider: bool,
}

const CHECKS: &[fn(&ListenerFacts) -> Diagnosis] = &[clients, admin, token];

pub(super) fn examine(config: &Config) -> Vec<Diagnosis> {
    let facts = ListenerFacts {
        listen: config.listen,
        has_tls: config.tls.is_some(),
        admin: config.admin,
        token_characters: config.admin_token.as_ref().map(|token| token.chars().count()),
        has_provider: config.admin_oidc.is_some(),
    };
    CHECKS.iter().map(|check| check(&facts)).collect()
}

fn clients(facts: &ListenerFacts) -> Diagnosis {
    let scheme = if facts.has_tls { "https" } else { "http" };
    let found = Diagnosis::new("listen", format!("{scheme}://{}", facts.listen));
    if facts.has_tls || facts.listen.ip().is_loopback() {
        return found;
    }
    found.note(
        "keys and credentials can be read on the way, unless something before the gateway encrypts",
        "write [tls] with certificate and key, or listen on 127.0.0.1 behind a proxy that has them",
    )
}

fn admin(facts: &ListenerFacts) -> Diagnosis {
    const NAME: &str = "admin";
    match facts.admin {
        None => Diagnosis::new(NAME, "off").note(
            "there are no metrics and no health checks, so that nobody hears of keys in doubt",
            "write admin = \"127.0.0.1:8081\"",
        ),
        Some(admin) if admin.ip().is_loopback() => Diagnosis::new(NAME, format!("http://{admin}")),
        Some(admin) => Diagnosis::new(NAME, format!("http://{admin}, away from loopback")).warning(
            "the token, stored answers and changes to keys go over the network as they are",
            "write admin = \"127.0.0.1:8081\", or let a network policy allow nobody but a proxy that encrypts",
        ),
    }
}

fn token(facts: &ListenerFacts) -> Diagnosis {
    const NAME: &str = "admin token";
    match facts.token_characters {
        None if facts.has_provider => {
            Diagnosis::new(NAME, "none: people sign in by their provider, programs cannot")
        }
        None => Diagnosis::new(NAME, "none: health and metrics alone are served"),
        Some(count) if count >= TOKEN_CHARACTERS => Diagnosis::new(NAME, "there is one"),
        Some(count) => Diagnosis::new(NAME, format!("{count} characters long")).warning(
            "whoever guesses it can read stored answers and release keys",
            "openssl rand -hex 32 > admin.token",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Severity;

    #[test]
    fn what_is_reachable_from_outside_without_encryption_is_told() {
        let near = ListenerFacts {
            listen: "127.0.0.1:8080".parse().unwrap(),
            has_tls: false,
            admin: Some("[::1]:8081".parse().unwrap()),
            token_characters: Some(64),
            has_provider: false,
        };
        assert!(CHECKS.iter().all(|check| check(&near).concern.is_none()));
        let anywhere = "0.0.0.0:8081".parse().unwrap();
        let far = ListenerFacts { listen: anywhere, admin: Some(anywhere), ..near };
        assert_eq!(clients(&far).severity(), Some(Severity::Note));
        assert_eq!(admin(&far).severity(), Some(Severity::Warning));
        let short = ListenerFacts { token_characters: Some(6), has_tls: true, ..far };
        assert_eq!(token(&short).severity(), Some(Severity::Warning));
        assert_eq!(clients(&short).severity(), None);
    }
}
