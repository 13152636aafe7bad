//! Commands that users give, run by the shell within a bounded time.

use std::{
    fs::File,
    io::{self, Read},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tempfile::NamedTempFile;
use tokio::process::Command;

/// Most of what a command prints that is read.
const PRINTED_BYTES_MAX: u64 = 64 * 1024;
/// Most of it that is quoted in a sentence.
const QUOTED_CHARS_MAX: usize = 300;

/// Runs a command, and returns what it printed; why it failed, in words, if it did.
///
/// It prints into files: who starts a server would otherwise wait for the server's end, and the server would lose
/// whom it prints to.
pub(crate) async fn run_in_shell(command: &str, patience: Duration) -> Result<String, String> {
    let broken = |error: io::Error| format!("`{command}` could not be run: {error}");
    let (out, err) = (NamedTempFile::new().map_err(broken)?, NamedTempFile::new().map_err(broken)?);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).kill_on_drop(true).stdin(Stdio::null());
    shell.stdout(out.reopen().map_err(broken)?).stderr(err.reopen().map_err(broken)?);
    // Ctrl-C ends the examination, and not the server that it has started.
    #[cfg(unix)]
    shell.process_group(0);
    let mut child = shell.spawn().map_err(broken)?;
    match tokio::time::timeout(patience, child.wait()).await {
        Ok(Ok(status)) if status.success() => printed(&out).map_err(broken),
        Ok(Ok(status)) => Err(format!("`{command}` {}{}", ended(status), quoted(&err, &out))),
        Ok(Err(error)) => Err(broken(error)),
        Err(_) => Err(format!(
            "`{command}` did not end within {} s (what goes on must be put in the background){}",
            patience.as_secs_f32(),
            quoted(&err, &out)
        )),
    }
}

fn ended(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("ended with {code}"),
        None => format!("was ended by others ({status})"),
    }
}

/// What it said of its failure: on stderr, or else on stdout.
fn quoted(err: &NamedTempFile, out: &NamedTempFile) -> String {
    let said = [err, out].into_iter().filter_map(|file| printed(file).ok());
    match said.map(|text| excerpt(&text)).find(|text| !text.is_empty()) {
        Some(text) => format!(": {text}"),
        None => ", and printed nothing".to_owned(),
    }
}

fn printed(file: &NamedTempFile) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(file.path())?.take(PRINTED_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// As much of a text as a sentence can quote, in one line.
pub(crate) fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
