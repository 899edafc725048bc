//! Commands as the command prompt of Windows splits them.

use super::command::ShellCommand;
use std::str::CharIndices;

/// Whether a text is quoted for the command prompt, whose lines browsers copy with `^` before each
/// sign. No other shell has `^"`, or `^` at the end of a line. Firefox needs no caret in a line
/// whose quotes are doubled, as those of JSON.
pub(super) fn is_of_prompt(text: &str) -> bool {
    let continues = |line: &str| line.trim_end().ends_with(" ^");
    let doubles = |begin: &&str| text.contains(&format!(" \"{begin}\"\""));
    text.contains(" ^\"") || text.lines().any(continues) || ["{", "[", "[{"].iter().any(doubles)
}

/// A character behind the carets.
struct PromptChar {
    at: usize,
    sign: char,
    /// Whether it stands for itself, behind a caret or between quotes.
    is_text: bool,
}

/// The characters of a text without its carets. A caret makes the next character literal; at the
/// end of a line it continues the line. Between plain quotes a caret stands for itself.
struct PromptChars<'a> {
    chars: CharIndices<'a>,
    is_quoted: bool,
}

impl Iterator for PromptChars<'_> {
    type Item = PromptChar;

    fn next(&mut self) -> Option<PromptChar> {
        let (at, sign) = self.chars.next()?;
        if sign != '^' || self.is_quoted {
            let is_text = self.is_quoted;
            self.is_quoted ^= sign == '"';
            return Some(PromptChar { at, sign, is_text });
        }
        let (at, sign) = match self.chars.next()? {
            (_, '\n') => self.chars.next()?,
            next => next,
        };
        Some(PromptChar { at, sign, is_text: true })
    }
}

/// The first command of a text whose lines end in `\n`, and the text behind it.
///
/// Its words follow the rules of the C runtime of Windows. Blanks divide outside of quotes,
/// backslashes escape only before a quote, and two quotes between quotes are one.
pub(super) fn command(text: &str) -> (ShellCommand, &str) {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    let mut backslashes = 0usize;
    let mut end = text.len();
    let mut chars = PromptChars { chars: text.char_indices(), is_quoted: false }.peekable();
    while let Some(PromptChar { at, sign, is_text }) = chars.next() {
        if sign == '\\' {
            backslashes += 1;
            word.get_or_insert_default().push(sign);
            continue;
        }
        let before = std::mem::take(&mut backslashes);
        match sign {
            '"' => {
                let word = word.get_or_insert_default();
                let kept = word.len() - before.div_ceil(2);
                word.truncate(kept);
                let mut is_doubled = || chars.next_if(|next| next.sign == '"').is_some();
                if before % 2 == 1 || is_quoted && is_doubled() {
                    word.push('"');
                } else {
                    is_quoted = !is_quoted;
                }
            }
            ' ' | '\t' if !is_quoted => words.extend(word.take()),
            // An empty line.
            '\n' if !is_quoted && word.is_none() && (is_text || words.is_empty()) => {}
            '\n' | '&' | '|' | '<' | '>' if !is_quoted && !is_text => {
                end = at;
                break;
            }
            sign => word.get_or_insert_default().push(sign),
        }
    }
    words.extend(word);
    (ShellCommand { words, ..ShellCommand::default() }, &text[end..])
}

#[cfg(test)]
mod tests {
    use super::super::shell::commands;
    use super::*;

    #[test]
    fn lines_of_the_windows_command_prompt_are_split() {
        for (line, words) in [
            (
                "curl ^\"http://h/a^&b^\" ^\n  -H ^\"a: \\^\"b\\^\" ^%^41^\"",
                &["curl", "http://h/a&b", "-H", "a: \"b\" %41"][..],
            ),
            (
                "curl \"http://h/?a^b\" ^\r\n -d \"{\\\"c\\\": \\\\\" -s",
                &["curl", "http://h/?a^b", "-d", "{\"c\": \\", "-s"],
            ),
            ("curl ^\"a^\n\nb^\" c:\\d", &["curl", "a\nb", "c:\\d"]),
            // Quotes that are doubled, and line ends behind a caret between quoted parts.
            (
                "curl ^\n -H \"x-q: a\"\"b\" -d \"{\"\"a\"\":1}\" \"\" \"\"\"c\"",
                &["curl", "-H", "x-q: a\"b", "-d", "{\"a\":1}", "", "\"c"],
            ),
            ("curl h -d \"{\"\"a\"\":\"\"b c\"\"}\"", &["curl", "h", "-d", "{\"a\":\"b c\"}"]),
            ("curl h -d \"[\"\"a\"\"]\"", &["curl", "h", "-d", "[\"a\"]"]),
            ("\ncurl \"a\"^\n\n\"b\" ^\n\n -s\n\n", &["curl", "a\nb", "-s"]),
            // The prompt would end the command within the JSON; curl has it whole elsewhere.
            (
                "curl ^\n -d \"{\\\"a\\\":\\\"b&c\\\"}\" \"d|e\nf\"",
                &["curl", "-d", "{\"a\":\"b&c\"}", "d|e\nf"],
            ),
        ] {
            assert!(is_of_prompt(line), "{line}");
            let split = commands(line).unwrap();
            assert_eq!(split.len(), 1, "{line}");
            assert_eq!(split[0].words, words, "{line}");
        }
        for line in [
            "curl h -d '{\"a\": \"\"}' -H \"X: \"\"y\"",
            "curl h -d '[ \"{\", \"\"]' -d \"\"",
            "curl h -d \"{}\" -d \"[]\"",
        ] {
            assert!(!is_of_prompt(line), "{line}");
        }
    }

    #[test]
    fn line_ends_and_operators_end_a_command_of_the_prompt() {
        let text = "curl ^\"a^&b^\" ^\r\n -s &\r\ncurl \"c\" 2>nul | find \"&\"\r\n\r\ncurl d\r\n";
        let split = commands(text).unwrap();
        let texts: Vec<&str> = split.iter().map(|command| command.text.as_str()).collect();
        let expected =
            ["curl ^\"a^&b^\" ^\n -s", "&\ncurl \"c\" 2", ">nul", "| find \"&\"", "curl d"];
        assert_eq!(texts, expected);
        assert_eq!(split[0].words, ["curl", "a&b", "-s"]);
        assert_eq!(split[1].words, ["curl", "c"]);
        let runs: Vec<bool> = split.iter().map(ShellCommand::runs_curl).collect();
        assert_eq!(runs, [true, true, false, false, true]);
    }
}
