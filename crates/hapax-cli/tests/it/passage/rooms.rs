//! WebSockets as others speak them: `websockets` of Python, and `ws` of Node.

use super::packages::{Packages, said_by};
use crate::{operating::Scrape, world::Setup};

const TALK: &str = "echoed True\nechoed True\npong\nclosed 4000 done\n";

#[tokio::test(flavor = "multi_thread")]
async fn clients_and_servers_of_websockets_talk_through_the_gateway_and_close_as_they_say() {
    let Some(packages) = Packages::installed() else { return };
    let server = packages.serve("rooms.py").await;
    let gateway = Setup::new(server.address).start().await;
    let url = |path: &str| format!("ws://{}{path}", gateway.address);
    let talk = said_by(packages.python(&["rooms.py", "visit", &url("/room?n=1")])).await;
    assert_eq!(talk, format!("welcome to /room?n=1\n{TALK}"));
    let talk = said_by(packages.node(&["visitor.mjs", &url("/room?n=2")])).await;
    assert_eq!(talk, format!("welcome to /room?n=2\n{}", TALK.replace("True", "true")));
    let sent_away = said_by(packages.node(&["visitor.mjs", &url("/closing"), "closing"])).await;
    assert_eq!(sent_away, "closed 4001 closed here\n");
    let total = Scrape::of(&gateway).await.value("hapax_upgraded_connections_total");
    assert_eq!(total.as_deref(), Some("3"));
}
