//! A command of a shell.

use super::is_curl;

/// A command of a text, or what a pipe or a redirection adds to the command before it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ShellCommand {
    pub(super) words: Vec<String>,
    /// Variables and commands of a POSIX shell within the words, as they are written.
    pub(super) substitutions: Vec<String>,
    /// How it is written, with the operator before it.
    pub(super) text: String,
    /// Whether a pipe, a redirection or `||` stands before it.
    pub(super) is_joined: bool,
}

impl ShellCommand {
    /// Whether it runs curl by itself.
    pub(super) fn runs_curl(&self) -> bool {
        !self.is_joined && self.words.first().is_some_and(|word| is_curl(word))
    }
}
