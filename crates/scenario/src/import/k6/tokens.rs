//! The words of a script in JavaScript, as far as literals need them.

/// One of them, and its line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsToken {
    pub(super) line: usize,
    pub(super) kind: JsTokenKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum JsTokenKind {
    /// A name or a keyword.
    Name(String),
    Number(f64),
    Text(String),
    /// A text in backquotes: its parts, and the names in `${…}` between them. `None`: something
    /// else than a name stands there.
    Template(Option<Vec<JsTemplatePart>>),
    Sign(char),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum JsTemplatePart {
    Text(String),
    Name(String),
}

/// All of them; what is none is left out.
pub(super) fn tokens(script: &str) -> Vec<JsToken> {
    let mut reader = Tokenizer { rest: script, line: 1 };
    let mut all = Vec::new();
    loop {
        reader.skip_blanks();
        let line = reader.line;
        match reader.next() {
            Some(kind) => all.push(JsToken { line, kind }),
            None => return all,
        }
    }
}

struct Tokenizer<'a> {
    rest: &'a str,
    line: usize,
}

impl Tokenizer<'_> {
    fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        self.line += passed.matches('\n').count();
        self.rest = rest;
    }

    /// Blanks and comments.
    fn skip_blanks(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            let length = match self.rest.get(..2) {
                Some("//" | "#!") => self.rest.find('\n').unwrap_or(self.rest.len()),
                Some("/*") => match self.rest[2..].find("*/") {
                    Some(end) => end + 4,
                    None => self.rest.len(),
                },
                _ => return,
            };
            self.advance(length);
        }
    }

    fn next(&mut self) -> Option<JsTokenKind> {
        let c = self.rest.chars().next()?;
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        if c.is_ascii_digit() {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
            let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
            let digits = self.rest[..end].replace('_', "");
            self.advance(end);
            return Some(match digits.parse() {
                Ok(number) => JsTokenKind::Number(number),
                Err(_) => JsTokenKind::Name(digits),
            });
        }
        if is_name(c) {
            let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
            let name = self.rest[..end].to_owned();
            self.advance(end);
            return Some(JsTokenKind::Name(name));
        }
        if matches!(c, '"' | '\'')
            && let Some((text, length)) = text(self.rest, c)
        {
            self.advance(length);
            return Some(JsTokenKind::Text(text));
        }
        if c == '`'
            && let Some((parts, length)) = template(self.rest)
        {
            self.advance(length);
            return Some(JsTokenKind::Template(parts));
        }
        self.advance(c.len_utf8());
        Some(JsTokenKind::Sign(c))
    }
}

/// A text in quotes of this kind, and its length in the script; `None`: its line ends before.
fn text(script: &str, quote: char) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut at = 1;
    loop {
        let c = script[at..].chars().next()?;
        at += c.len_utf8();
        match c {
            c if c == quote => return Some((text, at)),
            '\n' => return None,
            '\\' => at += escape(&script[at..], &mut text)?,
            c => text.push(c),
        }
    }
}

/// What a text in backquotes holds, and its length in the script.
fn template(script: &str) -> Option<(Option<Vec<JsTemplatePart>>, usize)> {
    let mut parts = Some(Vec::new());
    let mut text = String::new();
    let mut at = 1;
    loop {
        let rest = &script[at..];
        let c = rest.chars().next()?;
        at += c.len_utf8();
        match c {
            '`' => {
                let last = JsTemplatePart::Text(text);
                return Some((parts.map(|parts| [parts, vec![last]].concat()), at));
            }
            '\\' => at += escape(&script[at..], &mut text)?,
            '$' if rest.starts_with("${") => {
                let end = rest.find('}')?;
                let name = rest[2..end].trim();
                let is_name = |c: char| c.is_alphanumeric() || c == '_';
                match parts.as_mut().filter(|_| !name.is_empty() && name.chars().all(is_name)) {
                    Some(parts) => {
                        parts.push(JsTemplatePart::Text(std::mem::take(&mut text)));
                        parts.push(JsTemplatePart::Name(name.to_owned()));
                    }
                    None => parts = None,
                }
                at += end;
            }
            c => text.push(c),
        }
    }
}

/// What follows a backslash; how many bytes it has.
fn escape(rest: &str, text: &mut String) -> Option<usize> {
    let c = rest.chars().next()?;
    let coded = |digits: Option<&str>| {
        let code = u32::from_str_radix(digits?, 16).ok();
        code.and_then(char::from_u32)
    };
    let simple = match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '0' => '\0',
        '\n' => return Some(1),
        'x' | 'u' => {
            let length = if c == 'x' { 3 } else { 5 };
            text.push(coded(rest.get(1..length)).unwrap_or('\u{fffd}'));
            return Some(length.min(rest.len()).max(1)).filter(|at| rest.is_char_boundary(*at));
        }
        other => other,
    };
    text.push(simple);
    Some(c.len_utf8())
}
