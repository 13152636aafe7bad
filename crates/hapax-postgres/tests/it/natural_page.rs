//! `docs/natural.md`, run as it stands: every example, every answer, every plain statement.

use std::{fs, path::Path};

use crate::natural::{Session, Somebody};

/// What a fenced block of the page is for.
enum Block {
    /// Statements one after the other, some with their answer in a comment behind them.
    Example(Vec<(String, Option<String>)>),
    /// A statement that a crowd runs at once, and one of them wins.
    Raced(String),
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_on_the_page_answers_what_the_page_says() {
    let somebody = Somebody::with("").await;
    let session = somebody.session().await;
    let blocks = blocks();
    assert!(blocks.len() > 10, "the page was not understood");
    for block in blocks {
        match block {
            Block::Example(statements) => {
                for (statement, answer) in statements {
                    match answer {
                        Some(answer) => {
                            assert_eq!(session.ask(&statement).await, answer, "{statement}")
                        }
                        None => session.run(&statement).await,
                    }
                }
            }
            Block::Raced(statement) => {
                assert_eq!(winners(&somebody, &statement).await, 1, "{statement}")
            }
        }
    }
}

/// How many rows a crowd wrote that ran this at once.
async fn winners(somebody: &Somebody, statement: &str) -> u64 {
    let mut sessions = Vec::new();
    for _ in 0..12 {
        sessions.push(somebody.session().await);
    }
    let run = |session: Session| {
        let statement = statement.to_owned();
        tokio::spawn(async move { session.write(&statement).await })
    };
    let mut written = 0;
    for running in sessions.into_iter().map(run).collect::<Vec<_>>() {
        written += running.await.unwrap();
    }
    written
}

fn blocks() -> Vec<Block> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/natural.md");
    let page = fs::read_to_string(page).unwrap();
    let fenced = page.split("```").skip(1).step_by(2);
    let block = |text: &str| {
        let (kind, text) = text.split_once('\n').unwrap();
        match kind {
            "sql" => Block::Example(statements(text)),
            "sql raced" => Block::Raced(text.to_owned()),
            other => unreachable!("the page has a block of another kind: {other}"),
        }
    };
    fenced.map(block).collect()
}

fn statements(text: &str) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    let mut statement = String::new();
    for line in text.lines() {
        let (code, answer) = match line.split_once("; ") {
            Some((code, comment)) => (code, comment.trim().strip_prefix("-- ")),
            None => (line.trim_end_matches(';'), None),
        };
        statement.push_str(code);
        statement.push('\n');
        if code.len() < line.len() {
            found.push((std::mem::take(&mut statement), answer.map(str::to_owned)));
        }
    }
    assert_eq!(statement, "", "a statement without an end");
    found
}
