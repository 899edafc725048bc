//! `knee completions`: what a shell completes.

use crate::failure::{Exit, Failure};
use crate::stdout;
use clap::{Args, Command};
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

/// Writes the script for knee.
pub fn execute(raw: &RawCompletions, knee: &Command) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    let mut knee = without_hidden(knee);
    clap_complete::generate(raw.shell, &mut knee, "knee", &mut script);
    stdout::write(|out| out.write_all(&script))?;
    Ok(Exit::Fine)
}

/// The same command without what is not meant to be typed: completions take all that there is.
fn without_hidden(command: &Command) -> Command {
    let arguments = command.get_arguments().filter(|a| !a.is_hide_set());
    let parts = command.get_subcommands().filter(|part| !part.is_hide_set());
    // Names of commands are static for clap; this one runs once.
    let name: &'static str = command.get_name().to_string().leak();
    let mut visible = Command::new(name)
        .version(env!("CARGO_PKG_VERSION"))
        .args(arguments)
        .subcommands(parts.map(without_hidden));
    if let Some(about) = command.get_about() {
        visible = visible.about(about.clone());
    }
    visible
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::raw::RawArgs;
    use clap::CommandFactory;

    fn hidden(command: &Command, path: &str, found: &mut Vec<String>) {
        for part in command.get_subcommands() {
            let path = format!("{path} {}", part.get_name());
            if part.is_hide_set() {
                found.push(part.get_name().to_string());
            }
            hidden(part, &path, found);
        }
    }

    #[test]
    fn scripts_have_what_can_be_typed_and_nothing_internal() {
        let mut internal = Vec::new();
        hidden(&RawArgs::command(), "knee", &mut internal);
        assert!(!internal.is_empty(), "there is something to leave out");
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let mut script = Vec::new();
            let mut knee = without_hidden(&RawArgs::command());
            clap_complete::generate(shell, &mut knee, "knee", &mut script);
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("fail-if") && script.contains("sweep"), "{shell}");
            for name in &internal {
                assert!(!script.contains(name.as_str()), "{shell}: {name}");
            }
        }
        // `knee overload` has no keep-alive to switch off, and does not offer it.
        let command = without_hidden(&RawArgs::command());
        let overload = command.find_subcommand("overload").unwrap();
        assert!(overload.get_arguments().all(|a| a.get_id() != "no_keepalive"));
    }
}
