//! What clap objects to, in one line. Options of other load generators (wrk, ab, hey, oha, vegeta,
//! k6, h2load, curl, iperf) lead to those that knee has.

use crate::input;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use knee_load::spec::{Url, parse_duration};
use std::error::Error as _;
use std::ffi::OsString;

/// Commands that take a line of curl behind `--`.
pub const TAKE_CURL: [&str; 3] = ["run", "sweep", "overload"];

/// What is wrong with a command line that is typed as another program takes it, or as if it were
/// for `knee run`. `argv`: the program's name first.
pub fn typed_as_elsewhere(knee: &Command, argv: &[OsString]) -> Option<String> {
    let words: Vec<&str> = argv.iter().filter_map(|word| word.to_str()).collect();
    let (&first, rest) = words.get(1..)?.split_first()?;
    let Some(command) = knee.find_subcommand(first) else {
        let run = knee.find_subcommand("run")?;
        let dashed = first.split('=').next().unwrap_or_default();
        let is_of_run = first.starts_with('-')
            && !knee.get_arguments().any(|a| is_called(a, dashed))
            && (run.get_arguments().any(|a| is_called(a, dashed)) || meant(run, dashed).is_some());
        let is_target = first.contains("://") || input::is_scenario(first);
        return if is_of_run {
            Some(format!("{first}: goes behind a command: knee run {first} …"))
        } else if is_target || (first.contains(['.', ':', '/']) && Url::parse(first).is_ok()) {
            Some(format!("{first}: unknown command; did you mean knee run {first}?"))
        } else {
            None
        };
    };
    if rest.first() == Some(&"curl") && TAKE_CURL.contains(&first) {
        return Some(format!(
            "curl: a command line of curl goes behind '--': knee {first} -- curl …"
        ));
    }
    let names_url = rest.iter().any(|word| word.contains("://"));
    if first == "compare" && names_url && !rest.contains(&"--live") {
        return Some(
            "compare: two URLs are compared under load with --live: knee compare --live A B".into(),
        );
    }
    let options = rest.iter().take_while(|word| **word != "--");
    let mut names = options.filter_map(|word| word.strip_prefix('-')?.split('=').next());
    let long = names.find(|name| {
        let dashed = format!("--{name}");
        let is_known = || command.get_arguments().any(|a| is_called(a, &dashed));
        name.len() > 2
            && !name.starts_with('-')
            && (is_known() || meant(command, &dashed).is_some())
    })?;
    let dashed = format!("--{long}");
    let right = meant(command, &dashed).unwrap_or(dashed);
    Some(format!("-{long}: names of more than one letter have two dashes: {right}"))
}

/// Whether an option is called so, dashes included.
fn is_called(argument: &Arg, dashed: &str) -> bool {
    match dashed.strip_prefix("--") {
        Some(long) => {
            argument.get_long_and_visible_aliases().is_some_and(|all| all.contains(&long))
        }
        None => dashed.chars().nth(1).is_some_and(|c| argument.get_short() == Some(c)),
    }
}

