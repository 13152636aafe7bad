//! `hapax completions`.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use crate::{hapax, text};

#[test]
fn every_shell_is_told_commands_and_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = hapax(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let script = text(&output.stdout);
        for word in ["check-config", "upstream", "purge"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    assert_eq!(hapax(&["completions", "cmd"]).status.code(), Some(2));
}

#[test]
fn what_bash_is_told_completes_a_command() {
    let script = text(&hapax(&["completions", "bash"]).stdout);
    let ask =
        "COMP_WORDS=(hapax che); COMP_CWORD=1; _hapax hapax che hapax; echo \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    let mut bash = bash.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    write!(bash.stdin.take().unwrap(), "{script}\n{ask}\n").unwrap();
    let output = bash.wait_with_output().unwrap();
    assert_eq!(text(&output.stdout), "check-config\n");
}
