//! The command line of `knee compare`, sorted before it is read.

use clap::Command;
use std::ffi::{OsStr, OsString};

/// Puts the options of `knee run` in a live comparison where the command line keeps them. An option
/// of `knee compare` stays, a word without `-` is a URL. All other commands are left as they are.
pub fn load_apart(knee: &Command, argv: Vec<OsString>) -> Vec<OsString> {
    let is_live = argv.get(1).is_some_and(|word| word == "compare")
        && argv.iter().any(|word| word == "--live");
    let commands = knee.find_subcommand("compare").zip(knee.find_subcommand("run"));
    let Some((compare, run)) = commands.filter(|_| is_live) else {
        return argv;
    };
    let mut sorted = argv[..2].to_vec();
    let mut words = argv[2..].iter();
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        if !text.starts_with('-') || text.starts_with("--load-word=") {
            sorted.push(word.clone());
            continue;
        }
        let own = option(compare, text);
        let option = own.or_else(|| option(run, text));
        let takes = option.is_some_and(|o| o.get_action().takes_values());
        let value = words.as_slice().first().filter(|_| takes && !has_value(text));
        let of_option = std::iter::once(word).chain(value);
        if own.is_some() {
            sorted.extend(of_option.cloned());
        } else {
            sorted.extend(of_option.map(|word| load_word(word)));
        }
        if value.is_some() {
            words.next();
        }
    }
    sorted
}

fn load_word(word: &OsStr) -> OsString {
    let mut kept = OsString::from("--load-word=");
    kept.push(word);
    kept
}

/// Whether the word has its option's value: `--rate=5`, `-c5`.
fn has_value(word: &str) -> bool {
    if word.starts_with("--") { word.contains('=') } else { word.chars().count() > 2 }
}

fn option<'a>(command: &'a Command, word: &str) -> Option<&'a clap::Arg> {
    let long = word.strip_prefix("--").map(|w| w.split('=').next().unwrap_or(w));
    let short = word.chars().nth(1).filter(|_| long.is_none());
    command.get_arguments().find(|o| match long {
        Some(long) => o.get_long() == Some(long),
        None => short.is_some() && o.get_short() == short,
    })
}

/// Options behind the `--` of a comparison stand before it, as nobody names a report `--json`. All
/// other commands are left as they are.
pub fn options_first(knee: &Command, argv: Vec<OsString>) -> Vec<OsString> {
    let is_compare = argv.get(1).is_some_and(|word| word == "compare");
    let split = argv.iter().position(|word| word == "--");
    let (Some(compare), Some(split)) = (knee.find_subcommand("compare"), split) else {
        return argv;
    };
    if !is_compare {
        return argv;
    }
    let takes_value = |word: &str| {
        let mut options = compare.get_opts();
        let is_it = |o: &clap::Arg| o.get_long() == word.strip_prefix("--");
        options.any(|o| is_it(o) && o.get_action().takes_values())
    };
    let (before, behind) = argv.split_at(split);
    let (mut first, mut reports) = (before.to_vec(), Vec::new());
    let mut words = behind.iter();
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        if !text.starts_with('-') || text == "-" || text == "--" {
            reports.push(word.clone());
            continue;
        }
        first.push(word.clone());
        if takes_value(text) {
            first.extend(words.next().cloned());
        }
    }
    first.extend(reports);
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::raw::RawArgs;
    use clap::CommandFactory;

    fn sorted(line: &str) -> String {
        let argv = line.split(' ').map(OsString::from).collect();
        let sorted = options_first(&RawArgs::command(), argv);
        let words: Vec<&str> = sorted.iter().filter_map(|w| w.to_str()).collect();
        words.join(" ")
    }

    #[test]
    fn options_may_stand_behind_the_dashes() {
        for (typed, read) in [
            (
                "knee compare a1 a2 -- b1 b2 --fail-on-regression",
                "knee compare a1 a2 --fail-on-regression -- b1 b2",
            ),
            (
                "knee compare a -- b1 --json out.json b2 --html=x.html",
                "knee compare a --json out.json --html=x.html -- b1 b2",
            ),
            ("knee compare a -- - b", "knee compare a -- - b"),
            ("knee compare a b --quiet", "knee compare a b --quiet"),
            ("knee run -- --quiet", "knee run -- --quiet"),
        ] {
            assert_eq!(sorted(typed), read);
        }
        let read = "knee compare a1 a2 -- b1 b2 --fail-on-regression --json -";
        assert!(RawArgs::read(read.split(' ')).is_ok());
        let unknown = RawArgs::read("knee compare a -- b --nonsense".split(' '));
        assert!(unknown.is_err());
    }

    #[test]
    fn options_of_a_run_are_kept_apart() {
        for (typed, read) in [
            (
                "knee compare --live http://a/ http://b/ -c 20 --json x.json",
                "knee compare --live http://a/ http://b/ --load-word=-c --load-word=20 \
                 --json x.json",
            ),
            (
                "knee compare --rate=100 --budget 5s --live http://a/ http://b/",
                "knee compare --load-word=--rate=100 --budget 5s --live http://a/ http://b/",
            ),
            ("knee compare a.json b.json -c 20", "knee compare a.json b.json -c 20"),
            ("knee run --live -c 20", "knee run --live -c 20"),
        ] {
            let argv = typed.split(' ').map(OsString::from).collect();
            let sorted = load_apart(&RawArgs::command(), argv);
            let words: Vec<&str> = sorted.iter().filter_map(|w| w.to_str()).collect();
            assert_eq!(words.join(" "), read);
        }
    }
}
