//! Command lines of curl, by curl's own grammar.
//!
//! `options.txt` has all options, `shell` the commands of a pasted text, `prompt` those of Windows,
//! `request` what is sent.

mod command;
mod escapes;
mod prompt;
mod request;
mod shell;
#[cfg(test)]
mod tests;

use super::builder::ScenarioBuilder;
use super::data::{ReadFile, has_bytes};
use super::{ImportedScenario, error, wrong};
use command::ShellCommand;
use knee_load::quantity::ParseError;
use std::collections::HashMap;
use std::slice::Iter;
use std::sync::LazyLock;

/// The longest line, in bytes.
const LINE_MAX: usize = 16 << 20;

/// All options of curl.
const OPTIONS: &str = include_str!("options.txt");

/// An option of curl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CurlOption {
    /// Its long name, with `--`.
    name: &'static str,
    takes_value: bool,
    /// It changes what is sent in a way that knee does not support.
    is_refused: bool,
}

/// All options by their short and long names.
static BY_NAME: LazyLock<HashMap<&str, CurlOption>> = LazyLock::new(|| {
    let rows = OPTIONS.lines().filter(|line| !line.starts_with("# "));
    let options = rows.flat_map(|row| {
        let mut cells = row.split_whitespace();
        let mut cell = || cells.next().unwrap_or_default();
        let (short, name) = (cell(), cell());
        let option =
            CurlOption { name, takes_value: cell() == "VALUE", is_refused: cell() == "refused" };
        [(short, option), (name, option)]
    });
    options.collect()
});

/// The option of this short or long name. `-` stands for no short name in the table.
fn find(name: &str) -> Option<CurlOption> {
    BY_NAME.get(name).filter(|_| name != "-").copied()
}

/// Imports a text as it is typed into a shell or copied from a browser. Each command that begins
/// with `curl` is a transfer; where none does, the first has the options of one.
///
/// # Errors
/// One line: an open quote, an unknown option, no URL.
pub fn curl_line(line: &str, read: ReadFile) -> Result<ImportedScenario, ParseError> {
    let commands = commands(line)?;
    let others = || commands.iter().find_map(|command| other_program(&command.words));
    let is_of_curl = commands.iter().any(ShellCommand::runs_curl);
    if let Some(other) = others().filter(|_| !is_of_curl) {
        return error(other);
    }
    let first = commands.iter().position(ShellCommand::runs_curl).unwrap_or(0);
    let mut all = ScenarioBuilder::default();
    // What of the text is no transfer, since the last one.
    let mut other: Vec<&str> = Vec::new();
    for (at, command) in commands.iter().enumerate() {
        if at != first && !command.runs_curl() {
            other.push(&command.text);
            continue;
        }
        leave_out_commands(&mut other, at <= first, &mut all);
        for what in &command.substitutions {
            let is_name = what.starts_with('$') && !what.starts_with("$(");
            let kind = if is_name { "variables" } else { "commands" };
            all.leave_out(format!("{what}: {kind} of the shell are sent as they stand"));
        }
        add_transfers(&command.words, &mut all, read)?;
    }
    leave_out_commands(&mut other, false, &mut all);
    finish(all)
}

fn leave_out_commands(commands: &mut Vec<&str>, is_before: bool, all: &mut ScenarioBuilder) {
    if !commands.is_empty() {
        let place = if is_before { "stands before" } else { "follows" };
        all.leave_out(format!("what {place} curl: {}", commands.join(" ")));
        commands.clear();
    }
}

/// The words of the first command of a text.
///
/// # Errors
/// An open quote, or a text that is too long.
pub fn curl_line_words(line: &str) -> Result<Vec<String>, ParseError> {
    let first = commands(line)?.into_iter().next();
    Ok(first.map(|command| command.words).unwrap_or_default())
}

fn commands(text: &str) -> Result<Vec<ShellCommand>, ParseError> {
    if text.len() > LINE_MAX {
        return error("the line is longer than 16 MiB");
    }
    shell::commands(text)
}

