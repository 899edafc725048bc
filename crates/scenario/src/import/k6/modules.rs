//! Modules: scripts as trees, and what each imports and exports.

use super::super::grammar::LineStarts;
use super::super::wrong;
use super::interpreter::K6Interpreter;
use super::value::{FunctionCode, JsValue};
use knee_load::quantity::ParseError;
use oxc_allocator::Allocator;
use oxc_ast::ast::{Program, *};
use oxc_parser::{ParseOptions, Parser};
use oxc_span::SourceType;
use std::rc::Rc;

/// The largest script, and the most that brackets lie in one another.
const SCRIPT_MAX: usize = 2 << 20;
const DEPTH_MAX: usize = 150;
/// The most signs and words that can begin something inside something else, wherever they stand:
/// the parser calls itself for each of them at most.
const NESTING_MAX: usize = 40_000;
/// The bytes of stack that scripts need: 4.2 KiB were measured for each call of the parser.
pub const K6_STACK: usize = (64 << 20) + NESTING_MAX * (5 << 10);

/// Reads JavaScript, or TypeScript if it is not that.
///
/// # Errors
/// One line: the first mistake with its line.
fn parsed<'a>(
    text: &str,
    lines: &LineStarts,
    allocator: &'a Allocator,
) -> Result<&'a Program<'a>, ParseError> {
    if text.len() > SCRIPT_MAX {
        return Err(wrong("the script is larger than 2 MiB"));
    }
    if nesting(text) > NESTING_MAX || depth(text) > DEPTH_MAX {
        return Err(wrong("the script is nested too deeply, or has too many brackets and signs"));
    }
    let text: &'a str = allocator.alloc_str(text);
    let mut first = None;
    for kind in [SourceType::mjs(), SourceType::ts()] {
        let options = ParseOptions { preserve_parens: false, ..ParseOptions::default() };
        let read = Parser::new(allocator, text, kind).with_options(options).parse();
        if read.errors.is_empty() && !read.panicked {
            return Ok(allocator.alloc(read.program));
        }
        first = first.or(read.errors.into_iter().next());
    }
    let label = first.as_ref().and_then(|e| e.labels.as_ref()?.first().map(|l| l.offset()));
    let line = lines.line(label.unwrap_or(0));
    let what = first.map_or_else(String::new, |e| format!(": {}", e.message));
    Err(wrong(format!("line {line}: the script is no JavaScript or TypeScript{what}")))
}

/// At most how often the parser calls itself inside a call of itself.
fn nesting(text: &str) -> usize {
    let is_sign = |byte: &u8| b"([{<!~+-?:=>*@".contains(byte);
    let signs = text.bytes().filter(|byte| is_sign(byte)).count();
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
    const OPENING: [&str; 21] = [
        "await", "new", "typeof", "void", "delete", "yield", "if", "else", "for", "while", "do",
        "with", "extends", "keyof", "async", "class", "import", "infer", "readonly", "unique",
        "asserts",
    ];
    signs + words.filter(|word| OPENING.contains(word)).count()
}

/// How deep brackets lie in one another, outside of quotes and comments as far as these are plain.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                while let Some(inner) = chars.next() {
                    match inner {
                        '\\' => drop(chars.next()),
                        '\n' => break,
                        inner if inner == c => break,
                        _ => {}
                    }
                }
            }
            '/' if chars.peek() == Some(&'/') => {
                for inner in chars.by_ref() {
                    if inner == '\n' {
                        break;
                    }
                }
            }
            '(' | '[' | '{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The most modules, and the bytes of all together.
const MODULES_MAX: usize = 50;
const BYTES_MAX: usize = 2 << 20;

/// A module that was read.
pub(super) struct K6Module<'a> {
    /// Below the folder of the script.
    pub(super) path: String,
    program: &'a Program<'a>,
    lines: LineStarts,
    /// With where each is exported.
    exports: Vec<(String, JsValue<'a>, u32)>,
}

impl K6Module<'_> {
    /// The line of a place in it.
    pub(super) fn line(&self, at: u32) -> usize {
        self.lines.line(at as usize)
    }
}

