//! `hapax demo`.

use clap::{Args, value_parser};

/// See what retries do to a payments API, without Hapax and with it, in a few seconds.
///
/// Starts the same careless payments API twice on this machine, one of them behind the gateway.
/// The same customers pay at both: answers come late or not at all, clients give up, die and try
/// again, and the gateway is killed again and again. The APIs' ledgers tell who was charged twice.
/// Nothing is left behind: everything lives in a temporary directory (TMPDIR moves it).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hapax demo
  hapax demo --keep                    and then try it yourself with curl and a browser
  hapax demo --payments 200 --seed 7   another bad day, and a longer one

Exit status: 0 when every payment behind the gateway was charged exactly once, otherwise 1.")]
pub(crate) struct DemoArgs {
    /// Leave the API and the gateway running until Ctrl-C, with a page and commands to try.
    #[arg(long)]
    pub(crate) keep: bool,
    /// What goes wrong, and when: the same seed is the same bad day.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How many payments are wanted.
    #[arg(long, value_name = "N", default_value_t = 60)]
    #[arg(value_parser = value_parser!(u16).range(1..=1000))]
    pub(crate) payments: u16,
}