/// Programs that send requests too, with options of their own.
const OTHER_PROGRAMS: [&str; 9] = [
    "invoke-webrequest",
    "invoke-restmethod",
    "iwr",
    "irm",
    "wget",
    "http",
    "https",
    "xh",
    "fetch",
];

/// What is wrong where a command is of such a program.
fn other_program(words: &[String]) -> Option<String> {
    let [program, ..] = words else { return None };
    let name = program.split('(').next().unwrap_or_default().to_ascii_lowercase();
    OTHER_PROGRAMS.contains(&&*name).then(|| {
        format!("'{program}' is not curl: browsers give a line of it with 'Copy as cURL (bash)'")
    })
}

/// Imports the words of a line, as a shell passes them; the first may be `curl`.
///
/// # Errors
/// As [`curl_line`].
pub fn curl_words(words: &[String], read: ReadFile) -> Result<ImportedScenario, ParseError> {
    if let Some(other) = other_program(words) {
        return error(other);
    }
    let mut all = ScenarioBuilder::default();
    add_transfers(words, &mut all, read)?;
    finish(all)
}

/// The options of knee that send the same request as a line of curl; the first word is `curl`.
///
/// # Errors
/// One line: an unknown option, one that knee does not support, not exactly one URL.
pub fn curl_as_options(words: &[String], read: ReadFile) -> Result<Vec<String>, ParseError> {
    if let Some(other) = other_program(words) {
        return error(other);
    }
    match &transfers(words)?[..] {
        [transfer] => transfer.as_options(read),
        _ => error("--next: a run has one request; 'knee import curl' makes steps of several"),
    }
}

/// Whether a word is the name of the program: `curl`, `/usr/bin/curl`, `curl.exe`.
pub fn is_curl(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    name == "curl" || name == "curl.exe"
}

fn add_transfers(
    words: &[String],
    all: &mut ScenarioBuilder,
    read: ReadFile,
) -> Result<(), ParseError> {
    transfers(words)?.iter().try_for_each(|transfer| transfer.add_to(all, read))
}

fn finish(all: ScenarioBuilder) -> Result<ImportedScenario, ParseError> {
    all.finish("there is no URL that a scenario can have")
}

fn transfers(words: &[String]) -> Result<Vec<Transfer>, ParseError> {
    let words = match words {
        [first, rest @ ..] if is_curl(first) => rest,
        words => words,
    };
    let is_next = |word: &String| word == "--next" || word == "-:";
    // Before the first transfer there is none to end.
    let begin = words.iter().position(|word| !is_next(word)).unwrap_or(0);
    words[begin..].split(is_next).map(Transfer::read).collect()
}

/// What is wrong with a word that begins with a sign that programs for texts put in the place of a
/// quote or a dash.
pub fn typographic(word: &str) -> Option<String> {
    let sign = word.chars().next()?;
    let (name, right) = match sign {
        '“' | '”' | '„' | '«' | '»' => ("quote", "\""),
        '‘' | '’' | '‚' => ("quote", "'"),
        '–' | '—' | '−' if word.chars().count() > 2 => ("dash", "--"),
        '–' | '—' | '−' => ("dash", "-"),
        _ => return None,
    };
    Some(format!("'{sign}' is a typographic {name}, which no shell reads: write {right}"))
}

/// Whether a word that a shell has read may begin with such a sign: it is a whole text.
fn is_meant(word: &str) -> bool {
    let is_dash = word.starts_with(['–', '—', '−']);
    let is_whole = word.chars().skip(1).any(|c| "“”»’‘«".contains(c));
    (is_whole || is_dash && word.contains(' ')) && !word.contains("://")
}

/// The URLs and options of one transfer.
#[derive(Debug, Default)]
struct Transfer {
    urls: Vec<String>,
    /// Each option with its value, in their order; the value of a flag is empty.
    given: Vec<(CurlOption, String)>,
}

