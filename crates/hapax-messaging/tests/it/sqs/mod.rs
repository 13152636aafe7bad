//! Where credentials for SQS are looked for, and what is told when there are none.

mod amazon;
mod signature;

use std::{error::Error, fs, path::Path, time::Duration};

use axum::http::StatusCode;
use hapax_messaging::sink::Outage;
use tempfile::TempDir;

use self::amazon::{Amazon, Identity, secret_of, send};

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);
const ROLE: &str = "arn:aws:iam::123456789012:role/relay";

const FIRST: Identity = Identity { id: "ASIAFIRST00000001", lasts: HOUR };
const SECOND: Identity = Identity { id: "ASIASECOND0000002", lasts: HOUR };

/// No machine to ask for a role.
const NO_MACHINE: (&str, &str) = ("AWS_EC2_METADATA_DISABLED", "true");

/// A home with files of the AWS command line, and nothing else.
struct Home(TempDir);

impl Home {
    fn with(files: &[(&str, String)]) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir(home.0.path().join(".aws")).unwrap();
        for (name, content) in files {
            home.write(name, content);
        }
        home
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.0.path().join(".aws").join(name), content).unwrap();
    }

    fn path(&self) -> &str {
        text(self.0.path())
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn keys(section: &str, id: &str) -> String {
    let secret = secret_of(id);
    format!("[{section}]\naws_access_key_id = {id}\naws_secret_access_key = {secret}\n")
}

/// The whole story of an outage.
fn told(outage: &Outage) -> String {
    let mut story = outage.to_string();
    let mut cause = outage.source();
    while let Some(error) = cause {
        story = format!("{story}: {error}");
        cause = error.source();
    }
    story
}

#[tokio::test]
async fn keys_in_variables_come_before_everything_else() {
    let amazon = Amazon::start([]).await;
    let home = Home::with(&[("credentials", keys("default", "AKIAFILE"))]);
    let secret = secret_of("AKIAVARIABLE");
    let sink = amazon.sink(&[
        ("AWS_ACCESS_KEY_ID", "AKIAVARIABLE"),
        ("AWS_SECRET_ACCESS_KEY", &secret),
        ("HOME", home.path()),
    ]);
    send(&sink).await.unwrap();
    assert_eq!(amazon.callers(), ["AKIAVARIABLE"; 2]);
}

#[tokio::test]
async fn keys_that_are_replaced_in_a_file_count_from_the_next_request_on() {
    let amazon = Amazon::start([]).await;
    let home = Home::with(&[("credentials", keys("default", "AKIAOLD"))]);
    let sink = amazon.sink(&[("HOME", home.path())]);
    send(&sink).await.unwrap();
    assert_eq!(amazon.callers(), ["AKIAOLD"; 2]);
    home.write("credentials", &keys("default", "AKIANEW"));
    send(&sink).await.unwrap();
    assert_eq!(amazon.callers(), ["AKIANEW"]);
}

#[tokio::test]
async fn a_profile_is_found_in_either_file_by_its_name() {
    let amazon = Amazon::start([]).await;
    let home = Home::with(&[
        ("credentials", keys("default", "AKIADEFAULT") + &keys("blue", "AKIABLUE")),
        ("config", keys("profile green", "AKIAGREEN") + "region = eu-central-1\n"),
    ]);
    for (profile, id) in [("blue", "AKIABLUE"), ("green", "AKIAGREEN")] {
        let sink = amazon.sink(&[("HOME", home.path()), ("AWS_PROFILE", profile)]);
        send(&sink).await.unwrap();
        assert_eq!(amazon.callers(), [id; 2]);
    }
}

#[tokio::test]
async fn files_may_be_elsewhere() {
    let amazon = Amazon::start([]).await;
    let home = Home::with(&[("elsewhere", keys("default", "AKIAELSEWHERE"))]);
    let path = home.0.path().join(".aws/elsewhere");
    let sink = amazon.sink(&[("AWS_SHARED_CREDENTIALS_FILE", text(&path))]);
    send(&sink).await.unwrap();
    assert_eq!(amazon.callers(), ["AKIAELSEWHERE"; 2]);
}

#[tokio::test]
async fn a_profile_takes_its_role_with_the_keys_of_another() {
    let amazon = Amazon::start([FIRST]).await;
    let config = format!(
        "[profile relay]\nrole_arn = {ROLE}\nsource_profile = base\nexternal_id = orders-42\n\
         role_session_name = night\nduration_seconds = 900\n"
    );
    let home = Home::with(&[("credentials", keys("base", "AKIABASE")), ("config", config)]);
    let sts = amazon.url("/");
    let sink = amazon.sink(&[
        ("HOME", home.path()),
        ("AWS_PROFILE", "relay"),
        ("AWS_ENDPOINT_URL_STS", &sts),
    ]);
    send(&sink).await.unwrap();
    assert_eq!(amazon.callers(), [FIRST.id; 2]);
    let [role] = &amazon.roles()[..] else { panic!("{:?}", amazon.roles()) };
    for (name, value) in [
        ("by", "AKIABASE"),
        ("Action", "AssumeRole"),
        ("RoleArn", ROLE),
        ("ExternalId", "orders-42"),
        ("RoleSessionName", "night"),
        ("DurationSeconds", "900"),
    ] {
        assert_eq!(role[name], value, "{name}");
    }
}

#[tokio::test]
async fn a_role_is_taken_by_whoever_the_machine_is() {
    let amazon = Amazon::start([FIRST, SECOND]).await;
    let config = format!("[default]\nrole_arn={ROLE}\ncredential_source=Ec2InstanceMetadata\n");
    let home = Home::with(&[("config", config)]);
    let place = amazon.url("");
    let sink = amazon.sink(&[
        ("HOME", home.path()),
        ("AWS_ENDPOINT_URL_STS", &place),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", &place),
    ]);
    send(&sink).await.unwrap();
    assert_eq!(amazon.callers(), [SECOND.id; 2]);
    assert_eq!(amazon.roles()[0]["by"], FIRST.id);
}

#[tokio::test]
async fn a_web_identity_takes_its_role_with_the_token_that_counts_now() {
    let soon = Identity { lasts: MINUTE, ..FIRST };
    let amazon = Amazon::start([soon.clone(), soon, SECOND]).await;
    let home = Home::with(&[("token", "first.token\n".to_owned())]);
    let (token, sts) = (home.0.path().join(".aws/token"), amazon.url(""));
    let sink = amazon.sink(&[
        ("AWS_ROLE_ARN", ROLE),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", text(&token)),
        ("AWS_ENDPOINT_URL_STS", &sts),
    ]);
    send(&sink).await.unwrap();
    home.write("token", "second.token\n");
    send(&sink).await.unwrap();
    assert_eq!(amazon.callers(), [FIRST.id, FIRST.id, SECOND.id]);
    let roles = amazon.roles();
    let tokens: Vec<_> = roles.iter().map(|role| &*role["WebIdentityToken"]).collect();
    assert_eq!(tokens, ["first.token", "first.token", "second.token"]);
    for role in roles {
        assert_eq!(role["Action"], "AssumeRoleWithWebIdentity");
        assert_eq!((&*role["RoleArn"], &*role["RoleSessionName"]), (ROLE, "hapax"));
    }
}

#[tokio::test]
async fn a_container_is_given_its_role() {
    let amazon = Amazon::start([FIRST]).await;
    let place = amazon.url("/container");
    let sink = amazon.sink(&[
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &place),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "let me in"),
    ]);
    send(&sink).await.unwrap();
    assert_eq!(amazon.callers(), [FIRST.id; 2]);
}

