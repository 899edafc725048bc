//! Commands as a shell splits them.

use super::command::ShellCommand;
use super::escapes::{ansi_c, open};
use super::prompt::{self, is_of_prompt};
use super::{is_curl, typographic};
use knee_load::quantity::ParseError;

/// Signs between commands, and before the files of a redirection.
const OPERATORS: [char; 5] = ['|', ';', '&', '>', '<'];

/// Splits a text into commands, and these into words without quotes and continued lines. Variables
/// and commands within words are not replaced.
///
/// # Errors
/// Quotes of the first command that are not closed.
pub(super) fn commands(text: &str) -> Result<Vec<ShellCommand>, ParseError> {
    if is_of_prompt(text) {
        split(&text.replace("\r\n", "\n"), |text| Ok(prompt::command(text)))
    } else {
        split(text, PosixCommand::read)
    }
}

/// Splits a text by a shell's rules. `read` reads one command, and returns the text behind it.
fn split<'a>(
    text: &'a str,
    read: impl Fn(&'a str) -> Result<(ShellCommand, &'a str), ParseError>,
) -> Result<Vec<ShellCommand>, ParseError> {
    let mut commands = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let after = rest.trim_start_matches(OPERATORS);
        let operator = &rest[..rest.len() - after.len()];
        let (mut command, behind) = match read(after) {
            Err(wrong) if commands.is_empty() => return Err(wrong),
            // It may be no command: the text of a document, or of a response.
            Err(_) => (ShellCommand { is_joined: true, ..ShellCommand::default() }, ""),
            Ok(read) => read,
        };
        let written = &rest[..rest.len() - behind.len()];
        // A word with a blank in quotes may end in a number, too.
        let is_written = command.words.last().is_some_and(|word| written.ends_with(&**word));
        if behind.starts_with(['>', '<']) && is_written && ends_in_descriptor(written) {
            command.words.pop();
        }
        if command.words.first().is_some_and(|word| word == "$") {
            command.words.remove(0);
        }
        command.is_joined |= !matches!(operator, "" | ";" | "&" | "&&");
        command.text = written.trim().to_owned();
        // Empty lines, comments and the operator at the end have no words.
        if command.is_joined || !command.words.is_empty() {
            commands.push(command);
        }
        rest = behind;
    }
    Ok(commands)
}

/// Whether a redirection behind a text has the number of what it redirects: `2>`.
fn ends_in_descriptor(text: &str) -> bool {
    let word = text.rsplit([' ', '\t', '\n']).next().unwrap_or_default();
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
}

/// A command of a POSIX shell: quotes of all kinds (`'…'`, `"…"`, `$'…'`) and backslashes.
#[derive(Default)]
struct PosixCommand<'a> {
    words: Vec<String>,
    /// The word that is not at its end.
    word: Option<String>,
    substitutions: Vec<String>,
    rest: &'a str,
}

impl<'a> PosixCommand<'a> {
    /// Reads the first command of a text, and returns the text behind it.
    fn read(text: &'a str) -> Result<(ShellCommand, &'a str), ParseError> {
        let mut own = PosixCommand { rest: text, ..PosixCommand::default() };
        while let Some(c) = own.rest.chars().next() {
            let has_words = own.word.is_some() || !own.words.is_empty();
            if OPERATORS.contains(&c) || (c == '\n' && has_words) {
                break;
            }
            own.next(c)?;
        }
        own.words.extend(own.word.take());
        let PosixCommand { words, substitutions, rest, .. } = own;
        Ok((ShellCommand { words, substitutions, ..ShellCommand::default() }, rest))
    }

