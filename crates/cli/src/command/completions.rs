//! `knee completions`: what a shell completes.

use crate::failure::{Exit, Failure};
use crate::raw::RawArgs;
use crate::stdout;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Write a completion script for a shell
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  \
    knee completions bash > ~/.local/share/bash-completion/completions/knee\n  \
    knee completions zsh > ~/.zfunc/_knee\n  \
    knee completions fish > ~/.config/fish/completions/knee.fish")]
pub struct RawCompletions {
    /// The shell: bash, zsh, fish, elvish, powershell
    #[arg(value_name = "SHELL", hide_possible_values = true)]
    shell: Shell,
}

/// Writes the script.
pub fn execute(raw: &RawCompletions) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(raw.shell, &mut RawArgs::command(), "knee", &mut script);
    stdout::write(|out| out.write_all(&script))?;
    Ok(Exit::Fine)
}
