#![expect(clippy::unwrap_used, reason = "what a test did not expect ends it")]

use std::{fs, path::Path, process::Command};

use xtask::upgrade::program;

const MANIFEST: &str = "[package]\nname = \"hapax-cli\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
    [[bin]]\nname = \"hapax\"\npath = \"main.rs\"\n[workspace]\n";
const LOCK: &str = "version = 4\n\n[[package]]\nname = \"hapax-cli\"\nversion = \"0.1.0\"\n";

fn git(root: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(args);
    let output = git.current_dir(root).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn commit(root: &Path, says: &str) {
    fs::write(root.join("main.rs"), format!("fn main() {{ print!(\"{says}\") }}\n")).unwrap();
    git(root, &["add", "."]);
    git(root, &["commit", "--quiet", "-m", says]);
}

#[test]
fn the_program_of_an_earlier_commit_is_built_once_and_no_worktree_stays() {
    let (root, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (root, dir) = (root.path(), target.path().join("upgrade"));
    git(root, &["init", "--quiet"]);
    fs::write(root.join("Cargo.toml"), MANIFEST).unwrap();
    fs::write(root.join("Cargo.lock"), LOCK).unwrap();
    commit(root, "before");
    commit(root, "now");
    // One that was interrupted left this, and half a program.
    git(root, &["worktree", "add", "--quiet", "--detach", dir.join("source").to_str().unwrap()]);
    fs::write(dir.join("finished"), "half").unwrap();

    let built = program(root, &dir, "HEAD~1").unwrap();
    assert_eq!(Command::new(&built).output().unwrap().stdout, b"before");
    assert_eq!(git(root, &["worktree", "list"]).lines().count(), 1);
    let at = fs::metadata(&built).unwrap().modified().unwrap();
    assert_eq!(program(root, &dir, "HEAD~1").unwrap(), built);
    assert_eq!(fs::metadata(&built).unwrap().modified().unwrap(), at);
    let unknown = program(root, &dir, "no-such-commit").unwrap_err();
    assert!(unknown.to_string().contains("git knows no commit no-such-commit"), "{unknown}");
}