impl Transfer {
    fn read(words: &[String]) -> Result<Transfer, ParseError> {
        let mut transfer = Transfer::default();
        if let Some(wrong) =
            words.iter().filter(|word| !is_meant(word)).find_map(|w| typographic(w))
        {
            return error(wrong);
        }
        let mut words = words.iter();
        let mut has_options = true;
        while let Some(word) = words.next() {
            match word.strip_prefix('-') {
                Some("-") if has_options => has_options = false,
                Some(long) if has_options && long.starts_with('-') => {
                    transfer.long(word, &mut words)?;
                }
                Some(shorts) if has_options && !shorts.is_empty() => {
                    transfer.shorts(shorts, &mut words)?;
                }
                _ if word.starts_with('^') => {
                    return error(
                        "'^' quotes in the command prompt of Windows: write the line into a file, \
                         and give that to 'knee import curl -'",
                    );
                }
                _ => transfer.urls.push(word.clone()),
            }
        }
        Ok(transfer)
    }

    /// `--name`, `--name VALUE` or `--no-name`.
    fn long(&mut self, name: &str, words: &mut Iter<'_, String>) -> Result<(), ParseError> {
        if let Some(option) = find(name) {
            return self.give(option, None, words);
        }
        let positive = name.strip_prefix("--no-").map(|rest| format!("--{rest}"));
        let negated = positive.and_then(|positive| find(&positive));
        let Some(option) = negated.filter(|option| !option.takes_value) else {
            return error(format!("{name}: unknown option of curl"));
        };
        self.given.retain(|(other, _)| *other != option);
        Ok(())
    }

    /// Short options after one `-`. The last of them may have a value, attached or apart.
    fn shorts(&mut self, shorts: &str, words: &mut Iter<'_, String>) -> Result<(), ParseError> {
        for (at, short) in shorts.char_indices() {
            let Some(option) = find(&format!("-{short}")) else {
                return error(format!("-{short}: unknown option of curl"));
            };
            let attached = &shorts[at + short.len_utf8()..];
            if option.takes_value && !attached.is_empty() {
                return self.give(option, Some(attached.to_owned()), words);
            }
            self.give(option, None, words)?;
        }
        Ok(())
    }

    fn give(
        &mut self,
        option: CurlOption,
        attached: Option<String>,
        words: &mut Iter<'_, String>,
    ) -> Result<(), ParseError> {
        let value = match attached {
            None if option.takes_value => {
                let missing = || wrong(format!("{}: a value is missing", option.name));
                words.next().cloned().ok_or_else(missing)?
            }
            attached => attached.unwrap_or_default(),
        };
        let takes_bytes = |name: &str| name.starts_with("--data") || name.starts_with("--form");
        match option.name {
            "--url" => self.urls.push(value),
            name if has_bytes(&value) && !takes_bytes(name) && name != "--json" => {
                return error(format!("{name}: its value is not UTF-8 text"));
            }
            _ => self.given.push((option, value)),
        }
        Ok(())
    }

    /// All values of an option, in their order.
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let of_name = move |given: &&(CurlOption, String)| given.0.name == name;
        self.given.iter().filter(of_name).map(|(_, value)| value.as_str())
    }

    /// The value of an option that counts: the last one.
    fn last(&self, name: &str) -> Option<&str> {
        let mut given = self.given.iter().rev();
        given.find_map(|(option, value)| (option.name == name).then_some(value.as_str()))
    }

    fn has(&self, name: &str) -> bool {
        self.last(name).is_some()
    }

    /// The options that knee does not support, with their values.
    fn refused_options(&self) -> Vec<String> {
        let refused = self.given.iter().filter(|(option, _)| option.is_refused);
        let named = refused.map(|(option, value)| format!("option {} {value}", option.name));
        named.map(|line| line.trim_end().to_owned()).collect()
    }
}
