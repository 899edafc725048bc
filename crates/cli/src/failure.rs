//! How the command ends: exit codes and the one line that says what went wrong, without secrets.

use knee_load::secrets::Secrets;
use knee_load::shown::shown;
use std::fmt;
use std::process::ExitCode;

/// The exit codes, as `--help` documents them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Measured, valid, within the thresholds.
    Fine,
    /// A threshold was crossed, or not one operation succeeded.
    Failed,
    /// Bad arguments or input.
    BadInput,
    /// Measured, but the generator distorted the result.
    Invalid,
    /// The target could not be reached, or nothing was measured.
    NothingMeasured,
    /// Ended by this signal, after the report of what was measured.
    Signal(u8),
}

impl Exit {
    /// Its number.
    pub fn number(self) -> u8 {
        match self {
            Exit::Fine => 0,
            Exit::Failed => 1,
            Exit::BadInput => 2,
            Exit::Invalid => 3,
            Exit::NothingMeasured => 4,
            Exit::Signal(signal) => 128 + signal,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.number())
    }
}

/// Why a command could not do what it was asked for: one line for standard error.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the process ends with.
    pub exit: Exit,
    /// What is wrong and what would be right.
    pub line: String,
}

impl Failure {
    /// An argument or its value is wrong: `argument` as typed (`--rate`), then what is wrong.
    pub fn argument(argument: &str, wrong: impl fmt::Display) -> Failure {
        Failure::input(format!("{argument}: {wrong}"))
    }

    /// Input is wrong; the line names it.
    pub fn input(line: impl Into<String>) -> Failure {
        Failure { exit: Exit::BadInput, line: line.into() }
    }

    /// The same without secrets in its line.
    pub fn without_secrets(self, secrets: &Secrets) -> Failure {
        Failure { line: secrets.hide(&self.line).into_owned(), ..self }
    }

    /// Nothing could be measured, for this reason.
    pub fn nothing_measured(line: impl Into<String>) -> Failure {
        Failure { exit: Exit::NothingMeasured, line: line.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A line may quote a file or another host.
        write!(f, "error: {}", shown(&self.line))
    }
}

/// The rule that the command line asks for, with the secrets that it has.
pub fn of_command_line() -> Secrets {
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    Secrets::of_command_line(&words)
}

/// The same with the secrets of a file's lines, for what is wrong with the file.
pub fn of_command_line_and(file: &str) -> Secrets {
    let mut secrets = of_command_line();
    secrets.learn_lines(file);
    secrets
}