/// The objection in one line without `error:`: which argument, what is wrong, what would be right
/// for this command. `argv`: the command line, the program's name first.
pub fn one_line(error: &clap::Error, command: &Command, argv: &[OsString]) -> String {
    let argument = option_name(&text(error, ContextKind::InvalidArg));
    let value = text(error, ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::ValueValidation => {
            let wrong = match error.source() {
                Some(reason) => reason.to_string(),
                None => format!("'{value}' is not a valid value"),
            };
            format!("{argument}: {wrong}{}", of_another_option(command, &argument, &value))
        }
        ErrorKind::InvalidValue if value.is_empty() => format!("{argument}: a value is missing"),
        ErrorKind::InvalidValue => {
            let right = text(error, ContextKind::ValidValue);
            format!("{argument}: '{value}' is not one of {right}")
        }
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            format!("{argument}: unknown; {}", suggestion(error, instead(command, &argument, argv)))
        }
        ErrorKind::UnknownArgument => {
            format!("'{argument}': {}", too_many(command, &argument, argv))
        }
        ErrorKind::TooManyValues => format!("{argument}: takes no value, but '{value}' was given"),
        ErrorKind::InvalidSubcommand => {
            let name = text(error, ContextKind::InvalidSubcommand);
            if name == "mcp" {
                return "mcp: the server for agents is in the package for Python: python -m knee.mcp"
                    .to_owned();
            }
            let meant = command_meant(command, &name).or_else(|| part_meant(command, &name));
            let meant = meant.map(|command| format!("did you mean {command}?"));
            format!("{name}: unknown command; {}", suggestion(error, meant))
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

/// The option that has a value of this kind, to follow what is wrong with it.
fn of_another_option(command: &Command, argument: &str, value: &str) -> &'static str {
    let has = |id: &str| command.get_arguments().any(|a| a.get_id() == id);
    let is_data = value.starts_with(['{', '[', '@', '"', '<']) || value.contains('=');
    let is_time = value.ends_with(['s', 'm', 'h']) && parse_duration(value).is_ok();
    match argument {
        "--duration" if is_data && has("body") => "; for a body give -b or --data",
        "--threads" | "--connections" | "--requests" if is_time && has("duration") => {
            "; for the duration give -d"
        }
        "--connections" if value.contains(',') && has("vusers") => "; levels are given by --vusers",
        _ => "",
    }
}

/// What to do instead of an unknown option, by its name and the value that follows it.
fn instead(command: &Command, option: &str, argv: &[OsString]) -> Option<String> {
    let words = argv.iter().filter_map(|word| word.to_str());
    let value = match words.clone().find_map(|word| word.strip_prefix(option)) {
        Some(attached) if !attached.is_empty() => attached.trim_start_matches('='),
        _ => words.skip_while(|word| *word != option).nth(1).unwrap_or_default(),
    };
    if [".lua", ".js", ".py"].iter().any(|ending| value.ends_with(ending)) {
        return Some(SCENARIO.to_owned());
    }
    let otherwise = OTHERWISE.iter().find(|(theirs, _)| has_word(theirs, option));
    if let Some((_, what)) =
        otherwise.filter(|_| command.get_arguments().any(|a| a.get_id() == "url"))
    {
        return Some((*what).to_owned());
    }
    let is_rate = option == "-q" && value.starts_with(|c: char| c.is_ascii_digit());
    let meant = meant(command, if is_rate { "--qps" } else { option })?;
    Some(format!("did you mean {meant}?"))
}

/// What is wrong with an argument beyond those that the command takes.
fn too_many(command: &Command, surplus: &str, argv: &[OsString]) -> String {
    let is_url = |text: &str| text.contains("://") && Url::parse(text).is_ok();
    let words = argv.iter().skip(2).filter_map(|word| word.to_str());
    let mut before =
        words.take_while(|word| *word != surplus).filter(|word| !word.starts_with('-'));
    let takes_url = command.get_arguments().any(|a| a.get_id() == "url");
    if !takes_url || !is_url(surplus) {
        return "one argument too many; values follow their options".to_owned();
    }
    match before.next() {
        Some(value) if !before.clone().chain([value]).any(is_url) => format!(
            "one argument too many: '{value}' is in the place of the URL; values follow their \
             options, as in -c 10 -d 10s"
        ),
        _ => "one URL too many: --targets FILE reads several, one a line".to_owned(),
    }
}

/// What to do instead. What is meant goes before what is only spelt alike.
fn suggestion(error: &clap::Error, instead: Option<String>) -> String {
    let suggested = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand]
        .map(|kind| text(error, kind))
        .concat();
    let alike =
        (!suggested.is_empty()).then(|| format!("did you mean {}?", option_name(&suggested)));
    instead.or(alike).unwrap_or_else(|| "--help lists all".to_owned())
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
        "--concurrency --concurrent --clients --conns --workers --parallel -c",
        "--connections --clients --vusers --simple --scenarios",
    ),
    ("--qps --rps --query-per-second --rate-limit --throughput --tps -R", "--rate --rates"),
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
    ("--h2c --http2-prior", "--http2-prior-knowledge"),
    ("--h2 --alpn", "--http2"),
    ("--http3-only --quic --h3", "--http3"),
    ("--alt-svc --h3-if-offered", "--http3-if-offered"),
    ("--http1 --http1.0", "--http1.1"),
    ("--auth --basic-auth --authenticate -a", "--user"),
    ("--run-time --maxtime --max-time", "--duration"),
    ("--root-certs --ca --ca-cert --cafile", "--cacert"),
    ("--skip-verify --no-verify --no-check-certificate", "--insecure"),
    ("--max-connections --max-conns", "--connections"),
    ("--follow --redirects --max-redirs --follow-redirects", "--location"),
    ("--disable-color --no-colors --no-colour", "--no-color"),
    ("--bind --local-address --interface --port -p", "--source --listen"),
];

/// Options of other programs for what knee does anyway, or does in another way.
const OTHERWISE: &[(&str, &str)] = &[
    ("--host --base-url --target", "the URL needs no option: knee run URL"),
    ("--latency --percentiles --histogram", "percentiles are always shown; leave it out"),
    (
        "--verbose --debug --include -v -i",
        "the whole report is shown by --full, a response by curl -i",
    ),
    ("--script --lua --locustfile -f", SCENARIO),
    ("--keepalive --keep-alive", "connections are kept unless --no-keepalive is given"),
    ("--spawn-rate --hatch-rate", "for a rising load give --arrival 'ramp(10,1000)'"),
    (
        "--disable-redirects --no-redirects --no-follow",
        "redirections are followed only with --location; leave it out",
    ),
    (
        "--resolve --connect-to --ipv4 --ipv6 -4 -6",
        "give the address in the URL, and the name with -H 'Host: NAME'",
    ),
];

/// What does the work of scripts.
const SCENARIO: &str =
    "a scenario does what scripts do: knee scenario new, then knee run FILE.yaml";

/// Commands of other programs, and knee's.
const COMMANDS: &[(&str, &str)] = &[
    ("attack bench benchmark load http get test start wrk wrk2 ab hey oha k6 h2load", "run"),
    ("bombardier locust siege vegeta curl fortio gatling jmeter artillery", "run"),
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

/// The part of a command that takes what is given in the place of its name.
fn part_meant(command: &Command, given: &str) -> Option<String> {
    let is_number = given.bytes().all(|b| b.is_ascii_digit());
    let has = |ending: &str| given.ends_with(ending);
    let part = match command.get_name() {
        "history" if is_number || given == "last" => "show",
        "scenario" if has(".yaml") || has(".yml") || has(".json") => "check",
        "import" if has(".har") => "har",
        "import" if has(".jmx") => "jmeter",
        "import" if has(".js") || has(".ts") => "k6",
        "import" if has(".log") => "log",
        "serve" if is_number => return Some(format!("http --listen 127.0.0.1:{given}")),
        _ => return None,
    };
    Some(format!("{part} {given}"))
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
