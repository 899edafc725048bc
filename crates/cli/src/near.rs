//! What other load generators call the options that knee has: wrk, ab, hey, oha, vegeta, k6,
//! h2load, curl, iperf.

use clap::Command;

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
pub fn command_meant(command: &Command, typed: &str) -> Option<String> {
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
