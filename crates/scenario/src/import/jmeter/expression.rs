//! Texts of a test plan: variables and calls of functions between `${` and `}`.

use std::iter::Peekable;
use std::str::Chars;

/// How deep calls may lie in one another.
const DEPTH_MAX: usize = 16;

/// A part of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JmeterPart {
    /// Text as it is.
    Text(String),
    /// `${name}`, whose name may be made of parts.
    Variable(Vec<JmeterPart>),
    /// `${__name(arguments)}`.
    Call(String, Vec<Vec<JmeterPart>>),
}

/// The parts of a text. As in JMeter, backslashes escape only where there is a variable or a call.
pub(super) fn parts(text: &str) -> Vec<JmeterPart> {
    let plain = || vec![JmeterPart::Text(text.to_owned())];
    if !text.contains("${") {
        return if text.is_empty() { Vec::new() } else { plain() };
    }
    let mut reader = ExpressionReader { chars: text.chars().peekable(), depth: 0 };
    let parts = reader.parts(|_| false);
    if parts.iter().all(|part| matches!(part, JmeterPart::Text(_))) { plain() } else { parts }
}

/// The text that parts were read from, as far as it matters.
pub(super) fn written(parts: &[JmeterPart]) -> String {
    let part = |part: &JmeterPart| match part {
        JmeterPart::Text(text) => text.clone(),
        JmeterPart::Variable(name) => format!("${{{}}}", written(name)),
        JmeterPart::Call(name, arguments) => {
            let arguments: Vec<String> = arguments.iter().map(|one| written(one)).collect();
            format!("${{{name}({})}}", arguments.join(","))
        }
    };
    parts.iter().map(part).collect()
}

struct ExpressionReader<'t> {
    chars: Peekable<Chars<'t>>,
    depth: usize,
}

impl ExpressionReader<'_> {
    /// Reads up to a character that ends the parts, which is left there.
    fn parts(&mut self, mut is_end: impl FnMut(char) -> bool) -> Vec<JmeterPart> {
        let (mut parts, mut text) = (Vec::new(), String::new());
        while let Some(c) = self.chars.next_if(|c| !is_end(*c)) {
            match c {
                '\\' => match self.chars.next() {
                    Some(next @ ('$' | ',' | '\\')) => text.push(next),
                    Some(next) => text.extend(['\\', next]),
                    None => text.push('\\'),
                },
                '$' if self.depth < DEPTH_MAX && self.chars.next_if_eq(&'{').is_some() => {
                    self.depth += 1;
                    let part = self.reference();
                    self.depth -= 1;
                    match part {
                        Ok(part) => {
                            if !text.is_empty() {
                                parts.push(JmeterPart::Text(std::mem::take(&mut text)));
                            }
                            parts.push(part);
                        }
                        Err(unfinished) => text.push_str(&unfinished),
                    }
                }
                c => text.push(c),
            }
        }
        if !text.is_empty() {
            parts.push(JmeterPart::Text(text));
        }
        parts
    }

    /// What follows `${`; text where there is no end.
    fn reference(&mut self) -> Result<JmeterPart, String> {
        let mut name = self.parts(|c| matches!(c, '}' | '('));
        if self.chars.next_if_eq(&'}').is_some() {
            return Ok(match &name[..] {
                // `__jm__Loop__idx` is a variable, whatever it looks like.
                [JmeterPart::Text(call)]
                    if call.trim().starts_with("__") && !call.trim().starts_with("__jm__") =>
                {
                    JmeterPart::Call(call.trim().to_owned(), Vec::new())
                }
                _ => JmeterPart::Variable(name),
            });
        }
        if self.chars.next_if_eq(&'(').is_none() {
            return Err(format!("${{{}", written(&name)));
        }
        let function = match &name[..] {
            [JmeterPart::Text(text)] if text.trim_start().starts_with("__") => {
                text.trim().to_owned()
            }
            _ => {
                // A parenthesis in the name of a variable.
                name.push(JmeterPart::Text("(".to_owned()));
                name.extend(self.parts(|c| c == '}'));
                return match self.chars.next() {
                    Some(_) => Ok(JmeterPart::Variable(name)),
                    None => Err(format!("${{{}", written(&name))),
                };
            }
        };
        let mut arguments = Vec::new();
        loop {
            let mut open = 0_usize;
            let argument = self.parts(|c| {
                match c {
                    '(' => open += 1,
                    ')' if open > 0 => {
                        open -= 1;
                        return false;
                    }
                    _ => {}
                }
                c == ')' || c == ','
            });
            arguments.push(argument);
            match self.chars.next() {
                Some(',') => {}
                Some(_) => break,
                None => return Err(written(&[JmeterPart::Call(function, arguments)])),
            }
        }
        // What stands between `)` and `}` has no effect.
        while self.chars.next().is_some_and(|c| c != '}') {}
        Ok(JmeterPart::Call(function, arguments))
    }
}
