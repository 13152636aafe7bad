//! The page itself.

use axum::{
    body::Body,
    http::{Request, StatusCode},
};

use super::world::{Answer, HOST, World};

async fn get(world: &World, path: &str) -> Answer {
    world.send(Request::get(path).header("host", HOST).body(Body::empty()).unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn the_page_and_every_file_it_names_come_from_here_and_may_do_little() {
    let world = World::with_token(None);
    let page = get(&world, "/").await;
    let files = page.text.split("=\"/dashboard/").skip(1).map(|rest| rest.split('"').next());
    let mut wanted: Vec<String> =
        files.flatten().map(|file| format!("/dashboard/{file}")).collect();
    let mut seen = vec!["/".to_owned()];
    while let Some(path) = wanted.pop() {
        if seen.contains(&path) {
            continue;
        }
        let file = get(&world, &path).await;
        assert_eq!(file.status, StatusCode::OK, "{path}");
        let imports = file.text.split(" from \"./").skip(1).map(|rest| rest.split('"').next());
        wanted.extend(imports.flatten().map(|file| format!("/dashboard/{file}")));
        seen.push(path);
    }
    assert!(seen.len() > 15, "{seen:?}");
    for path in seen {
        let file = get(&world, &path).await;
        let kind = match path.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        };
        assert_eq!(file.header("content-type"), kind, "{path}");
        assert_eq!(file.header("cache-control"), "no-store");
        assert_eq!(file.header("x-frame-options"), "DENY");
        assert_eq!(file.header("x-content-type-options"), "nosniff");
        assert_eq!(file.header("referrer-policy"), "no-referrer");
        let policy = file.header("content-security-policy");
        for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_else_is_served_beside_the_page() {
    let world = World::new();
    for path in ["/dashboard/", "/dashboard/none.js", "/dashboard/../Cargo.toml", "/index.html"] {
        let answer = get(&world, path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(answer.json()["code"], "no-such-page", "{path}");
    }
    let posted = Request::post("/").header("host", HOST).body(Body::empty()).unwrap();
    assert_eq!(world.send(posted).await.status, StatusCode::METHOD_NOT_ALLOWED);
}
