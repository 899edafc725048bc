//! A script of k6, as far as its requests stand in it literally. It is not run: what depends on
//! what happens is named as left out, with its line.

mod options;
mod tokens;
mod value;

use super::collect::{Collector, SourceRequest};
use super::{Imported, as_text, error};
use knee_load::quantity::ParseError;
use knee_load::time::Nanos;
use std::collections::HashMap;
use tokens::{JsToken, tokens};
use value::{JsReader, JsValue};

/// The largest script.
const SCRIPT_MAX: usize = 4 << 20;
/// How many tokens are looked at, those that are looked at again among them.
const FUEL: usize = 20_000_000;

/// Imports the calls of `http`, the pauses and the load.
///
/// # Errors
/// One line: no text, too large, no call that a scenario can have.
pub fn k6(bytes: &[u8]) -> Result<Imported, ParseError> {
    let text = as_text(bytes, "the script")?;
    if text.len() > SCRIPT_MAX {
        return error("the script is larger than 4 MiB");
    }
    let tokens = tokens(text);
    let mut script = K6Script {
        values: JsReader { tokens: &tokens, names: HashMap::new(), fuel: FUEL },
        tokens: &tokens,
        all: Collector::default(),
        blocks: Vec::new(),
    };
    script.read();
    script.all.finish("the script has no literal call of http that a scenario can have")
}

/// A block whose steps may be done more than once, or not at all.
struct SkippedBlock {
    end: usize,
    line: usize,
    what: &'static str,
    /// How many steps there were before it.
    steps: usize,
}

struct K6Script<'a> {
    values: JsReader<'a>,
    tokens: &'a [JsToken],
    all: Collector,
    blocks: Vec<SkippedBlock>,
}

