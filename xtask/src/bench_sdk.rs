//! `cargo xtask bench sdk`: what each package costs beside the SQL functions called by hand.

use std::{fmt, fs, path::Path, process::Command};

use hapax_services::roster::Service;
use serde::Deserialize;

use crate::{
    TaskFailure,
    ci::{cargo, succeed, with_services},
};

/// In the order of their first release.
const SDKS: [&str; 4] = ["python", "node", "go", "java"];

/// What a package may cost, as a share of what the functions take by hand.
const RATIO_MAX: f64 = 1.05;

/// What a package says of one of its drivers, on a line of its own.
#[derive(Debug, Deserialize)]
struct Figure {
    driver: String,
    hand_us: f64,
    once_us: f64,
    ratio: f64,
}

/// Runs the benchmarks of these packages in turn, or of all, on one PostgreSQL, and prints one table.
pub(crate) fn run(root: &Path, sdks: &[String]) -> Result<(), TaskFailure> {
    if let Some(unknown) = sdks.iter().find(|name| !SDKS.contains(&name.as_str())) {
        return Err(TaskFailure::new(format!(
            "no package is called {unknown}: {}",
            SDKS.join(", ")
        )));
    }
    cargo(root, &["build", "--locked", "--package", "hapax-cli"])?;
    with_services(root, &[Service::Postgres], || {
        let wanted = |name: &&str| sdks.is_empty() || sdks.iter().any(|sdk| sdk == name);
        let mut rows = Vec::new();
        for sdk in SDKS.into_iter().filter(wanted) {
            println!("measuring {sdk}: {}", load());
            for figure in measure(root, sdk)? {
                rows.push(Row { sdk, figure });
            }
        }
        println!("\nat the end: {}\n\n{}", load(), Table(rows));
        Ok(())
    })
}

fn measure(root: &Path, sdk: &str) -> Result<Vec<Figure>, TaskFailure> {
    let folder = root.join("sdk").join(sdk);
    let program = |name: &str| {
        let mut command = Command::new(folder.join(name));
        command.current_dir(&folder);
        command
    };
    succeed(&mut program("install"))?;
    let output = program("bench").output();
    let output = output.map_err(|error| TaskFailure::new(format!("{sdk}/bench: {error}")))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let figures: Result<Vec<_>, _> =
        said.lines().filter(|line| line.starts_with('{')).map(serde_json::from_str).collect();
    match figures {
        Ok(figures) if output.status.success() && !figures.is_empty() => Ok(figures),
        Ok(_) | Err(_) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(TaskFailure::new(format!("{sdk}/bench measured nothing: {said}{errors}")))
        }
    }
}

struct Row {
    sdk: &'static str,
    figure: Figure,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure { driver, hand_us, once_us, ratio } = &self.figure;
        let met = if *ratio <= RATIO_MAX { "met" } else { "not met" };
        write!(f, "| {} | {driver} | {hand_us:.0} | {once_us:.0} | {ratio:.3} | {met} |", self.sdk)
    }
}

/// The rows as a table of Markdown.
struct Table(Vec<Row>);

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = format!("at most {RATIO_MAX}");
        writeln!(f, "| Package | Driver | by hand, us | `once`, us | ratio | {most} |")?;
        writeln!(f, "| --- | --- | --- | --- | --- | --- |")?;
        self.0.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

/// How much else the machine does: a ratio of a few hundredths needs it idle.
fn load() -> String {
    let averages = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let minute = averages.split(' ').next().unwrap_or_default();
    format!("load average {minute}")
}
