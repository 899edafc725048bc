//! What clap objects to, in one line. Options of other load generators (wrk, ab, hey, oha, vegeta,
//! k6, h2load, curl, iperf) lead to those that knee has.

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

/// The first line of what clap prints, without `error:`.
pub fn first_line(error: &clap::Error) -> String {
    let message = error.render().to_string();
    let line = message.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_string()
}

/// Options of other programs, and those of knee's that mean the same, the best first.
const OPTIONS: &[(&str, &str)] = &[
    ("--data --data-raw --data-binary --payload --body-file --postfile", "--body --size"),
    (
        "--concurrency --concurrent --clients --conns --workers --parallel",
        "--connections --clients --vusers --simple --scenarios",
    ),
    ("--qps --rps --query-per-second --rate-limit --throughput --tps", "--rate --rates"),
    ("--users --vus --virtual-users --virtual-clients", "--vusers --simple --clients"),
    ("--output --out -o --summary-export --format --report-json", "--json"),
    ("--report --web --dashboard", "--html"),
    ("--duration-seconds --time --timelimit --time-limit --seconds -z", "--duration"),
    ("--number --num --iterations --num-requests --count --total", "--requests --datagrams"),
    ("--warm-up --warm-up-time --ramp-up --rampup", "--warmup"),
    ("--stages --distribution --pattern --pacing", "--arrival"),
    ("--request --verb -X", "--method"),
    ("--headers", "--header"),
    ("--mime --type --mime-type", "--content-type"),
    ("--disable-keepalive --no-keep-alive --close", "--no-keepalive"),
    ("--max-workers --cores --cpus --nthreads", "--threads"),
    (
        "--threshold --thresholds --fail --fail-on --max-error-rate",
        "--fail-if --fail-on-regression",
    ),
    ("--sleep --pause --delay --think-time", "--think --delays"),
    ("--unix --socket", "--unix-socket"),
    ("--silent --no-progress -s -q", "--quiet"),
    ("--disable-color --no-colors --no-colour", "--no-color"),
    ("--connect-to --bind --local-address", "--source --listen"),
];

/// Commands of other programs, and knee's.
const COMMANDS: &[(&str, &str)] = &[
    ("attack bench benchmark load http get", "run"),
    ("ramp scan explore find", "sweep"),
    ("stress flood", "overload"),
    ("ping iperf rrul bufferbloat", "latency"),
    ("diff cmp", "compare"),
    ("list ls log runs", "history"),
];

fn has_word(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

/// The option of this command that means what `typed` means elsewhere, if it has one.
pub fn meant(command: &Command, typed: &str) -> Option<String> {
    let (_, ours) = OPTIONS.iter().find(|(theirs, _)| has_word(theirs, typed))?;
    let has = |option: &&str| {
        let name = option.trim_start_matches('-');
        let mut all = command.get_arguments();
        all.any(|a| a.get_long() == Some(name) && !a.is_hide_set())
    };
    ours.split(' ').find(has).map(ToString::to_string)
}

/// The command that is meant, if there is one.
fn command_meant(command: &Command, typed: &str) -> Option<String> {
    let (_, ours) = COMMANDS.iter().find(|(theirs, _)| has_word(theirs, typed))?;
    command.find_subcommand(ours).is_some().then(|| ours.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::raw::RawArgs;
    use clap::CommandFactory;

    #[test]
    fn what_others_say_is_understood_where_the_command_has_it() {
        let knee = RawArgs::command();
        for (command, typed, expected) in [
            ("run", "--concurrency", Some("--connections")),
            ("run", "--qps", Some("--rate")),
            ("run", "--users", Some("--vusers")),
            ("run", "--output", Some("--json")),
            ("run", "--duration-seconds", Some("--duration")),
            ("overload", "--users", Some("--simple")),
            ("overload", "--disable-keepalive", None),
            ("udp", "--iterations", Some("--datagrams")),
            ("udp", "--headers", None),
            ("run", "--nonsense", None),
        ] {
            let command = knee.find_subcommand(command).unwrap();
            assert_eq!(meant(command, typed).as_deref(), expected, "{typed}");
        }
        assert_eq!(command_meant(&knee, "attack").as_deref(), Some("run"));
        assert_eq!(command_meant(&knee, "juggle"), None);
    }

    /// A name that no command has is of no use, and one that knee has is no other's.
    #[test]
    fn the_table_leads_somewhere() {
        let knee = RawArgs::command();
        let has = |option: &str| {
            let name = option.trim_start_matches('-');
            let mut commands = knee.get_subcommands();
            commands.any(|c| c.get_arguments().any(|a| a.get_long() == Some(name)))
        };
        for (theirs, ours) in OPTIONS {
            assert!(ours.split(' ').all(has), "{ours:?}");
            assert!(!theirs.is_empty());
        }
    }
}