impl K6Script<'_> {
    fn read(&mut self) {
        let mut at = 0;
        while at < self.tokens.len() {
            while let Some(block) = self.blocks.pop_if(|block| block.end <= at) {
                if self.all.len() > block.steps {
                    let SkippedBlock { line, what, .. } = block;
                    self.all.leave_out(format!("line {line}: {what}"));
                }
            }
            at = self.step(at);
        }
        if self.values.fuel == 0 {
            self.all.leave_out("what follows: the script is too large");
        }
    }

    /// What begins at `at`; where it goes on.
    fn step(&mut self, at: usize) -> usize {
        let Some(name) = self.values.name(at).map(str::to_owned) else {
            return at + 1;
        };
        let opens = self.values.sign(at + 1) == Some('(');
        let is_member = at > 0 && self.values.sign(at - 1) == Some('.');
        match name.as_str() {
            "const" | "let" | "var" => self.bind(at + 1),
            "http" if self.values.sign(at + 1) == Some('.') => return self.http(at),
            "sleep" if opens && !is_member => self.sleep(at),
            "check" if opens && !is_member => {
                self.leave_out(at, "check: write 'expect' into the step");
            }
            "ws" | "grpc" if self.values.sign(at + 1) == Some('.') => {
                self.leave_out(at, &format!("a call of {name}"));
            }
            "open" | "SharedArray" if opens && !is_member => {
                self.leave_out(at, "data of a file: write 'data'");
            }
            "for" | "while" if opens => {
                self.block(at, "a loop: its steps are done once");
            }
            "if" if opens => self.block(at, "a condition: its steps are always done"),
            "function" => return self.function(at),
            _ => {}
        }
        at + 1
    }

    fn leave_out(&mut self, at: usize, what: &str) {
        let line = self.tokens.get(at).map_or(0, |token| token.line);
        self.all.leave_out(format!("line {line}: {what}"));
    }

    /// `NAME = VALUE` behind `const`.
    fn bind(&mut self, at: usize) {
        let Some(name) = self.values.name(at).map(str::to_owned) else {
            return;
        };
        if self.values.sign(at + 1) != Some('=') {
            return;
        }
        let value = self.values.value(at + 2, 0).map(|(value, _)| value);
        match (value, name.as_str()) {
            (Some(value), "options") => options::read(&value, &mut self.all),
            (None, "options") => self.leave_out(at, "options: they are not literal"),
            (Some(value), _) => drop(self.values.names.insert(name, value)),
            // What the name meant before is no longer so.
            (None, _) => drop(self.values.names.remove(&name)),
        }
    }

    fn sleep(&mut self, at: usize) {
        match self.values.arguments(at + 1).first() {
            Some(Some(JsValue::Number(seconds))) if (0.0..=86_400.0).contains(seconds) => {
                self.all.think(Nanos::from_millis((seconds * 1e3) as u64));
            }
            _ => self.leave_out(at, "sleep: its time is not literal; write 'think'"),
        }
    }

    /// Steps in a block are done once here.
    fn block(&mut self, at: usize, what: &'static str) {
        let head_end = self.values.behind_brackets(at + 1);
        let end = match self.values.sign(head_end) {
            Some('{') => self.values.behind_brackets(head_end),
            _ => {
                let is_end = |at: &usize| self.values.sign(*at) == Some(';');
                let mut rest = head_end..self.tokens.len().min(head_end + 100);
                rest.find(is_end).unwrap_or(head_end)
            }
        };
        self.blocks.push(SkippedBlock {
            end,
            line: self.tokens.get(at).map_or(0, |token| token.line),
            what,
            steps: self.all.len(),
        });
    }

    /// What is done once in a test is no step of a user.
    fn function(&mut self, at: usize) -> usize {
        let name = self.values.name(at + 1).unwrap_or_default().to_owned();
        if !matches!(name.as_str(), "setup" | "teardown" | "handleSummary") {
            return at + 1;
        }
        self.leave_out(at, &format!("function {name}"));
        let head_end = self.values.behind_brackets(at + 2);
        self.values.behind_brackets(head_end)
    }

    /// `http.get(…)` and its kin.
    fn http(&mut self, at: usize) -> usize {
        let Some(call) = self.values.name(at + 2).map(str::to_owned) else {
            return at + 1;
        };
        let method = match call.as_str() {
            "del" => "DELETE".to_owned(),
            "get" | "head" | "post" | "put" | "patch" | "options" => call.to_ascii_uppercase(),
            "request" | "asyncRequest" => String::new(),
            _ => {
                if self.values.sign(at + 3) == Some('(') {
                    self.leave_out(at, &format!("http.{call}"));
                }
                return at + 3;
            }
        };
        if self.values.sign(at + 3) != Some('(') {
            return at + 3;
        }
        let arguments = self.values.arguments(at + 3);
        match self.draft(method, arguments) {
            Ok(draft) => drop(self.all.request(draft)),
            Err(what) => self.leave_out(at, &format!("http.{call}: {what} is not literal")),
        }
        at + 4
    }

    fn draft(
        &mut self,
        method: String,
        arguments: Vec<Option<JsValue>>,
    ) -> Result<SourceRequest, &'static str> {
        let mut arguments = arguments.into_iter();
        let mut text = |what| match arguments.next() {
            Some(Some(JsValue::Text(text))) => Ok(text),
            _ => Err(what),
        };
        let method = match method.as_str() {
            "" => text("its method")?,
            _ => method,
        };
        let url = text("its URL")?;
        let mut draft = SourceRequest { url: url.into(), ..SourceRequest::default() };
        if !matches!(method.as_str(), "GET" | "HEAD") {
            match arguments.next() {
                None | Some(Some(JsValue::Null)) => {}
                Some(Some(JsValue::Text(body))) => draft.body = body.into_bytes(),
                Some(Some(object)) => draft.form(&object.form().ok_or("its body")?),
                Some(None) => return Err("its body"),
            }
        }
        match arguments.next() {
            Some(None) => return Err("what follows its URL"),
            Some(Some(parameters)) => self.parameters(&parameters, &mut draft),
            None => {}
        }
        draft.method = method;
        Ok(draft)
    }

    fn parameters(&mut self, parameters: &JsValue, draft: &mut SourceRequest) {
        let JsValue::Object(parts) = parameters else {
            return;
        };
        for (name, value) in parts {
            match (name.as_str(), value) {
                ("headers", JsValue::Object(headers)) => {
                    for (name, value) in headers {
                        let value = value.text().unwrap_or_default();
                        draft.headers.retain(|h| !h.0.eq_ignore_ascii_case(name));
                        draft.headers.push((name.clone(), value.into()));
                    }
                }
                ("tags", tags) => {
                    draft.name = tags.get("name").and_then(JsValue::text);
                }
                (other, _) => self.all.leave_out(format!("parameter {other} of a call")),
            }
        }
    }
}
