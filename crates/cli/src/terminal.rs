//! What the terminal can show.

use std::env;
use std::io::{self, IsTerminal};
use terminal_size::{Width, terminal_size_of};

/// Columns where nothing tells how many there are.
const WIDTH: usize = 100;

/// Columns of standard output; [`WIDTH`] where it is no terminal.
pub fn stdout_width() -> usize {
    width(terminal_size_of(io::stdout()))
}

/// Columns of standard error.
pub fn stderr_width() -> usize {
    width(terminal_size_of(io::stderr()))
}

/// Whether standard error is a terminal.
pub fn is_stderr() -> bool {
    io::stderr().is_terminal()
}

/// Whether standard output may be coloured: on a terminal, unless NO_COLOR is set (no-color.org).
pub fn colors_stdout() -> bool {
    let refused = env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    io::stdout().is_terminal() && !refused
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

fn width(size: Option<(Width, terminal_size::Height)>) -> usize {
    size.map_or(WIDTH, |(Width(columns), _)| usize::from(columns))
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
