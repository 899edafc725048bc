//! Short options that curl has with another meaning: `-d`, `-b`, `-m`, and `--json`. Where a value
//! can mean only what curl means the long option takes its place; where it is not certain the line
//! is refused in words that name the long options.

use clap::Command;
use clap::error::ErrorKind;
use knee_core::spec::parse_duration;
use std::ffi::OsString;

/// Commands whose target takes options of curl.
const COMMANDS: [&str; 3] = ["run", "sweep", "overload"];

/// One word of the command line, or an option with its value.
#[derive(Debug)]
enum Word {
    Plain(OsString),
    Option { name: String, value: String },
}

/// The same command line in knee's own words.
///
/// # Errors
/// A value that is neither certainly knee's nor certainly curl's.
pub fn in_knees_words(knee: &Command, argv: Vec<OsString>) -> Result<Vec<OsString>, clap::Error> {
    let name = argv.get(1).and_then(|word| word.to_str());
    let command = name
        .filter(|name| COMMANDS.contains(name))
        .and_then(|name| knee.find_subcommand(name));
    let Some(command) = command else {
        return Ok(argv);
    };
    let words = split(command, argv);
    let is_copied = is_copied(&words);
    let mut told = Vec::with_capacity(words.len());
    for word in words {
        match word {
            Word::Plain(word) => told.push(word),
            Word::Option { name, value } => {
                let name = meant(&name, &value, is_copied)
                    .map_err(|wrong| clap::Error::raw(ErrorKind::Io, wrong + "\n"))?;
                told.extend([name.into(), value.into()]);
            }
        }
    }
    Ok(told)
}

/// Options of which the value decides are taken apart; all else stays as it is.
fn split(command: &Command, argv: Vec<OsString>) -> Vec<Word> {
    let mut words = Vec::with_capacity(argv.len());
    let mut argv = argv.into_iter();
    while let Some(word) = argv.next() {
        let Some(text) = word.to_str().map(str::to_owned) else {
            words.push(Word::Plain(word));
            continue;
        };
        if text == "--" {
            words.push(Word::Plain(word));
            break;
        }
        if let Some((name, value)) = attached(&text) {
            words.push(Word::Option { name, value });
            continue;
        }
        if !takes_value(command, &text) {
            words.push(Word::Plain(word));
            continue;
        }
        match argv.next().map(OsString::into_string) {
            Some(Ok(value)) => words.push(Word::Option { name: text, value }),
            Some(Err(value)) => words.extend([word, value].map(Word::Plain)),
            None => words.push(Word::Plain(word)),
        }
    }
    words.extend(argv.map(Word::Plain));
    words
}

/// `-d'a=1'` and `--json={}`, of the options that this is about.
fn attached(text: &str) -> Option<(String, String)> {
    if let Some(value) = text.strip_prefix("--json=") {
        return Some(("--json".to_owned(), value.to_owned()));
    }
    let name = ["-d", "-b", "-m"]
        .into_iter()
        .find(|n| text.starts_with(n))?;
    let value = &text[name.len()..];
    // `-d=5s` is knee's as well.
    (!value.is_empty() && !value.starts_with('=')).then(|| (name.to_owned(), value.to_owned()))
}

fn takes_value(command: &Command, word: &str) -> bool {
    let mut options = command.get_opts();
    options.any(|option| {
        let long = word.strip_prefix("--").is_some_and(|name| {
            let aliases = option.get_all_aliases().unwrap_or_default();
            option.get_long() == Some(name) || aliases.contains(&name)
        });
        let short = word.strip_prefix('-').is_some_and(|name| {
            let is_it = |c: char| name.len() == 1 && name.starts_with(c);
            let aliases = option.get_all_short_aliases().unwrap_or_default();
            option.get_short().is_some_and(is_it) || aliases.into_iter().any(is_it)
        });
        (long || short) && option.get_action().takes_values()
    })
}

/// Whether something says that the line is one of curl, or what `-b` cannot be.
fn is_copied(words: &[Word]) -> bool {
    words.iter().any(|word| match word {
        Word::Plain(word) => word == "--compressed",
        Word::Option { name, value } => match name.as_str() {
            "-d" => is_data(value),
            "--json" => is_json(value),
            "-H" | "--header" => {
                let name = value.split(':').next().unwrap_or_default();
                let name = name.to_ascii_lowercase();
                name.starts_with("sec-") || name == "upgrade-insecure-requests"
            }
            name => name.starts_with("--data"),
        },
    })
}

/// The option that is meant where `name` is typed.
fn meant(name: &str, value: &str, is_copied: bool) -> Result<String, String> {
    match name {
        "-d" if parse_duration(value).is_ok() => {}
        "-d" if is_data(value) => return Ok("--data".to_owned()),
        "-d" if !value.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
            return Err(format!(
                "--duration: '{value}' is not a duration: write one such as 10s, or --data for the \
                 data of curl"
            ));
        }
        "-b" => match cookies(value) {
            2.. => return Ok("--cookie".to_owned()),
            1 if is_copied => return Ok("--cookie".to_owned()),
            1 => {
                return Err(format!(
                    "-b: '{value}' can be a cookie, as in curl, or a body: write --cookie or --body"
                ));
            }
            _ => {}
        },
        "-m" if value.starts_with(|c: char| c.is_ascii_digit()) => {
            return Err(format!(
                "-m: '{value}' is no method: write --timeout for the time limit of a request"
            ));
        }
        "--json" if is_json(value) => return Ok("--json-body".to_owned()),
        "--json" if value.starts_with('@') => {
            return Err(format!(
                "--json: '{value}' can be a body, as in curl, or the file of the report: write \
                 --json-body '{value}', or './{value}'"
            ));
        }
        _ => {}
    }
    Ok(name.to_owned())
}

/// What no length of time looks like.
fn is_data(value: &str) -> bool {
    value.contains('=') || value.starts_with(['{', '[', '@', '"'])
}

fn is_json(value: &str) -> bool {
    value.trim_start().starts_with(['{', '['])
}

/// How many cookies it is; 0 where it is none.
fn cookies(value: &str) -> usize {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let is_cookie = |pair: &str| match pair.trim_start().split_once('=') {
        Some((name, value)) => {
            let is_value = !value.contains(|c: char| c.is_control() || c == '\n');
            !name.is_empty() && name.bytes().all(is_name) && is_value
        }
        None => false,
    };
    let pairs: Vec<&str> = value.trim_end_matches([';', ' ']).split(';').collect();
    match pairs.iter().all(|pair| is_cookie(pair)) {
        // The pairs of a form, which '&' divides, look like one.
        true if pairs.len() == 1 && value.contains('&') => 0,
        true => pairs.len(),
        false => 0,
    }
}
