//! What describes the program to others: `knee completions`, what a shell completes, `knee man`, the
//! manual pages, and `knee option-schemas`, for programs that start knee.

use crate::failure::{Exit, Failure};
use crate::{stdio, whole_file};
use clap::{Arg, ArgAction, Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::{fs, io};

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
pub fn write_completions(raw: &RawCompletions, knee: &Command) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    let mut knee = without_hidden(knee);
    clap_complete::generate(raw.shell, &mut knee, "knee", &mut script);
    stdio::write(|out| out.write_all(&script))?;
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

/// Writes a JSON object: for each command, the JSON Schemas of its options by their names.
pub fn write_option_schemas(knee: &Command) -> Result<Exit, Failure> {
    let of_command = |command: &Command| {
        let options = command.get_arguments().filter(|option| !option.is_hide_set());
        let options = options.filter_map(|o| Some((o.get_long()?.to_owned(), option_schema(o))));
        (command.get_name().to_owned(), options.collect::<Map<_, _>>().into())
    };
    let commands = Value::from(knee.get_subcommands().map(of_command).collect::<Map<_, _>>());
    stdio::write(|out| writeln!(out, "{commands}"))?;
    Ok(Exit::Fine)
}

/// Longest help of an option that is printed as a whole, in bytes. Of a longer one only the first
/// paragraph is printed.
const DESCRIPTION_BYTES: usize = 500;

/// The JSON Schema of an option's values.
fn option_schema(option: &Arg) -> Value {
    let long = option.get_long_help().map(ToString::to_string);
    let long = long.filter(|text| text.len() <= DESCRIPTION_BYTES);
    let help = long.or_else(|| option.get_help().map(ToString::to_string)).unwrap_or_default();
    let mut description = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let default: Vec<String> =
        option.get_default_values().iter().map(|v| v.to_string_lossy().into_owned()).collect();
    if option.get_action().takes_values() && !default.is_empty() {
        description.push_str(&format!(" [default: {}]", default.join(", ")));
    }
    let is_number = option.get_value_names().is_some_and(|names| names.iter().any(|n| n == "N"));
    let one = if is_number { "number" } else { "string" };
    let mut schema = match option.get_action() {
        ArgAction::SetTrue => json!({ "type": "boolean" }),
        ArgAction::Append => json!({ "type": "array", "items": { "type": one } }),
        _ => json!({ "type": one }),
    };
    schema["description"] = description.into();
    schema
}

/// Write a manual page, or all of them
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  \
    knee man | man -l -\n  \
    knee man serve http | man -l -\n  \
    knee man --dir ~/.local/share/man/man1")]
pub struct RawMan {
    /// The command whose page it is; none: knee itself
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,

    /// Write the pages of all commands there, as knee.1, knee-run.1, …
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

/// Writes the page, or the pages, of knee.
pub fn write_manual(raw: &RawMan, knee: Command) -> Result<Exit, Failure> {
    let pages = pages(knee);
    match &raw.dir {
        Some(dir) => write_all(&pages, dir)?,
        None => {
            let wanted = ["knee".to_string()].into_iter().chain(raw.command.clone());
            let wanted = wanted.collect::<Vec<_>>().join("-");
            let page = pages.iter().find(|page| name(page) == wanted);
            let page = page.ok_or_else(|| {
                let names: Vec<&str> = pages.iter().skip(1).map(name).collect();
                let names = names.join(", ").replace("knee-", "").replace('-', " ");
                let given = raw.command.join(" ");
                Failure::argument("COMMAND", format!("'{given}' is none; there are {names}"))
            })?;
            let page = rendered(page);
            stdio::write(|out| out.write_all(&page))?;
        }
    }
    Ok(Exit::Fine)
}

fn write_all(pages: &[Command], dir: &Path) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        fs::create_dir_all(dir)?;
        for page in pages {
            whole_file::replace(&dir.join(format!("{}.1", name(page))), &rendered(page))?;
        }
        Ok(())
    };
    write().map_err(|e| {
        let dir = dir.display();
        Failure::argument("--dir", format!("'{dir}' cannot be written: {e}"))
    })
}

/// knee and every command that is not hidden.
fn pages(knee: Command) -> Vec<Command> {
    let mut knee = with_all_options(knee);
    // Gives each command the name that its page has: knee-serve-http.
    knee.build();
    let mut pages = Vec::new();
    collect(&knee, &mut pages);
    pages
}

/// The same with every option described, also those that `-h` leaves out.
fn with_all_options(command: Command) -> Command {
    command.mut_args(|argument| argument.hide_short_help(false)).mut_subcommands(with_all_options)
}

fn collect(command: &Command, pages: &mut Vec<Command>) {
    pages.push(command.clone());
    let has_page = |part: &&Command| !part.is_hide_set() && part.get_name() != "help";
    for part in command.get_subcommands().filter(has_page) {
        collect(part, pages);
    }
}

fn name(page: &Command) -> &str {
    page.get_display_name().unwrap_or_else(|| page.get_name())
}

fn rendered(page: &Command) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing to memory does not fail.
    let _ = Man::new(page.clone()).render(&mut bytes);
    bytes
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

    /// A command as it is defined, by the name of its page.
    fn defined(page: &str) -> Command {
        let parts = page.split('-').skip(1);
        parts.fold(RawArgs::command(), |command, part| {
            command.find_subcommand(part).unwrap().clone()
        })
    }

    #[test]
    fn every_command_has_a_page_that_describes_its_options() {
        let pages = pages(RawArgs::command());
        let names: Vec<&str> = pages.iter().map(name).collect();
        for wanted in ["knee", "knee-run", "knee-serve-http", "knee-analyze-sweep"] {
            assert!(names.contains(&wanted), "{names:?}");
        }
        assert!(!names.contains(&"knee-udp-client"), "it is hidden");
        for page in &pages {
            let text = String::from_utf8(rendered(page)).unwrap();
            assert!(text.contains(".TH"), "{}", name(page));
            let command = defined(name(page));
            let options = command.get_arguments().filter(|a| !a.is_hide_set());
            for option in options.filter_map(|a| a.get_long()) {
                let long = option.replace('-', "\\-");
                let name_of = format!("\\fB\\-\\-{long}\\fR");
                // Not in the synopsis, which has them all in a line.
                let is_header = |line: &str| line.contains(&name_of) && !line.contains("\\fBknee");
                let header = text.lines().position(is_header);
                let header = header.unwrap_or_else(|| panic!("--{long} of {}", name(page)));
                let help = text.lines().nth(header + 1).unwrap();
                assert!(help.len() > 10, "--{long} of {}: {help:?}", name(page));
            }
        }
    }
}
