//! Command lines of curl, by curl's own grammar.
//!
//! `options.txt` has all options, `shell` the quotes of a pasted line, `request` what is sent.

mod request;
mod shell;

use super::collect::Collector;
use super::data::ReadFile;
use super::{Imported, error, wrong};
use knee_load::quantity::ParseError;
use shell::{Shell, SplitLine};
use std::collections::HashMap;
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
    effect: Effect,
}

/// What knee does with an option of curl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The option describes the request or its connection.
    Used,
    /// The option changes neither.
    Ignored,
    /// The option changes what is sent in a way that knee does not support.
    Refused,
}

/// All options by their short and long names.
static BY_NAME: LazyLock<HashMap<&str, CurlOption>> = LazyLock::new(|| {
    let rows = OPTIONS.lines().filter(|line| !line.starts_with("# "));
    let options = rows.flat_map(|row| {
        let mut cells = row.split_whitespace();
        let mut cell = || cells.next().unwrap_or_default();
        let (short, name) = (cell(), cell());
        let option = CurlOption {
            name,
            takes_value: cell() == "VALUE",
            effect: match cell() {
                "used" => Effect::Used,
                "ignored" => Effect::Ignored,
                _ => Effect::Refused,
            },
        };
        [(short, option), (name, option)]
    });
    options.collect()
});

/// The option of this short or long name. `-` stands for no short name in the table.
fn find(name: &str) -> Option<CurlOption> {
    BY_NAME.get(name).filter(|_| name != "-").copied()
}

/// Imports a whole line, as it is typed into a shell or copied from a browser.
///
/// # Errors
/// One line: an open quote, an unknown option, no URL.
pub fn curl_line(line: &str, read: ReadFile) -> Result<Imported, ParseError> {
    let SplitLine { words, rest } = split(line)?;
    import(&words, rest, read)
}

/// The words of a whole line, without the commands that follow.
///
/// # Errors
/// An open quote, or a line that is too long.
pub fn curl_line_words(line: &str) -> Result<Vec<String>, ParseError> {
    split(line).map(|split| split.words)
}

fn split(line: &str) -> Result<SplitLine, ParseError> {
    if line.len() > LINE_MAX {
        return error("the line is longer than 16 MiB");
    }
    let mut split = Shell::of(line).split(line)?;
    if split.words.first().is_some_and(|word| word == "$") {
        split.words.remove(0);
    }
    Ok(split)
}

/// Imports the words of a line, as a shell passes them; the first may be `curl`.
///
/// # Errors
/// As [`curl_line`].
pub fn curl_words(words: &[String], read: ReadFile) -> Result<Imported, ParseError> {
    import(words, None, read)
}

/// The options of knee that send the same request as a line of curl; the first word is `curl`.
///
/// # Errors
/// One line: an unknown option, one that knee does not support, not exactly one URL.
pub fn curl_as_options(words: &[String], read: ReadFile) -> Result<Vec<String>, ParseError> {
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

fn import(words: &[String], rest: Option<String>, read: ReadFile) -> Result<Imported, ParseError> {
    let mut all = Collector::default();
    if let Some(rest) = rest {
        all.leave_out(format!("what follows curl: {rest}"));
    }
    for transfer in transfers(words)? {
        transfer.add_to(&mut all, read)?;
    }
    all.finish("there is no URL that a scenario can have")
}

fn transfers(words: &[String]) -> Result<Vec<Transfer>, ParseError> {
    let words = match words {
        [first, rest @ ..] if is_curl(first) => rest,
        words => words,
    };
    let transfers = words.split(|word| word == "--next" || word == "-:");
    transfers.map(Transfer::read).collect()
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
    fn long<'a>(
        &mut self,
        name: &str,
        words: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), ParseError> {
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
    fn shorts<'a>(
        &mut self,
        shorts: &str,
        words: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), ParseError> {
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

    fn give<'a>(
        &mut self,
        option: CurlOption,
        attached: Option<String>,
        words: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), ParseError> {
        let value = match attached {
            None if option.takes_value => {
                let missing = || wrong(format!("{}: a value is missing", option.name));
                words.next().cloned().ok_or_else(missing)?
            }
            attached => attached.unwrap_or_default(),
        };
        match option.name {
            "--url" => self.urls.push(value),
            _ => self.given.push((option, value)),
        }
        Ok(())
    }

    /// All values of an option, in their order.
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let of_name = move |given: &&(CurlOption, String)| given.0.name == name;
        let values = self.given.iter().filter(of_name);
        values.map(|(_, value)| value.as_str())
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
        let given = self.given.iter();
        let refused = given.filter(|(option, _)| option.effect == Effect::Refused);
        let named = refused.map(|(option, value)| format!("option {} {value}", option.name));
        named.map(|line| line.trim_end().to_owned()).collect()
    }
}
