//! The page of `hapax demo --keep`, pressed as a browser presses it.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::{
    demo::Demo,
    world::{Answer, ask, until},
};

/// A browser on the page of a demo.
struct DemoPage {
    demo: Demo,
    address: SocketAddr,
    token: String,
}

impl DemoPage {
    async fn open() -> Self {
        let mut demo = Demo::start(&["--keep", "--payments", "4"]);
        let said = demo.said_until("keys explain");
        let address = said.lines().find_map(|line| line.trim().strip_prefix("look at it"));
        let address = address.unwrap().trim().trim_start_matches("http://").trim_end_matches('/');
        let mut page = Self { demo, address: address.parse().unwrap(), token: String::new() };
        let html = page.get("/").await;
        let token = html.text().split_once("name=\"demo-token\" content=\"").unwrap().1;
        page.token = token.split_once('"').unwrap().0.to_owned();
        page
    }

    async fn get(&self, path: &str) -> Answer {
        self.get_as(path, &self.address.to_string()).await
    }

    async fn get_as(&self, path: &str, host: &str) -> Answer {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n");
        ask(self.address, request).await.unwrap()
    }

    async fn overview(&self) -> Value {
        document(&self.get("/overview").await)
    }

    /// What the page itself sends.
    async fn press(&self, path: &str, wanted: &Value) -> Answer {
        let origin = format!("origin: http://{}\r\n", self.address);
        self.post(path, wanted, &format!("{origin}demo-token: {}\r\n", self.token)).await
    }

    async fn post(&self, path: &str, wanted: &Value, headers: &str) -> Answer {
        let (host, body) = (self.address, wanted.to_string());
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\n{headers}content-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        ask(self.address, request).await.unwrap()
    }

    /// The key with its counts, once it is in this state.
    async fn key_in(&self, key: &str, state: &str) -> Value {
        let mut found = Value::Null;
        until(&format!("{key} is {state}"), async || {
            let overview = self.overview().await;
            let newest = overview["keys"]["newest"].as_array().unwrap();
            let is_it = |one: &&Value| one["key"] == key && one["state"] == state;
            found = newest.iter().find(is_it).cloned().unwrap_or_default();
            !found.is_null()
        })
        .await;
        found
    }

    async fn is_up(&self) {
        let up = async || self.overview().await["gateway"]["status"] == "up";
        until("the gateway is up", up).await;
    }
}

