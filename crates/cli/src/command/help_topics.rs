//! Topics of `--help`: options that few need stand under a topic, and commands that few need below
//! the others.

use clap::{Arg, Command};
use std::ffi::OsString;
use std::fmt::Write as _;

/// A topic, what it is about, and the headings of its options.
struct HelpTopic {
    name: &'static str,
    about: &'static str,
    headings: &'static [&'static str],
}

const TOPICS: &[HelpTopic] = &[
    HelpTopic {
        name: "tls",
        about: "Certificates, versions and sessions of TLS",
        headings: &["TLS"],
    },
    HelpTopic {
        name: "streams",
        about: "Streams of messages, WebSocket and gRPC",
        headings: &["Streams"],
    },
    HelpTopic {
        name: "curl",
        about: "Data, forms, cookies and other options of curl",
        headings: &["Options of curl"],
    },
    #[cfg(feature = "fleet")]
    HelpTopic { name: "fleet", about: "Load from many machines", headings: &["Fleet", "NATS"] },
];

/// Commands below the others, in the help of knee.
const FURTHER: [&str; 4] = ["analyze", "observe", "completions", "man"];

impl HelpTopic {
    fn has(&self, argument: &Arg) -> bool {
        argument.get_help_heading().is_some_and(|heading| self.headings.contains(&heading))
    }
}

/// Whether the options of a command are divided into topics: those of a load on a URL are.
fn has_topics(command: &Command) -> bool {
    command.get_arguments().any(|a| a.get_id() == "url")
        && TOPICS.iter().all(|topic| command.get_arguments().any(|a| topic.has(a)))
}

/// The same commands, whose help leaves out what stands under a topic, and names the topics.
pub fn with_topics(knee: Command) -> Command {
    let mut further = "More commands:\n".to_owned();
    for name in FURTHER {
        let about = knee.find_subcommand(name).and_then(Command::get_about);
        let about = about.map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(further, "  {name:<11}  {about}");
    }
    let prefixed = |text: Option<&clap::builder::StyledStr>| {
        format!("{further}\n{}", text.map(ToString::to_string).unwrap_or_default())
    };
    let (short, long) = (prefixed(knee.get_after_help()), prefixed(knee.get_after_long_help()));
    let knee = FURTHER.iter().fold(knee, |knee, name| knee.mut_subcommand(name, |c| c.hide(true)));
    let knee = knee.after_help(short).after_long_help(long);
    knee.mut_subcommands(|command| {
        if !has_topics(&command) {
            return command;
        }
        let mut list = "More options:\n".to_owned();
        for topic in TOPICS {
            let line = format!("knee {} --help {}", command.get_name(), topic.name);
            let _ = writeln!(list, "  {line:<28}  {}", topic.about);
        }
        let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let command = command.mut_args(|argument| {
            let is_folded = TOPICS.iter().any(|topic| topic.has(&argument));
            if is_folded { argument.hide_short_help(true).hide_long_help(true) } else { argument }
        });
        command.after_long_help(format!("{list}\n{after}"))
    })
}

/// The help of a topic, where the command line asks for one: `knee run --help tls`.
pub fn requested_topic(knee: &Command, argv: &[OsString], width: usize) -> Option<String> {
    let words: Vec<&str> = argv.iter().skip(1).map_while(|word| word.to_str()).collect();
    let [name, rest @ ..] = &words[..] else {
        return None;
    };
    let at = rest.iter().position(|word| matches!(*word, "--help" | "-h"))?;
    let topic = TOPICS.iter().find(|topic| Some(&topic.name) == rest.get(at + 1))?;
    let command = knee.find_subcommand(name).filter(|command| has_topics(command))?;
    let shown = command.clone().mut_args(|argument| {
        let is_of_topic = topic.has(&argument);
        argument.hide(!is_of_topic).hide_short_help(false).hide_long_help(false)
    });
    let shown = shown.disable_help_flag(true).bin_name(format!("knee {name}")).term_width(width);
    let mut shown = shown.about(topic.about).long_about(None).after_help("").after_long_help("");
    Some(shown.render_long_help().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::raw::RawArgs;
    use clap::CommandFactory;

    const OPTIONS_MAX: usize = 80;

    #[test]
    fn options_of_topics_stand_under_them_alone() {
        let knee = with_topics(RawArgs::command());
        for name in ["run", "sweep", "overload", "recover"] {
            let mut command = knee.find_subcommand(name).unwrap().clone();
            let help = command.render_long_help().to_string();
            let is_listed = |a: &&Arg| !a.is_hide_set() && !a.is_hide_long_help_set();
            let count = command.get_arguments().filter(is_listed).count();
            assert!(count <= OPTIONS_MAX, "{name}: {count} options");
            for (topic, option) in [
                ("tls", "--cacert"),
                ("streams", "--slo"),
                ("fleet", "--nats-user"),
                ("curl", "--data"),
            ] {
                let line = format!("      {option} ");
                let mut listed = command.get_arguments().filter(is_listed);
                assert!(!listed.any(|a| a.get_long() == option.get(2..)), "{name}: {option}");
                let pointer = format!("knee {name} --help {topic} ");
                assert!(help.contains(&pointer), "{name}: {topic}");
                let argv = ["knee", name, "--help", topic].map(OsString::from);
                let of_topic = requested_topic(&RawArgs::command(), &argv, 80).unwrap();
                assert!(of_topic.contains(&line), "{of_topic}");
                assert!(!of_topic.contains("--duration"), "{of_topic}");
            }
        }
        let argv = ["knee", "run", "--help", "nonsense"].map(OsString::from);
        assert_eq!(requested_topic(&RawArgs::command(), &argv, 80), None);
    }

    #[test]
    fn further_commands_stand_below() {
        let mut knee = with_topics(RawArgs::command());
        for help in [knee.render_help().to_string(), knee.render_long_help().to_string()] {
            let (first, more) = help.split_once("More commands:").unwrap();
            for name in FURTHER {
                let line = format!("\n  {name} ");
                assert!(more.contains(&line) && !first.contains(&line), "{name}: {help}");
            }
            assert!(more.contains("knee sweep http://127.0.0.1:8080/"), "examples: {help}");
        }
    }
}
