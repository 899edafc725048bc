//! Standard output and standard error: what is written there, and what their terminal can show.

use crate::failure::{Failure, of_command_line};
use crate::whole_file::{OutputPlace, sync};
use knee_load::secrets::Secrets;
use knee_load::time::Nanos;
use std::env;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::LazyLock;
use terminal_size::{Height, Width, terminal_size_of};

/// Writes to standard output and flushes it. A reader that went away is no error.
pub fn write(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = content(&mut out).and_then(|()| out.flush());
    outcome(written.and_then(|()| end()))
}

/// Writes to the file that `option` names; without a name, or to `-`, as [`write()`] does.
pub fn write_to(
    option: &'static str,
    path: Option<&str>,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    match path {
        None | Some("-") => write(content),
        Some(path) => OutputPlace::open(option, path)?.write(content),
    }
}

/// What became of standard output: a reader or a terminal that went away is no error.
pub fn outcome(written: io::Result<()>) -> Result<(), Failure> {
    let is_gone = |e: &io::Error| {
        e.kind() == io::ErrorKind::BrokenPipe || knee_engine::interrupt::is_hang_up(e)
    };
    match written {
        Err(e) if !is_gone(&e) => {
            Err(Failure::input(format!("standard output could not be written: {e}")))
        }
        _ => Ok(()),
    }
}

/// Makes sure that all of it is where it belongs.
fn end() -> io::Result<()> {
    sync(&File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Says a line on standard error, without the secrets of the command line.
pub fn say(line: &str) {
    static SECRETS: LazyLock<Secrets> = LazyLock::new(of_command_line);
    // Nobody to tell where standard error is closed.
    let _ = writeln!(io::stderr(), "{}", SECRETS.hide(line));
}

/// Says things on standard error, unless `--quiet`.
#[derive(Clone, Copy, Debug)]
pub struct Notes {
    /// Whether they go nowhere.
    pub quiet: bool,
}

impl Notes {
    /// Says a line.
    pub fn say(self, line: &str) {
        if !self.quiet {
            say(line);
        }
    }
}

/// A length of time as people say it: `0.2 s`, `65 s`, `3.5 min`.
pub fn about(time: Nanos) -> String {
    match time.as_secs_f64() {
        s if s < 10.0 => format!("{} s", (s * 10.0).ceil() / 10.0),
        s if s < 100.0 => format!("{s:.0} s"),
        s => format!("{:.1} min", s / 60.0),
    }
}

/// Default number of columns.
const WIDTH: usize = 80;

/// Fewest columns for the live view.
const VIEW_COLUMNS_MIN: u16 = 40;
/// Fewest rows for the live view.
const VIEW_ROWS_MIN: u16 = 12;

/// Columns of standard output; where it is no terminal what COLUMNS says, or else [`WIDTH`].
pub fn stdout_width() -> usize {
    let asked = || env::var("COLUMNS").ok()?.parse().ok().filter(|n| *n > 0);
    let size = terminal_size_of(io::stdout()).map(|(Width(columns), _)| usize::from(columns));
    size.or_else(asked).unwrap_or(WIDTH)
}

/// Columns of standard error.
pub fn stderr_width() -> usize {
    stderr_size().map_or(WIDTH, |(columns, _)| usize::from(columns))
}

/// Whether standard output is a terminal.
pub fn is_stdout() -> bool {
    io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
pub fn is_stderr() -> bool {
    io::stderr().is_terminal()
}

/// Columns and rows of standard error, where it is a terminal that knows them.
pub fn stderr_size() -> Option<(u16, u16)> {
    terminal_size_of(io::stderr()).map(|(Width(columns), Height(rows))| (columns, rows))
}

/// Whether standard error is a terminal that may be drawn on and that the live view fits on. The
/// terminal of a background process is not, nor is one that only writes lines.
pub fn can_show_view() -> bool {
    let is_dumb = env::var_os("TERM").is_none_or(|t| t.is_empty() || t == "dumb");
    let fits = |(columns, rows)| columns >= VIEW_COLUMNS_MIN && rows >= VIEW_ROWS_MIN;
    !is_dumb && stderr_size().is_some_and(fits) && knee_engine::sys::terminal::is_foreground()
}

/// Whether the user wants no colour anywhere (no-color.org).
pub fn refuses_color() -> bool {
    env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
}

/// Whether standard output may be coloured: on a terminal, unless NO_COLOR is set.
pub fn colors_stdout() -> bool {
    is_stdout() && !refuses_color()
}

/// Whether characters beyond ASCII may be used: unless the locale says otherwise.
pub fn is_unicode() -> bool {
    let set = |name: &str| env::var(name).ok().filter(|v| !v.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    locale.is_none_or(|locale| speaks_utf8(&locale))
}

fn speaks_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::speaks_utf8;

    #[test]
    fn the_locale_tells_the_encoding() {
        for (locale, expected) in [
            ("C.UTF-8", true),
            ("de_DE.utf8", true),
            ("C", false),
            ("POSIX", false),
            ("de_DE.ISO-8859-1", false),
        ] {
            assert_eq!(speaks_utf8(locale), expected, "{locale}");
        }
    }
}
