//! Templates: `/items?page=${random(1,50)}` as pieces in which no name is left.

use super::ScenarioInputs;
use super::fault::{Read, fault, unknown};
use super::fields::text;
use super::names::{FUNCTIONS, Names, TemplateScope, is_name_part, is_name_start};
use super::tree::{Node, Scalar};
use knee_load::quantity::quoted;
use knee_load::session::TemplatePiece;
use knee_load::session::{Function, Template, TimeFormat};

/// The deepest nesting of calls and quoted texts.
const DEPTH_MAX: usize = 16;

/// Reads the template in a value.
pub(super) fn read(node: &Node, scalar: &Scalar, scope: &mut TemplateScope<'_>) -> Read<Template> {
    read_apart(node, scalar, scope).map(joined)
}

/// Reads the template in a value that is no list, no map and not nothing. `expected` describes it.
pub(super) fn read_text(
    node: &Node,
    expected: &str,
    scope: &mut TemplateScope<'_>,
) -> Read<Template> {
    read(node, text(node, expected)?, scope)
}

/// Reads a text that is settled before any session begins.
pub(super) fn read_settled(
    node: &Node,
    expected: &str,
    inputs: &mut dyn ScenarioInputs,
) -> Read<String> {
    let names = &Names { is_static: true, ..Names::default() };
    let template = read_text(node, expected, &mut TemplateScope { names, inputs })?;
    // No other pieces can stand in it.
    Ok(constant(&template).unwrap_or_default())
}

/// Reads the template in a value, its own text apart from the values in it.
pub(super) fn read_apart(
    node: &Node,
    scalar: &Scalar,
    scope: &mut TemplateScope<'_>,
) -> Read<Vec<TemplatePart>> {
    parse(&scalar.text, scope).or_else(|wrong| {
        let before = scalar.text.get(..wrong.at).unwrap_or_default();
        let at = match scalar.begins {
            Some(begins) => begins.right(before.chars().count()),
            None => node.at,
        };
        fault(at, wrong.what)
    })
}

/// A part of a template as it is written.
#[derive(Debug, PartialEq)]
pub(super) enum TemplatePart {
    /// Its own text, which has any encoding already that its place needs.
    Text(String),
    /// What `${…}` stands for; a text where that is settled before the run.
    Value(TemplatePiece),
}

/// The template in which text and settled values are one.
fn joined(written: Vec<TemplatePart>) -> Template {
    let mut pieces = Vec::new();
    for part in written {
        match part {
            TemplatePart::Text(text) | TemplatePart::Value(TemplatePiece::Text(text)) => {
                push_text(&mut pieces, text);
            }
            TemplatePart::Value(piece) => pieces.push(piece),
        }
    }
    Template(pieces)
}

/// What is wrong with a template, and before which byte of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TemplateError {
    pub(super) at: usize,
    pub(super) what: String,
}

/// Reads a template.
pub(super) fn parse(
    text: &str,
    scope: &mut TemplateScope<'_>,
) -> Result<Vec<TemplatePart>, TemplateError> {
    let mut parser = TemplateParser { text, at: 0, depth: 0, scope };
    parser.written(None)
}

/// The text of a template that has no other pieces.
pub(super) fn constant(template: &Template) -> Option<String> {
    let text = |piece: &TemplatePiece| match piece {
        TemplatePiece::Text(text) => Some(text.clone()),
        _ => None,
    };
    template.0.iter().map(text).collect()
}

struct TemplateParser<'a, 's> {
    text: &'a str,
    /// The byte that is read next.
    at: usize,
    depth: usize,
    scope: &'a mut TemplateScope<'s>,
}

/// What stands between the brackets of a call.
enum Argument<'a> {
    Word(&'a str),
    Number(&'a str),
    Text(Template),
    Call(TemplatePiece),
}

impl Argument<'_> {
    /// The word or text of the argument; empty if it is a number or a call.
    fn word(self) -> String {
        match self {
            Argument::Word(name) => name.to_owned(),
            Argument::Text(template) => constant(&template).unwrap_or_default(),
            Argument::Number(_) | Argument::Call(_) => String::new(),
        }
    }
}

