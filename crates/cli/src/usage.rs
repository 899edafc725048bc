//! What clap objects to, in one line.

use crate::near::{command_meant, meant};
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;

/// The objection in one line without `error:`: which argument, what is wrong, what would be right
/// for this command.
pub fn one_line(error: &clap::Error, command: &Command) -> String {
    let argument = option_name(&text(error, ContextKind::InvalidArg));
    let value = text(error, ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::ValueValidation => match error.source() {
            Some(reason) => format!("{argument}: {reason}"),
            None => format!("{argument}: '{value}' is not a valid value"),
        },
        ErrorKind::InvalidValue if value.is_empty() => format!("{argument}: a value is missing"),
        ErrorKind::InvalidValue => {
            let right = text(error, ContextKind::ValidValue);
            format!("{argument}: '{value}' is not one of {right}")
        }
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            format!("{argument}: unknown{}", suggestion(error, meant(command, &argument)))
        }
        ErrorKind::UnknownArgument => format!("'{argument}': one argument too many"),
        ErrorKind::TooManyValues => format!("{argument}: takes no value, but '{value}' was given"),
        ErrorKind::InvalidSubcommand => {
            let name = text(error, ContextKind::InvalidSubcommand);
            let meant = command_meant(command, &name);
            format!("{name}: unknown command{}", suggestion(error, meant))
        }
        ErrorKind::MissingSubcommand => {
            let commands = text(error, ContextKind::ValidSubcommand);
            format!("a command is missing: {commands}")
        }
        ErrorKind::MissingRequiredArgument => format!("{argument}: is missing"),
        ErrorKind::ArgumentConflict => {
            let other = option_name(&text(error, ContextKind::PriorArg));
            if other == argument {
                return format!("{argument}: given more than once");
            }
            format!("{argument} and {other} exclude each other: leave one out")
        }
        _ => first_line(error),
    }
}

/// `--rate <N>` without its value's name; a positional's name without its brackets.
fn option_name(argument: &str) -> String {
    let name = argument.split([' ', '=']).next().unwrap_or_default();
    let within = |open, close| name.strip_prefix(open)?.strip_suffix(close);
    within('<', '>').or(within('[', ']')).unwrap_or(name).to_string()
}

/// What is meant goes before what is only spelt alike.
fn suggestion(error: &clap::Error, meant: Option<String>) -> String {
    if let Some(meant) = meant {
        return format!("; did you mean {meant}?");
    }
    let suggested = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand]
        .map(|kind| text(error, kind))
        .concat();
    match suggested.as_str() {
        "" => "; --help lists what there is".to_string(),
        like => format!("; did you mean {}?", option_name(like)),
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(one)) => one.clone(),
        Some(ContextValue::Strings(several)) => several.join(", "),
        Some(ContextValue::Number(n)) => n.to_string(),
        _ => String::new(),
    }
}

fn first_line(error: &clap::Error) -> String {
    let message = error.render().to_string();
    let line = message.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_string()
}