    /// Reads what begins with `c`, which is no operator.
    fn next(&mut self, c: char) -> Result<(), ParseError> {
        let after = &self.rest[c.len_utf8()..];
        if !c.is_ascii() && self.word.is_none() {
            let word = self.rest.split_whitespace().next().unwrap_or_default();
            let wrong = typographic(word).filter(|_| self.runs_curl());
            wrong.map_or(Ok(()), |wrong| Err(super::wrong(wrong)))?;
        }
        match c {
            ' ' | '\t' | '\r' | '\n' => {
                self.words.extend(self.word.take());
                self.rest = after;
            }
            '#' if self.word.is_none() => {
                self.rest = after.find('\n').map_or("", |end| &after[end..]);
            }
            '\\' => {
                self.rest = after;
                if let Some(after) = after.strip_prefix("\r\n").or(after.strip_prefix('\n')) {
                    self.rest = after;
                } else if let Some(next) = after.chars().next() {
                    self.push(next.len_utf8());
                }
            }
            '\'' => {
                let end = after.find('\'').ok_or_else(|| open('\''))?;
                self.rest = after;
                self.push(end);
                self.rest = &after[end + 1..];
            }
            '"' => self.double(after)?,
            '$' if after.starts_with('\'') => {
                self.rest = ansi_c(&after[1..], self.word.get_or_insert_default())?;
            }
            c => self.plain(c)?,
        }
        Ok(())
    }

    fn runs_curl(&self) -> bool {
        self.words.first().is_some_and(|word| is_curl(word))
    }

    /// Takes bytes of the text into the word as they are.
    fn push(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length);
        self.word.get_or_insert_default().push_str(taken);
        self.rest = rest;
    }

    /// Takes a character, or a whole variable or command that begins with it.
    fn plain(&mut self, c: char) -> Result<(), ParseError> {
        let length = substitution_length(self.rest)?;
        if let Some(length) = length {
            self.substitutions.push(self.rest[..length].to_owned());
        }
        self.push(length.unwrap_or(c.len_utf8()));
        Ok(())
    }

    /// Reads the inside of `"…"` and the quote behind it.
    fn double(&mut self, text: &'a str) -> Result<(), ParseError> {
        self.word.get_or_insert_default();
        self.rest = text;
        loop {
            let mut chars = self.rest.chars();
            match chars.next() {
                Some('"') => {
                    self.rest = chars.as_str();
                    return Ok(());
                }
                Some('\\') => match chars.next() {
                    Some('\n') => self.rest = chars.as_str(),
                    Some('"' | '\\' | '$' | '`') => {
                        self.rest = &self.rest[1..];
                        self.push(1);
                    }
                    Some(c) => self.push(1 + c.len_utf8()),
                    None => return Err(open('"')),
                },
                Some(c) => self.plain(c)?,
                None => return Err(open('"')),
            }
        }
    }
}

/// The length of `$NAME`, `${…}`, `$(…)` or a command in backticks at the begin of a text.
fn substitution_length(text: &str) -> Result<Option<usize>, ParseError> {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let opened = match text.strip_prefix('$') {
        Some(named) if named.starts_with(is_first) => {
            let end = named.find(|c: char| !(is_first(c) || c.is_ascii_digit()));
            return Ok(Some(1 + end.unwrap_or(named.len())));
        }
        Some(command) if command.starts_with('(') => Some((2, ['(', ')'])),
        Some(braced) if braced.strip_prefix('{').is_some_and(|name| name.starts_with(is_first)) => {
            Some((2, ['{', '}']))
        }
        Some(_) => None,
        None => text.starts_with('`').then_some((1, ['`', '`'])),
    };
    opened.map(|(begin, brackets)| Ok(begin + closed(&text[begin..], brackets)?)).transpose()
}

