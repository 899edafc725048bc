//! `knee man`: the manual pages.

use crate::failure::{Exit, Failure};
use crate::{stdout, whole_file};
use clap::{Args, Command};
use clap_mangen::Man;
use std::path::{Path, PathBuf};
use std::{fs, io};

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
pub fn execute(raw: &RawMan, knee: Command) -> Result<Exit, Failure> {
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
            stdout::write(|out| out.write_all(&page))?;
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
    let mut knee = told_in_full(knee);
    // Gives each command the name that its page has: knee-serve-http.
    knee.build();
    let mut pages = Vec::new();
    collect(&knee, &mut pages);
    pages
}

/// The same with every option described, also those that `-h` leaves out.
fn told_in_full(command: Command) -> Command {
    command.mut_args(|argument| argument.hide_short_help(false)).mut_subcommands(told_in_full)
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
