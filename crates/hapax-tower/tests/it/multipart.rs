//! A form sent again under another boundary is the same form, if the route compares parts.

use hapax_tower::{BodyForm, Protection};

use crate::world::{Answer, World, keyed};

fn world() -> World {
    World::with(Protection { body: BodyForm::Multipart, ..Protection::default() })
}

/// A form with a field and a file.
fn form(boundary: &str, field: &str, file: &str) -> String {
    format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"to\"\r\n\r\n{field}\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"slip\"; filename=\"a.txt\"\r\n\
         content-type: text/plain\r\n\r\n{file}\r\n--{boundary}--\r\n"
    )
}

async fn send(world: &World, content_type: &str, body: &str) -> Answer {
    world.send(keyed("/pay").header("content-type", content_type), body).await
}

const ONE: &str = "multipart/form-data; boundary=one";

#[tokio::test(start_paused = true)]
async fn another_boundary_is_the_same_request() {
    let world = world();
    let first = send(&world, ONE, &form("one", "zoe", "a\r\n\r\n--on\r\nb")).await;
    assert_eq!(first.status, 201);
    for (content_type, boundary) in [
        ("multipart/form-data; boundary=two-2", "two-2"),
        ("Multipart/Form-Data;boundary=\"a b;c\"", "a b;c"),
        ("multipart/form-data; BOUNDARY=----x; ", "----x"),
    ] {
        let body = form(boundary, "zoe", "a\r\n\r\n--on\r\nb");
        assert!(send(&world, content_type, &body).await.is_replay(), "{content_type}");
        let padded = body.replacen(&format!("--{boundary}\r\n"), &format!("--{boundary} \r\n"), 1);
        assert!(send(&world, content_type, &padded).await.is_replay(), "{content_type}");
    }
    let reordered = form("one", "zoe", "a\r\n\r\n--on\r\nb").replace(
        "Content-Disposition: form-data; name=\"slip\"; filename=\"a.txt\"\r\ncontent-type: text/plain",
        "Content-Type:text/plain\r\nContent-Disposition: form-data; name=\"slip\"; filename=\"a.txt\"",
    );
    assert!(send(&world, ONE, &reordered).await.is_replay());
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_part_is_another_request() {
    let world = world();
    let body = form("one", "zoe", "text");
    send(&world, ONE, &body).await;
    let last = body.find("--one\r\nContent-Disposition: form-data; name=\"slip\"").unwrap();
    let (first, second) = (&body[..last], &body[last..body.len() - "--one--\r\n".len()]);
    for other in [
        form("one", "zoe ", "text"),
        form("one", "zoe", "texts"),
        body.replace("\"to\"", "\"at\""),
        body.replace("a.txt", "b.txt"),
        body.replace("text/plain", "text/html"),
        format!("{second}{first}--one--\r\n"),
        format!("{first}--one--\r\n"),
        format!("{first}{second}{second}--one--\r\n"),
        format!("preamble\r\n{body}"),
        format!("\r\n{body}"),
        format!("{body}epilogue"),
        body.trim_end().to_owned(),
    ] {
        send(&world, ONE, &other).await.check(422, "key-reused");
    }
    let answer = send(&world, "multipart/mixed; boundary=one", &body).await;
    answer.check(422, "key-reused");
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_one_sequence_of_parts_is_refused_before_anything_is_claimed() {
    let world = world();
    let good = form("one", "zoe", "text");
    for content_type in [
        "text/plain",
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=one; boundary=two",
        "multipart/form-data; boundary=\"one",
    ] {
        send(&world, content_type, &good).await.check(400, "body-not-canonical");
    }
    for body in [
        "no boundary",
        "--one",
        "--one\r\n",
        "--one\r\n--one--",
        "--one\r\n\r\ntext",
        "--one\r\nno colon\r\n\r\ntext\r\n--one--",
        "--one\r\na: b\r\n folded\r\n\r\ntext\r\n--one--",
        "--one\r\na: b\r\ntext\r\n--one--",
        "--one\r\n\r\ntext\r\n--onemore\r\n--one--",
        good.trim_end_matches("--\r\n"),
    ] {
        send(&world, ONE, body).await.check(400, "body-not-canonical");
    }
    let encoded = keyed("/pay").header("content-type", ONE).header("content-encoding", "gzip");
    world.send(encoded, &good).await.check(415, "body-encoded");
    assert!(world.store.all().await.is_empty());
    for body in ["", "--one--", "--one\r\n\r\n\r\n--one--"] {
        let world = self::world();
        assert_eq!(send(&world, ONE, body).await.status, 201, "{body}");
    }
}
