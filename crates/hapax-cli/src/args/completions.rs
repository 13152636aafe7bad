//! `hapax completions`.

use clap::Args;
use clap_complete::Shell;

/// Print what a shell needs to complete commands and flags of hapax.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hapax completions bash > ~/.local/share/bash-completion/completions/hapax
  hapax completions zsh > ~/.zfunc/_hapax
  hapax completions fish > ~/.config/fish/completions/hapax.fish
  hapax completions powershell >> $PROFILE")]
pub(crate) struct CompletionsArgs {
    /// Which shell.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}