fn document(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

fn error(answer: &Answer) -> (u16, String) {
    (answer.status, document(answer)["error"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn an_order_sent_again_is_one_charge_and_its_timeline_says_who_saw_what() {
    let page = DemoPage::open().await;
    let first = document(&page.press("/orders", &json!({ "amount": 2500 })).await);
    assert_eq!((&first["status"], &first["replayed"]), (&json!(201), &json!(false)));
    let key = first["key"].as_str().unwrap();
    let again = json!({ "amount": 2500, "key": key });
    let again = document(&page.press("/orders", &again).await);
    assert_eq!((&again["status"], &again["replayed"]), (&json!(201), &json!(true)));
    assert_eq!(again["body"], first["body"]);
    let other = json!({ "amount": 9900, "key": key });
    assert_eq!(document(&page.press("/orders", &other).await)["status"], 422);

    let shown = page.key_in(key, "completed").await;
    assert_eq!((&shown["requests"], &shown["replays"]), (&json!(3), &json!(1)));
    assert_eq!((&shown["charges"], &shown["fence"]), (&json!(1), &json!(1)));
    let id = shown["id"].as_str().unwrap();
    let timeline = document(&page.get(&format!("/keys/{id}")).await);
    let moments = timeline["moments"].as_array().unwrap().iter();
    let said = |one: &Value| {
        format!("{}: {}", one["witness"].as_str().unwrap(), one["what"].as_str().unwrap())
    };
    let moments: Vec<_> = moments.map(said).collect();
    for part in [
        "client: request 1: 201, paid",
        "store: the key was first claimed",
        "shop: charged it as pay_",
        "sent under fence 1",
        "store: attempt 1 completed with status 201",
        "client: request 2: 201, replayed",
        "client: request 3: 422",
        "store: its outcome expires",
    ] {
        assert!(moments.iter().any(|moment| moment.contains(part)), "{part}: {moments:#?}");
    }
}

#[tokio::test]
async fn an_order_whose_gateway_is_killed_after_the_charge_is_charged_once() {
    let mut page = DemoPage::open().await;
    let pid = page.overview().await["gateway"]["pid"].clone();
    let report = document(&page.press("/orders", &json!({ "amount": 100, "kill": true })).await);
    assert_eq!(report["status"], Value::Null, "{report}");
    let mut kill = Value::Null;
    until("what it left is read from its file", async || {
        kill = page.overview().await["gateway"]["kills"][0].clone();
        !kill["left"].is_null()
    })
    .await;
    assert_eq!((&kill["pid"], &kill["by"], &kill["left"]), (&pid, &json!("you"), &json!(1)));
    page.is_up().await;
    let key = report["key"].as_str().unwrap();
    let shown = page.key_in(key, "completed").await;
    assert_eq!((&shown["charges"], &shown["requests"]), (&json!(1), &json!(1)));
    assert!(shown["fence"].as_i64().unwrap() > 1, "nobody took over: {shown}");
    let again = json!({ "amount": 100, "key": key });
    assert_eq!(document(&page.press("/orders", &again).await)["replayed"], true);
    let overview = page.overview().await;
    assert_ne!(overview["gateway"]["pid"], pid);
    assert_eq!(overview["gateway"]["kills"][0]["now"], json!({ "completed": 1 }));
    assert_eq!(overview["keys"]["doubled"], 0);

    assert!(page.demo.interrupt().success());
    assert!(page.demo.is_clean());
}

#[tokio::test]
async fn a_gateway_that_is_down_is_not_killed_and_its_keys_are_read_from_its_file() {
    let page = DemoPage::open().await;
    let keys = page.overview().await["keys"]["all"].clone();
    until("a kill is refused", async || {
        let answer = page.press("/kill", &json!({})).await;
        answer.status == 409 && error(&answer).1.contains("down already")
    })
    .await;
    // Two seconds are long for a person and may be short for a busy machine.
    until("it is seen down", async || {
        let overview = page.overview().await;
        if overview["gateway"]["status"] == "up" {
            page.press("/kill", &json!({})).await;
        }
        overview["gateway"]["status"] == "down" && overview["keys"]["read_from"] == "file" && {
            assert_eq!(overview["keys"]["all"], keys, "{overview}");
            true
        }
    })
    .await;
    page.is_up().await;
}

#[tokio::test]
async fn a_storm_with_a_kill_charges_each_order_once_and_a_second_one_waits_its_turn() {
    let page = DemoPage::open().await;
    let storm = json!({ "orders": 12, "copies": 4, "kill": true });
    assert_eq!(page.press("/storm", &storm).await.status, 202);
    let second = error(&page.press("/storm", &storm).await);
    assert_eq!(second, (409, "a storm is under way; one at a time".to_owned()));
    let mut over = Value::Null;
    until("the storm is over", async || {
        over = page.overview().await["storm"].clone();
        over["under_way"] == false
    })
    .await;
    assert_eq!((&over["done"], &over["killed"]), (&json!(48), &json!(true)), "{over}");
    let with = &over["with"];
    assert_eq!((&with["charges"], &with["doubled"]), (&json!(12), &json!(0)), "{over}");
    assert_eq!((&with["missing"], &with["given_up"]), (&json!(0), &json!(0)), "{over}");
    assert!(with["requests"].as_u64().unwrap() >= 48, "{over}");
    assert!(over["without"]["doubled"].as_u64().unwrap() > 0, "{over}");
    let kills = &page.overview().await["gateway"]["kills"];
    assert_eq!(kills[0]["by"], "storm", "{kills}");

    for size in [(0, 1), (101, 1), (1, 0), (1, 11)] {
        let wanted = json!({ "orders": size.0, "copies": size.1, "kill": false });
        assert_eq!(page.press("/storm", &wanted).await.status, 422, "{size:?}");
    }
}

#[tokio::test]
async fn a_gateway_that_somebody_else_kills_comes_back() {
    let page = DemoPage::open().await;
    let pid = page.overview().await["gateway"]["pid"].clone();
    let killed = std::process::Command::new("kill").args(["-s", "KILL", &pid.to_string()]).status();
    assert!(killed.unwrap().success());
    until("there is another gateway", async || {
        let gateway = page.overview().await["gateway"].clone();
        gateway["status"] == "up" && gateway["pid"] != pid
    })
    .await;
    assert_eq!(page.overview().await["gateway"]["kills"][0]["by"], "somebody_else");
    let paid = document(&page.press("/orders", &json!({ "amount": 1 })).await);
    assert_eq!(paid["status"], 201, "{paid}");
}

#[tokio::test]
async fn only_the_page_itself_may_act_and_only_this_machine_may_look() {
    let page = DemoPage::open().await;
    let (token, address) = (&page.token, page.address);
    let own = format!("origin: http://{address}\r\n");
    let with_token = format!("demo-token: {token}\r\n");
    for (headers, status) in [
        (format!("origin: http://evil.example\r\n{with_token}"), 403),
        (format!("origin: null\r\n{with_token}"), 403),
        (format!("origin: https://{address}\r\n{with_token}"), 403),
        (with_token.clone(), 403),
        (own.clone(), 403),
        (format!("{own}demo-token: guessed\r\n"), 403),
        (format!("{own}{own}{with_token}"), 403),
    ] {
        for path in ["/kill", "/storm", "/orders"] {
            let refused = page.post(path, &json!({}), &headers).await;
            assert_eq!(refused.status, status, "{path} with {headers:?}");
            assert_eq!(refused.header("access-control-allow-origin"), None);
        }
    }
    for path in ["/", "/overview"] {
        assert_eq!(page.get_as(path, "evil.example").await.status, 421, "{path}");
    }
    assert_eq!(
        page.get_as("/overview", &format!("localhost:{}", address.port())).await.status,
        200
    );
    let overview = page.overview().await;
    assert_eq!(overview["gateway"]["kills"], json!([]));

    let html = page.get("/").await;
    let policy = html.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.get("/kill").await.status, 404);
}

#[tokio::test]
async fn what_is_no_order_is_not_sent() {
    let page = DemoPage::open().await;
    for wanted in [
        json!({}),
        json!({ "amount": 0 }),
        json!({ "amount": -5 }),
        json!({ "amount": 100, "key": "" }),
        json!({ "amount": 100, "key": "a\r\nb" }),
        json!({ "amount": 100, "key": "k", "kill": true }),
        json!({ "amount": 100, "tip": 1 }),
    ] {
        assert_eq!(page.press("/orders", &wanted).await.status, 422, "{wanted}");
    }
}
