//! The script in `examples/shell`, run as its page says.

use std::process::{Command, Output, Stdio};

use super::Caller;
use crate::{
    text,
    world::{Behaviour, Setup, Upstream, free_address},
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/shell/call.sh");

const ONE_SHOP: &str = "[tenant]\nfrom = \"single\"\nname = \"shop\"\n";

fn pay(caller: &Caller, args: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.arg(SCRIPT).args(args).env("HAPAX", env!("CARGO_BIN_EXE_hapax"));
    command.env("XDG_STATE_HOME", caller.home.path()).env_remove("HAPAX_JOURNAL");
    command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    command.stdin(Stdio::null()).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_pays_once_however_often_it_is_run() {
    let (caller, upstream) = (Caller::new(), Upstream::start(Behaviour::default()).await);
    let gateway = Setup::new(upstream.address).config(ONE_SHOP).start().await;
    let url = format!("http://{}", gateway.address);
    for _ in 0..2 {
        let output = pay(&caller, &["order-17", "2500", &url]);
        assert!(output.status.success(), "{output:?}");
        assert!(text(&output.stdout).contains("order-17 is paid"), "{output:?}");
    }
    assert_eq!((upstream.effects("order-17"), upstream.total()), (1, 1));
    let dearer = pay(&caller, &["order-17", "9900", &url]);
    assert!(!dearer.status.success() && upstream.total() == 1, "{dearer:?}");
    let nonsense = pay(&caller, &["\"}", "2500", &url]);
    assert!(!nonsense.status.success() && upstream.total() == 1, "{nonsense:?}");
}

#[test]
fn the_script_says_what_to_do_when_nobody_is_there() {
    let mut command = Command::new("sh");
    assert!(command.args(["-n", SCRIPT]).status().unwrap().success());
    let url = format!("http://{}", free_address());
    let mut command = Command::new("sh");
    command.arg(SCRIPT).args(["order-18", "2500", &url]).env("DEADLINE", "300ms");
    let caller = Caller::new();
    command.env("HAPAX", env!("CARGO_BIN_EXE_hapax")).env("XDG_STATE_HOME", caller.home.path());
    let output = command.env_remove("HAPAX_JOURNAL").env("NO_PROXY", "127.0.0.1").output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(text(&output.stdout).contains("order-18 is not paid"), "{output:?}");
}