/// Names and calls other than `env` have no value before a session begins.
const ONLY_ENV: &str = "this is settled before any session begins: only env(NAME) can stand here";

impl<'a> TemplateParser<'a, '_> {
    /// Text up to its end, or to this quote, which is consumed.
    fn written(&mut self, end: Option<char>) -> Result<Vec<TemplatePart>, TemplateError> {
        let begin = self.at;
        let mut parts = Vec::new();
        let mut literal = String::new();
        loop {
            let rest = self.rest();
            if rest.starts_with("$${") {
                literal.push_str("${");
                self.at += 3;
            } else if rest.starts_with("${") {
                if !literal.is_empty() {
                    parts.push(TemplatePart::Text(std::mem::take(&mut literal)));
                }
                parts.push(TemplatePart::Value(self.expression()?));
            } else {
                match rest.chars().next() {
                    Some(c) if Some(c) == end => {
                        self.at += c.len_utf8();
                        break;
                    }
                    Some(c) => {
                        literal.push(c);
                        self.at += c.len_utf8();
                    }
                    None if end.is_some() => {
                        return wrong(begin, "this text has no end: close the quote");
                    }
                    None => break,
                }
            }
        }
        if !literal.is_empty() {
            parts.push(TemplatePart::Text(literal));
        }
        Ok(parts)
    }

    /// From `${` to its `}`.
    fn expression(&mut self) -> Result<TemplatePiece, TemplateError> {
        let begin = self.at;
        self.at += 2;
        let at = self.blanks();
        let argument = self.argument()?;
        let piece = match argument {
            Argument::Word(name) => self.name(name, at)?,
            Argument::Call(piece) => piece,
            Argument::Number(_) | Argument::Text(_) => {
                return wrong(
                    at,
                    "expected a name or a call: write '${name}', '${data.column}' or '${uuid()}'; \
                     '$${' is a plain '${'",
                );
            }
        };
        self.blanks();
        if self.eat('}') {
            return Ok(piece);
        }
        if self.rest().is_empty() {
            let what = "'${' has no '}': close it, or write '$${' for a plain '${'";
            return wrong(begin, what);
        }
        let next: String = self.rest().chars().take(1).collect();
        let what =
            format!("expected '}}' before {}: a template has one name or one call", quoted(&next));
        wrong(self.at, what)
    }

    fn argument(&mut self) -> Result<Argument<'a>, TemplateError> {
        let at = self.at;
        match self.rest().chars().next() {
            Some(quote @ ('\'' | '"')) => {
                self.at += 1;
                let written = self.deeper(|parser| parser.written(Some(quote)))?;
                Ok(Argument::Text(joined(written)))
            }
            Some(c) if c == '-' || c == '+' || c.is_ascii_digit() => {
                let is_part = |c: char| "+-.".contains(c) || c.is_ascii_alphanumeric();
                Ok(Argument::Number(self.take(is_part)))
            }
            Some(c) if is_name_start(c) => {
                let name = self.take(|c| is_name_part(c) || c == '.');
                self.blanks();
                if self.eat('(') {
                    self.deeper(|parser| parser.call(name, at)).map(Argument::Call)
                } else {
                    Ok(Argument::Word(name))
                }
            }
            Some('}') => wrong(at, "nothing stands here: write a name or a call"),
            Some(c) => {
                let what =
                    format!("{} begins no name: expected a letter or '_'", quoted(&c.to_string()));
                wrong(at, what)
            }
            None => wrong(at, "the template ends here: expected a name or a call, and '}'"),
        }
    }

    /// A call, from behind its `(` on.
    fn call(&mut self, name: &str, at: usize) -> Result<TemplatePiece, TemplateError> {
        if !FUNCTIONS.iter().any(|function| function.0 == name) {
            let known = FUNCTIONS.iter().map(|function| function.0);
            return wrong(at, unknown("function", name, known));
        }
        let mut arguments = Vec::new();
        self.blanks();
        if !self.eat(')') {
            loop {
                let at = self.blanks();
                arguments.push((self.argument()?, at));
                self.blanks();
                if self.eat(')') {
                    break;
                }
                if !self.eat(',') {
                    return wrong(self.at, format!("expected ',' or ')' in the call of {name}"));
                }
            }
        }
        self.function(name, arguments, at)
    }

    fn function(
        &mut self,
        name: &str,
        arguments: Vec<(Argument<'a>, usize)>,
        at: usize,
    ) -> Result<TemplatePiece, TemplateError> {
        let mut arguments = arguments.into_iter();
        let (first, second) = (arguments.next(), arguments.next());
        let function = match (name, first, second, arguments.next()) {
            ("uuid", None, ..) => Function::Uuid,
            ("seq", None, ..) => Function::Seq,
            ("now", None, ..) => Function::Now(TimeFormat::UnixMs),
            ("now", Some(form), None, _) => Function::Now(moment(form)?),
            ("random", Some(low), Some(high), None) => {
                let (low, high) = (integer(low)?, integer(high)?);
                if low > high {
                    let what = format!(
                        "random({low},{high}) has its ends the wrong way round: write \
                            random({high},{low})"
                    );
                    return wrong(at, what);
                }
                Function::Random { low, high }
            }
            ("env", Some(variable), None, _) => return self.env(variable),
            ("base64", Some(text), None, _) => Function::Base64(self.value(text)?),
            ("urlencode", Some(text), None, _) => Function::UrlEncode(self.value(text)?),
            ("raw", Some(text), None, _) => Function::Raw(self.value(text)?),
            ("hmac_sha256", Some(key), Some(message), None) => {
                Function::HmacSha256 { key: self.value(key)?, message: self.value(message)? }
            }
            _ => {
                let shape = FUNCTIONS.iter().find(|function| function.0 == name);
                let shape = shape.map_or("", |function| function.1);
                return wrong(at, format!("wrong number of arguments for {name}: write {shape}"));
            }
        };
        if self.scope.names.is_static {
            wrong(at, ONLY_ENV)
        } else {
            Ok(TemplatePiece::Call(Box::new(function)))
        }
    }

    /// What the environment has, settled now.
    fn env(
        &mut self,
        (argument, at): (Argument<'a>, usize),
    ) -> Result<TemplatePiece, TemplateError> {
        let name = argument.word();
        if name.is_empty() || name.contains(['=', '\0']) {
            return wrong(at, "env takes the name of an environment variable: write env(NAME)");
        }
        match self.scope.inputs.variable(&name) {
            Some(value) => Ok(TemplatePiece::Text(value)),
            None => {
                let name = quoted(&name);
                wrong(
                    at,
                    format!("the environment variable {name} is not set: set it before the run"),
                )
            }
        }
    }

    /// The value of an argument.
    fn value(&mut self, (argument, at): (Argument<'a>, usize)) -> Result<Template, TemplateError> {
        let piece = match argument {
            Argument::Text(template) => return Ok(template),
            Argument::Number(number) => TemplatePiece::Text(number.to_owned()),
            Argument::Word(name) => self.name(name, at)?,
            Argument::Call(piece) => piece,
        };
        Ok(Template(vec![piece]))
    }

    fn name(&self, name: &str, at: usize) -> Result<TemplatePiece, TemplateError> {
        if self.scope.names.is_static {
            return wrong(at, ONLY_ENV);
        }
        match name.split_once('.') {
            Some(("setup", variable))
                if !self.scope.names.all_data.iter().any(|d| d == "setup") =>
            {
                self.given(variable, at + "setup.".len())
            }
            Some((data, column)) => self.column(data, column, at),
            None => self.variable(name, at),
        }
    }

    fn variable(&self, name: &str, at: usize) -> Result<TemplatePiece, TemplateError> {
        let variables = &self.scope.names.variables;
        let number = variables.iter().position(|(other, _)| other == name);
        if let Some(number) = number.filter(|&number| variables[number].1) {
            return Ok(TemplatePiece::Variable(number as u16));
        }
        let what = if number.is_some() {
            let shown = quoted(name);
            format!("{shown} has no value yet: it has one only after the step that sets it")
        } else if let Some((_, shape)) = FUNCTIONS.iter().find(|function| function.0 == name) {
            format!("{name} is a function: write {shape}")
        } else if self.scope.names.data.iter().any(|(data, _)| data == name) {
            format!("'{name}' is a set of records: write '${{{name}.COLUMN}}'")
        } else {
            self.scope.names.unknown_variable(name)
        };
        wrong(at, what)
    }

    /// A variable of `setup`.
    fn given(&self, name: &str, at: usize) -> Result<TemplatePiece, TemplateError> {
        let known = &self.scope.names.setup;
        match known.iter().position(|other| other == name) {
            Some(number) => Ok(TemplatePiece::Setup(number as u16)),
            None if known.is_empty() => {
                wrong(at, "there is no 'setup' that sets variables before this: write one")
            }
            None => {
                let known = known.iter().map(String::as_str);
                wrong(at, unknown("variable of 'setup'", name, known))
            }
        }
    }

    fn column(&self, data: &str, column: &str, at: usize) -> Result<TemplatePiece, TemplateError> {
        let sets = &self.scope.names.data;
        let Some(number) = sets.iter().position(|(name, _)| name == data) else {
            let shown = quoted(data);
            let what = if self.scope.names.all_data.iter().any(|name| name == data) {
                format!("this session is dealt no record of {shown}: add 'data: {data}' to it")
            } else {
                let all = self.scope.names.all_data.iter().map(String::as_str);
                unknown("set of records", data, all)
            };
            return wrong(at, what);
        };
        let columns = &sets[number].1;
        match columns.iter().position(|name| name == column) {
            Some(column) => {
                Ok(TemplatePiece::Column { data: number as u16, column: column as u16 })
            }
            None => {
                let known = columns.iter().map(String::as_str);
                let what = unknown(&format!("column of '{data}'"), column, known);
                wrong(at + data.len() + 1, what)
            }
        }
    }

    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, TemplateError>,
    ) -> Result<T, TemplateError> {
        if self.depth >= DEPTH_MAX {
            let what = format!(
                "this is nested too deeply: expected at most {DEPTH_MAX} calls in one another"
            );
            return wrong(self.at, what);
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Leaves blanks out, and says where it goes on.
    fn blanks(&mut self) -> usize {
        self.take(|c| c == ' ' || c == '\t');
        self.at
    }

    fn eat(&mut self, c: char) -> bool {
        let is_next = self.rest().starts_with(c);
        if is_next {
            self.at += c.len_utf8();
        }
        is_next
    }
}

const MOMENTS: [(&str, TimeFormat); 3] = [
    ("unix_ms", TimeFormat::UnixMs),
    ("unix_s", TimeFormat::UnixS),
    ("rfc3339", TimeFormat::Rfc3339),
];

fn moment((argument, at): (Argument<'_>, usize)) -> Result<TimeFormat, TemplateError> {
    let name = argument.word();
    match MOMENTS.iter().find(|(known, _)| *known == name) {
        Some(&(_, moment)) => Ok(moment),
        None => wrong(at, unknown("form of a time", &name, MOMENTS.iter().map(|m| m.0))),
    }
}

fn integer((argument, at): (Argument<'_>, usize)) -> Result<i64, TemplateError> {
    let number = match argument {
        Argument::Number(number) => number.parse().ok(),
        _ => None,
    };
    number.map_or_else(|| wrong(at, "random takes whole numbers: write random(1,50)"), Ok)
}

/// Puts text to the pieces, to the text that is last there if there is one.
fn push_text(pieces: &mut Vec<TemplatePiece>, text: String) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(TemplatePiece::Text(last)) => last.push_str(&text),
        _ => pieces.push(TemplatePiece::Text(text)),
    }
}

fn wrong<T>(at: usize, what: impl Into<String>) -> Result<T, TemplateError> {
    Err(TemplateError { at, what: what.into() })
}
