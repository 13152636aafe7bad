//! Who else has the file open.

use std::path::Path;

use super::Diagnosis;

/// Names at most this many.
const NAMED_MAX: usize = 5;

pub(super) fn examine(path: &Path) -> Diagnosis {
    users(&open_by(path))
}

fn users(users: &[String]) -> Diagnosis {
    const NAME: &str = "open files";
    match users {
        [] => Diagnosis::new(NAME, "no process this user can see has the file open"),
        [only] => Diagnosis::new(NAME, format!("open in {only}")),
        several => {
            let named = several.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
            Diagnosis::new(NAME, format!("open in {} processes: {named}", several.len())).note(
                "processes share the file safely and wait for each other's commits; one that holds it for long makes the others refuse with 503",
                "where several gateways share keys, PostgreSQL is made for it",
            )
        }
    }
}

/// Processes that have the file open, as far as this user may look.
#[cfg(target_os = "linux")]
fn open_by(path: &Path) -> Vec<String> {
    let Ok(wanted) = path.canonicalize() else { return Vec::new() };
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let own = std::process::id().to_string();
    let mut users = Vec::new();
    for process in processes.filter_map(Result::ok) {
        let name = process.file_name();
        let Some(pid) = name.to_str().filter(|pid| pid.parse::<u32>().is_ok() && *pid != own)
        else {
            continue;
        };
        let files = std::fs::read_dir(process.path().join("fd")).into_iter().flatten();
        let mut files = files.filter_map(Result::ok);
        if files.any(|file| std::fs::read_link(file.path()).is_ok_and(|file| file == wanted)) {
            let command = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            users.push(format!("{} (pid {pid})", command.trim()));
        }
    }
    users.sort();
    users
}

#[cfg(not(target_os = "linux"))]
fn open_by(_: &Path) -> Vec<String> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_processes_are_named() {
        let named: Vec<_> = (1..=7).map(|pid| format!("hapax (pid {pid})")).collect();
        assert_eq!(users(&named[..1]).concern, None);
        let told = users(&named);
        assert!(told.found.starts_with("open in 7 processes: hapax (pid 1)"), "{}", told.found);
        assert!(!told.found.contains("pid 6"), "{}", told.found);
    }
}