impl<'a> K6Interpreter<'a, '_> {
    /// Reads a module and follows what it does; its number.
    ///
    /// # Errors
    /// One line: it is no script.
    pub(super) fn load(&mut self, path: &str, text: &str) -> Result<usize, ParseError> {
        let lines = LineStarts::of(text);
        let program = parsed(text, &lines, self.allocator)?;
        let scope = self.heap.scope(Some(self.globals));
        let (path, exports) = (path.to_owned(), Vec::new());
        self.modules.push(K6Module { path, program, lines, exports });
        let number = self.modules.len() - 1;
        let (module, at) = (self.module, self.at);
        self.module = number;
        for statement in &program.body {
            if let Statement::ImportDeclaration(of) = statement {
                self.import(of, scope);
            }
        }
        self.hoist(&program.body, scope);
        for statement in &program.body {
            self.at = oxc_span::GetSpan::span(statement).start;
            match statement {
                Statement::ImportDeclaration(_) => {}
                Statement::ExportNamedDeclaration(of) => self.export(of, scope),
                Statement::ExportDefaultDeclaration(of) => self.export_default(of, scope),
                Statement::ExportAllDeclaration(of) => {
                    let all = self.module_value(of.source.value.as_str());
                    for (name, value) in self.heap.entries(&all).unwrap_or_default().to_vec() {
                        self.put_export(&name, value);
                    }
                }
                other => {
                    self.statement(other, scope);
                }
            }
            self.has_thrown = false;
        }
        (self.module, self.at) = (module, at);
        Ok(number)
    }

    fn put_export(&mut self, name: &str, value: JsValue<'a>) {
        let (number, at) = (self.module, self.at);
        if let Some(module) = self.modules.get_mut(number) {
            module.exports.retain(|(other, ..)| other != name);
            module.exports.push((name.to_owned(), value, at));
        }
    }

    /// What a module exports by this name.
    pub(super) fn exported(&self, module: usize, name: &str) -> Option<JsValue<'a>> {
        let module = self.modules.get(module)?;
        let export = module.exports.iter().find(|(other, ..)| other == name);
        export.map(|(_, value, _)| value.clone())
    }

    /// Goes to where the script exports something: lines about it name that one.
    pub(super) fn go_to_export(&mut self, name: &str) {
        let exports = self.modules.first().map(|module| &module.exports[..]).unwrap_or_default();
        if let Some((.., at)) = exports.iter().find(|(other, ..)| other == name) {
            self.at = *at;
        }
    }

    fn export(&mut self, of: &'a ExportNamedDeclaration<'a>, scope: usize) {
        match &of.declaration {
            Some(Declaration::FunctionDeclaration(function)) => {
                if let Some(id) = &function.id {
                    let value = self.identifier(id.name.as_str(), scope);
                    self.put_export(id.name.as_str(), value);
                }
            }
            Some(Declaration::VariableDeclaration(declaration)) => {
                self.declaration(declaration, scope);
                for declarator in &declaration.declarations {
                    for id in declarator.id.get_binding_identifiers() {
                        let value = self.identifier(id.name.as_str(), scope);
                        self.put_export(id.name.as_str(), value);
                    }
                }
            }
            Some(Declaration::ClassDeclaration(class)) => {
                if let Some(id) = &class.id {
                    let value = JsValue::Class(class, scope);
                    self.heap.declare(scope, id.name.as_str(), value.clone());
                    self.put_export(id.name.as_str(), value);
                }
            }
            _ => {}
        }
        let source = of.source.as_ref().map(|source| self.module_value(source.value.as_str()));
        for specifier in &of.specifiers {
            let local = specifier.local.name();
            let value = match &source {
                Some(module) => self.member(&module.clone(), local.as_str()),
                None => self.identifier(local.as_str(), scope),
            };
            self.put_export(specifier.exported.name().as_str(), value);
        }
    }

    fn export_default(&mut self, of: &'a ExportDefaultDeclaration<'a>, scope: usize) {
        let value = match &of.declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                self.closure(FunctionCode::Function(function), scope, None)
            }
            ExportDefaultDeclarationKind::ClassDeclaration(class) => JsValue::Class(class, scope),
            other => match other.as_expression() {
                Some(expression) => self.evaluate(expression, scope),
                None => return,
            },
        };
        self.put_export("default", value);
    }

    fn import(&mut self, of: &'a ImportDeclaration<'a>, scope: usize) {
        self.at = of.span.start;
        if of.import_kind.is_type() {
            return;
        }
        let source = of.source.value.as_str();
        let module = self.module_value(source);
        for specifier in of.specifiers.iter().flatten() {
            let (local, value) = match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(of) => {
                    let name = of.imported.name();
                    (&of.local, self.imported(&module, name.as_str()))
                }
                ImportDeclarationSpecifier::ImportDefaultSpecifier(of) => {
                    (&of.local, self.imported(&module, "default"))
                }
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(of) => {
                    (&of.local, module.clone())
                }
            };
            self.heap.declare(scope, local.name.as_str(), value);
        }
    }

    fn imported(&mut self, module: &JsValue<'a>, name: &str) -> JsValue<'a> {
        match (module, name) {
            (JsValue::Builtin(_), "default") => module.clone(),
            (JsValue::Builtin(path), name) => self.builtin_of(path, name),
            _ => self.member(module, name),
        }
    }

    /// A name of a module that k6 has.
    fn builtin_of(&mut self, module: &str, name: &str) -> JsValue<'a> {
        match (module, name) {
            ("k6" | "data", name) => JsValue::builtin(name),
            ("http", "http") | ("execution", "exec") => JsValue::builtin(module),
            ("utils" | "faker", "v4") => JsValue::builtin("utils.uuidv4"),
            (module, name) => JsValue::builtin(format!("{module}.{name}")),
        }
    }

    /// All that a module exports.
    pub(super) fn module_value(&mut self, source: &str) -> JsValue<'a> {
        if !source.starts_with('.') && !source.starts_with('/') {
            return JsValue::builtin(builtin_module(source));
        }
        match self.local_module(source) {
            Ok(number) => {
                let exports = self.modules.get(number).map(|module| module.exports.clone());
                let exports = exports.unwrap_or_default().into_iter();
                let exports = exports.map(|(name, value, _)| (Rc::from(name), value)).collect();
                self.heap.object(exports)
            }
            Err(why) => {
                self.leave_out(format!("the module '{source}': {why}"));
                JsValue::unknown(format!("something of the module '{source}'"))
            }
        }
    }

    fn local_module(&mut self, source: &str) -> Result<usize, String> {
        let path = self.path_of(source).ok_or("it lies outside of what is read")?;
        let endings = ["", ".js", ".ts", "/index.js", "/index.ts"];
        let paths: Vec<String> = endings.iter().map(|ending| format!("{path}{ending}")).collect();
        if let Some(number) = self.modules.iter().position(|module| paths.contains(&module.path)) {
            return Ok(number);
        }
        if self.modules.len() >= MODULES_MAX {
            return Err(format!("no more than {MODULES_MAX} modules are read"));
        }
        let mut why = "it cannot be read".to_owned();
        for path in paths {
            match (self.read)(&path) {
                Ok(bytes) => {
                    let before: usize =
                        self.modules.iter().map(|m| m.program.source_text.len()).sum();
                    if before + bytes.len() > BYTES_MAX {
                        return Err("all modules together have more than 2 MiB".to_owned());
                    }
                    let text = String::from_utf8(bytes).map_err(|_| "it is no UTF-8 text")?;
                    return self.deeper(Err("it is imported too deeply".to_owned()), |own| {
                        own.load(&path, &text).map_err(|e| e.0)
                    });
                }
                Err(what) if why == "it cannot be read" => why = what,
                Err(_) => {}
            }
        }
        Err(why)
    }

    /// A path of the module that is followed, from the folder of the script on.
    pub(super) fn path_of(&self, path: &str) -> Option<String> {
        let own = self.modules.get(self.module).map_or("", |module| module.path.as_str());
        if path.starts_with('/') || path.contains("://") || path.contains('\0') {
            return None;
        }
        let mut parts: Vec<&str> = own.split('/').collect();
        parts.pop();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        Some(parts.join("/")).filter(|path| !path.is_empty())
    }
}

/// The short name of a module that k6 or a library has.
fn builtin_module(source: &str) -> String {
    let name = match source {
        "k6/websockets" | "k6/experimental/websockets" => "ws",
        source if source.contains("k6-utils") || source.contains("uuid") => "utils",
        source if source.contains("papaparse") => "papaparse",
        source => {
            let last = source.trim_end_matches("/index.js").rsplit('/').find(|part| {
                part.starts_with(|c: char| c.is_alphabetic()) && !part.starts_with("index")
            });
            last.unwrap_or(source)
        }
    };
    name.trim_end_matches(".js").replace('.', "-")
}
