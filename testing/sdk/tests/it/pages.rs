//! The pages of `docs/start`, followed as a reader follows them: in an empty folder, every block in its order.
//!
//! A block of `sh` is run. A block after a line with a file's name alone (`` `app.py`: ``) becomes that file. A block of `sh` after
//! `<!-- server: PORT -->` runs until the end; another port is put in its place everywhere. Every line of a block of `text` must be in what was
//! printed since the block before, where `…` stands for anything. How much code of the reader's own a page needs has a limit.

use std::{
    env, fs,
    net::TcpListener,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use hapax_sdk_tests::Sdk;

use crate::world::{World, service};

async fn follow(sdk: Sdk, page: &str) {
    if !sdk.is_there() {
        return;
    }
    let text = fs::read_to_string(pages().join(page)).unwrap();
    let (steps, folder) = (steps(&text), tempfile::tempdir().unwrap());
    package(sdk, folder.path());
    let world = World::bare(sdk).await;
    let mut script = String::from("set -euo pipefail\n");
    for (at, step) in steps.iter().enumerate() {
        script.push_str(&match step {
            Step::Run(text) => {
                format!("{{\n{text}\n}} > out.{at} 2>&1 || {{ cat out.{at}; exit 1; }}\n")
            }
            Step::Serve { port, text } => format!(
                "{{\n{text}\n}} > server.{at} 2>&1 &\nfor try in $(seq 600); do \
                 (: > /dev/tcp/127.0.0.1/{port}) 2> /dev/null && break; sleep 0.1; done\n"
            ),
            Step::File { name, text } => {
                format!("cat > {name} << '=== end ==='\n{text}\n=== end ===\n")
            }
            Step::Expect(_) => continue,
        });
    }
    let (port, said) = (free_port(), folder.path().join("said"));
    let with_port = |text: &str| match port_of(&steps) {
        Some(old) => text.replace(&old, &port),
        None => text.to_owned(),
    };
    let script = script.replace("export DATABASE_URL=", "true ");
    let script = with_port(&script);
    let mut shell = Command::new("bash");
    shell.current_dir(folder.path()).arg("-c").arg(script).stdin(Stdio::null()).process_group(0);
    shell
        .stdout(fs::File::create(&said).unwrap())
        .stderr(fs::File::create(folder.path().join("errors")).unwrap());
    shell.env("DATABASE_URL", world.url()).env("PATH", path());
    for name in ["kafka", "nats", "rabbitmq", "sqs"] {
        shell.envs(service(name).map(|url| (format!("{}_URL", name.to_uppercase()), url)));
    }
    let mut child = shell.spawn().unwrap();
    let status = child.wait().unwrap();
    let group = rustix::process::Pid::from_child(&child);
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    let told = tell(folder.path());
    assert!(status.success(), "{page}: {told}");
    let mut printed = String::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Run(_) => {
                printed = fs::read_to_string(folder.path().join(format!("out.{at}"))).unwrap()
            }
            Step::Expect(lines) => {
                let lines = with_port(lines);
                for line in lines.lines().filter(|line| !line.trim().is_empty()) {
                    assert!(
                        has(&printed, line),
                        "{page}: `{line}` is not in what was printed: {told}"
                    );
                }
            }
            Step::Serve { .. } | Step::File { .. } => {}
        }
    }
}

/// Builds what the page installs, into its folder.
fn package(sdk: Sdk, folder: &Path) {
    let output = sdk.program("package").arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Everything that was printed, by whom.
fn tell(folder: &Path) -> String {
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let is_told = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ["out.", "server.", "said", "errors"].iter().any(|start| name.starts_with(start))
    };
    let tell = |path: &PathBuf| {
        format!("\n-- {}\n{}", path.display(), fs::read_to_string(path).unwrap_or_default())
    };
    files.iter().filter(is_told).map(tell).collect()
}

/// Whether a line like this is there.
fn has(printed: &str, line: &str) -> bool {
    let pieces: Vec<_> = line.trim().split('…').map(str::to_lowercase).collect();
    printed.lines().any(|printed| {
        let (printed, mut at) = (printed.to_lowercase(), 0);
        pieces.iter().all(|piece| match printed[at..].find(piece.as_str()) {
            Some(found) => {
                at += found + piece.len();
                true
            }
            None => false,
        })
    })
}

enum Step {
    Run(String),
    Serve { port: String, text: String },
    File { name: String, text: String },
    Expect(String),
}

/// The most lines of a program on a page: of the reader's own, and of those that name something of ours.
const LINES_MAX: [usize; 2] = [25, 5];