/// The length of a text up to the bracket that closes the one before it. In a command, brackets
/// between quotes do not count.
fn closed(text: &str, brackets: [char; 2]) -> Result<usize, ParseError> {
    let is_command = brackets[1] != '}';
    let mut depth = 1usize;
    let mut quote = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => drop(chars.next()),
            (Some(own), c) if own == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') if is_command => quote = Some(c),
            (None, c) if c == brackets[1] => {
                depth -= 1;
                if depth == 0 {
                    return Ok(at + 1);
                }
            }
            (None, c) if c == brackets[0] => depth += 1,
            _ => {}
        }
    }
    Err(open(brackets[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_a_shell_does() {
        for (line, words) in [
            ("", &[][..]),
            (
                "curl  'a b'\\\n -H\t\"c \\\"d\\\" \\n $x\"",
                &["curl", "a b", "-H", "c \"d\" \\n $x"],
            ),
            (r"a\ b''c '' $'it\'s\n\u0041\x42\\\u00fc'", &["a bc", "", "it's\nAB\\ü"]),
            ("$x $", &["$x", "$"]),
            ("a \\\r\n b", &["a", "b"]),
            ("\n# g\n\na b#c # d e\n # f\r\n", &["a", "b#c"]),
            ("a 'b\nc' \"d\ne\" \\\n f;", &["a", "b\nc", "d\ne", "f"]),
        ] {
            let split = commands(line).unwrap();
            assert!(split.len() <= 1, "{line}: {split:?}");
            let split = split.into_iter().flat_map(|command| command.words);
            assert_eq!(split.collect::<Vec<_>>(), words, "{line}");
        }
    }

    #[test]
    fn line_ends_and_operators_end_a_command() {
        for (text, commands) in [
            ("curl 'a|b' | jq .", &["curl 'a|b'", "| jq ."][..]),
            ("a b#c # d e\n f", &["a b#c # d e", "f"]),
            ("a\r\nb &&\nc; d &\n", &["a", "b", "&&\nc", "; d"]),
            ("a |\n b || c > d 2>&1", &["a", "|\n b", "|| c", "> d 2", ">&1"]),
            ("a\n it's", &["a", "it's"]),
        ] {
            let split = super::commands(text).unwrap();
            let texts: Vec<&str> = split.iter().map(|command| command.text.as_str()).collect();
            assert_eq!(texts, commands, "{text}");
        }
        let numbered = commands("curl a3 2> b").unwrap();
        assert_eq!(numbered[0].words, ["curl", "a3"]);
        for (text, runs) in [
            ("$ curl a", &[true][..]),
            ("echo; /bin/curl a", &[false, true]),
            ("curl a && curl b & curl c\ncurl d", &[true; 4]),
            ("curl a | curl b || curl c\ncurl 'd", &[true, false, false, false]),
        ] {
            let split = commands(text).unwrap();
            let found: Vec<bool> = split.iter().map(ShellCommand::runs_curl).collect();
            assert_eq!(found, runs, "{text}");
        }
    }

    #[test]
    fn substitutions_are_named_and_stay_in_their_word() {
        for (line, words, substitutions) in [
            ("$ID/\"b $T-${U:-{}}\"", &["$ID/b $T-${U:-{}}"][..], &["$ID", "$T", "${U:-{}}"][..]),
            (
                "a$(date \")\" $(b)) \"`c \"d\"`\" e",
                &["a$(date \")\" $(b))", "`c \"d\"`", "e"],
                &["$(date \")\" $(b))", "`c \"d\"`"],
            ),
            // What stands for itself.
            ("'$a' $'$b' \\$c \"\\$d \\`\"", &["$a", "$b", "$c", "$d `"], &[]),
            ("$ $1 \"$\" $? ${} $ü", &["$", "$1", "$", "$?", "${}", "$ü"], &[]),
        ] {
            let split = commands(&format!("- {line}")).unwrap();
            assert_eq!(split.len(), 1, "{line}: {split:?}");
            assert_eq!(split[0].words[1..], *words, "{line}");
            assert_eq!(split[0].substitutions, substitutions, "{line}");
        }
    }

    #[test]
    fn open_quotes_are_refused() {
        for line in ["'a", "\"a", "\"a\\", "$'a", "$'a\\", r"$'\ud800'", "$(a", "`a", "\"${a\""] {
            assert!(commands(line).is_err(), "{line}");
        }
    }
}