#[tokio::test]
async fn a_machine_is_given_its_role_and_asked_once() {
    let amazon = Amazon::start([FIRST, SECOND]).await;
    let place = amazon.url("");
    let sink = amazon.sink(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &place)]);
    for _ in 0..3 {
        send(&sink).await.unwrap();
    }
    assert_eq!(amazon.callers(), [FIRST.id; 4]);
    let role = "/latest/meta-data/iam/security-credentials/";
    assert_eq!(amazon.paths(), ["/latest/api/token", role, &format!("{role}worker")]);
}

#[tokio::test]
async fn credentials_are_replaced_before_they_expire() {
    let soon = |id| Identity { id, lasts: MINUTE };
    let amazon = Amazon::start([soon("ASIA1"), soon("ASIA2"), soon("ASIA3"), SECOND]).await;
    let place = amazon.url("");
    let sink = amazon.sink(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &place)]);
    for _ in 0..4 {
        send(&sink).await.unwrap();
    }
    assert_eq!(amazon.callers(), ["ASIA1", "ASIA2", "ASIA3", SECOND.id, SECOND.id]);
}

#[tokio::test]
async fn what_has_expired_already_signs_nothing() {
    let amazon = Amazon::start([Identity { lasts: Duration::ZERO, ..FIRST }]).await;
    let place = amazon.url("");
    let sink = amazon.sink(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &place)]);
    let outage = send(&sink).await.unwrap_err();
    assert!(outage.needs_somebody(), "{outage:?}");
    assert!(told(&outage).contains("expires before"), "{}", told(&outage));
    assert!(amazon.callers().is_empty());
}