#[test]
fn every_program_on_a_page_is_short() {
    let mut counted = Vec::new();
    for page in fs::read_dir(pages()).unwrap() {
        let page = page.unwrap().path();
        for step in steps(&fs::read_to_string(&page).unwrap()) {
            let Step::File { name, text } = step else { continue };
            if ["py", "mjs", "go", "java"].iter().any(|kind| name.ends_with(&format!(".{kind}"))) {
                let page = page.file_stem().unwrap().to_string_lossy().into_owned();
                counted.push((page, name, lines(&text)));
            }
        }
    }
    assert!(counted.len() >= 8, "{counted:?}");
    let is_long = |lines: &[usize; 2]| lines[0] > LINES_MAX[0] || lines[1] > LINES_MAX[1];
    counted.sort();
    let long: Vec<_> = counted.iter().filter(|(_, _, lines)| is_long(lines)).collect();
    assert!(long.is_empty(), "longer than {LINES_MAX:?}: {long:?}");
    let table = fs::read_to_string(Sdk::Python.folder().join("../README.md")).unwrap();
    for (page, _, [own, ours]) in counted.iter().filter(|(_, _, [_, ours])| *ours > 0) {
        let row = format!("(../docs/start/{page}.md) | {own} | {ours} |");
        assert!(table.contains(&row), "sdk/README.md has no `{row}`");
    }
}

/// How many lines are the reader's own, and how many name something that is imported from us. Empty ones do not count.
fn lines(program: &str) -> [usize; 2] {
    let names: Vec<&str> =
        program.lines().filter(|line| is_import(line)).flat_map(imported).collect();
    let is_ours = |line: &str| {
        let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        is_import(line) || words.any(|word| names.contains(&word))
    };
    let written = program.lines().filter(|line| !line.trim().is_empty());
    let (ours, own): (Vec<_>, Vec<_>) = written.partition(|line| is_ours(line));
    [own.len(), ours.len()]
}

/// `from hapax_once.nats import deliver`, `import { hapax } from "hapax-once/pg"`, `import dev.hapax.once.Hapax;`, `"hapax.dev/once"`
fn is_import(line: &str) -> bool {
    let line = line.trim();
    let begins = ["import ", "from ", "\""].iter().any(|word| line.starts_with(word));
    begins && line.contains("hapax")
}

fn imported(line: &str) -> Vec<&str> {
    let named = line.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    let names = match (named, line.split_once(" import ")) {
        (Some((names, _)), _) | (None, Some((_, names))) => names,
        (None, None) => line.rsplit(['/', '.']).next().unwrap_or_default(),
    };
    names.split(',').map(|name| name.trim_matches([' ', ';', '"'])).collect()
}

fn port_of(steps: &[Step]) -> Option<String> {
    steps.iter().find_map(|step| match step {
        Step::Serve { port, .. } => Some(port.clone()),
        Step::Run(_) | Step::File { .. } | Step::Expect(_) => None,
    })
}

fn steps(page: &str) -> Vec<Step> {
    let (mut steps, mut lines, mut before) = (Vec::new(), page.lines(), "");
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else {
            before = if line.trim().is_empty() { before } else { line };
            continue;
        };
        let text = lines.by_ref().take_while(|line| *line != "```").collect::<Vec<_>>().join("\n");
        let name = before.strip_prefix('`').and_then(|rest| rest.strip_suffix("`:"));
        let port = before.strip_prefix("<!-- server: ").and_then(|rest| rest.strip_suffix(" -->"));
        match (kind, name, port) {
            (_, Some(name), _) => steps.push(Step::File { name: name.to_owned(), text }),
            ("sh", None, Some(port)) => steps.push(Step::Serve { port: port.to_owned(), text }),
            ("sh", None, None) => steps.push(Step::Run(text)),
            ("text", None, _) => steps.push(Step::Expect(text)),
            (kind, None, _) => panic!("a block of `{kind}` is neither run nor a file"),
        }
        before = "";
    }
    steps
}

fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

fn pages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/start")
}

/// Where programs are found, the one of this workspace first: cargo puts it beside the tests' folder.
fn path() -> String {
    let own = env::current_exe().unwrap();
    let built = own.ancestors().nth(2).unwrap();
    format!("{}:{}", built.display(), env::var("PATH").unwrap())
}

macro_rules! pages {
    ($($sdk:ident $name:ident $page:literal;)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            follow(Sdk::$sdk, $page).await;
        }
    )*};
}

pages! {
    Python the_quick_start_for_python_works_as_pasted "python.md";
    Python the_page_on_consumers_in_python_works_as_pasted "python-consumers.md";
    Node the_quick_start_for_node_works_as_pasted "node.md";
    Node the_page_on_consumers_in_node_works_as_pasted "node-consumers.md";
    Go the_quick_start_for_go_works_as_pasted "go.md";
    Go the_page_on_consumers_in_go_works_as_pasted "go-consumers.md";
    Java the_quick_start_for_java_works_as_pasted "java.md";
    Java the_page_on_consumers_in_java_works_as_pasted "java-consumers.md";
}