#[tokio::test]
async fn who_is_refused_a_role_does_not_act_as_somebody_else() {
    let amazon = Amazon::start([FIRST]).await;
    amazon.sts_refuses(StatusCode::FORBIDDEN, "AccessDenied");
    let home = Home::with(&[("token", "a.token".to_owned())]);
    let (token, place) = (home.0.path().join(".aws/token"), amazon.url(""));
    let sink = amazon.sink(&[
        ("AWS_ROLE_ARN", ROLE),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", text(&token)),
        ("AWS_ENDPOINT_URL_STS", &place),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", &place),
    ]);
    let outage = send(&sink).await.unwrap_err();
    assert!(outage.needs_somebody(), "{outage:?}");
    let story = told(&outage);
    assert!(story.contains("AWS_WEB_IDENTITY_TOKEN_FILE: AccessDenied: not you"), "{story}");
    assert_eq!(amazon.paths(), ["/"], "nobody else was asked who we are");
}

#[tokio::test]
async fn an_sts_that_fails_is_asked_again_later() {
    let amazon = Amazon::start([FIRST]).await;
    amazon.sts_refuses(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable");
    let home = Home::with(&[("token", "a.token".to_owned())]);
    let (token, place) = (home.0.path().join(".aws/token"), amazon.url(""));
    let sink = amazon.sink(&[
        ("AWS_ROLE_ARN", ROLE),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", text(&token)),
        ("AWS_ENDPOINT_URL", &place),
    ]);
    let outage = send(&sink).await.unwrap_err();
    assert!(!outage.needs_somebody(), "{outage:?}");
    assert!(told(&outage).contains("credentials cannot be had now"), "{}", told(&outage));
}

#[tokio::test]
async fn without_credentials_every_place_is_named_that_was_looked_at() {
    let amazon = Amazon::start([]).await;
    let home = Home::with(&[]);
    let sink = amazon.sink(&[("HOME", home.path()), NO_MACHINE]);
    let outage = send(&sink).await.unwrap_err();
    assert!(outage.needs_somebody(), "{outage:?}");
    let story = told(&outage);
    for place in [
        "there are no credentials",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "profile `default` in ~/.aws/credentials or ~/.aws/config",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "the role of this machine",
    ] {
        assert!(story.contains(place), "{place}: {story}");
    }
    assert!(amazon.callers().is_empty(), "nothing unsigned was sent");
}

#[tokio::test]
async fn where_no_machine_answers_it_may_yet_come_up() {
    let amazon = Amazon::start([]).await;
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let place = format!("http://{gone}");
    let sink = amazon.sink(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &place)]);
    let outage = send(&sink).await.unwrap_err();
    assert!(!outage.needs_somebody(), "{outage:?}");
    assert!(told(&outage).contains("AWS_ACCESS_KEY_ID"), "{}", told(&outage));
}

#[tokio::test]
async fn a_profile_that_cannot_be_used_is_told_with_its_fault() {
    let amazon = Amazon::start([]).await;
    let config = format!(
        "[profile round]\nrole_arn = {ROLE}\nsource_profile = about\n\
         [profile about]\nrole_arn = {ROLE}\nsource_profile = round\n\
         [profile odd]\nrole_arn = {ROLE}\ncredential_source = Moon\n\
         [profile alone]\nrole_arn = {ROLE}\n\
         [profile poor]\nrole_arn = {ROLE}\nsource_profile = nobody\n"
    );
    let home = Home::with(&[("config", config)]);
    for (profile, fault) in [
        ("missing", "there is no profile `missing` in ~/.aws/credentials or ~/.aws/config"),
        ("round", "its source_profile leads on and on"),
        ("odd", "`Moon` is no credential_source"),
        ("alone", "does not say who takes its role"),
        ("poor", "there are no credentials to take arn:aws:iam::123456789012:role/relay with"),
    ] {
        let sink = amazon.sink(&[("HOME", home.path()), ("AWS_PROFILE", profile)]);
        let outage = send(&sink).await.unwrap_err();
        assert!(outage.needs_somebody(), "{outage:?}");
        assert!(told(&outage).contains(fault), "{profile}: {}", told(&outage));
    }
}
