//! Scripts as trees.

use super::super::wrong;
use knee_load::quantity::ParseError;
use oxc_allocator::Allocator;
use oxc_ast::ast::Program;
use oxc_parser::{ParseOptions, Parser};
use oxc_span::SourceType;

/// The largest script, and the most that brackets lie in one another.
pub(super) const SCRIPT_MAX: usize = 2 << 20;
const DEPTH_MAX: usize = 150;
/// The most signs and words that can begin something inside something else, wherever they stand:
/// the parser calls itself for each of them at most.
const NESTING_MAX: usize = 40_000;
/// The bytes of stack that scripts need: 4.2 KiB were measured for each call of the parser.
pub const K6_STACK: usize = (64 << 20) + NESTING_MAX * (5 << 10);

/// A script as a tree, with where its lines begin.
pub(super) struct ParsedScript<'a> {
    pub(super) program: &'a Program<'a>,
    line_starts: Vec<usize>,
}

impl<'a> ParsedScript<'a> {
    /// Reads JavaScript, or TypeScript if it is not that.
    ///
    /// # Errors
    /// One line: the first mistake with its line.
    pub(super) fn read(text: &str, allocator: &'a Allocator) -> Result<Self, ParseError> {
        if text.len() > SCRIPT_MAX {
            return Err(wrong("the script is larger than 2 MiB"));
        }
        if nesting(text) > NESTING_MAX || depth(text) > DEPTH_MAX {
            return Err(wrong(
                "the script is nested too deeply, or has too many brackets and signs",
            ));
        }
        let text: &'a str = allocator.alloc_str(text);
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = starts.map(|(at, _)| at + 1).collect();
        let mut first = None;
        for kind in [SourceType::mjs(), SourceType::ts()] {
            let options = ParseOptions { preserve_parens: false, ..ParseOptions::default() };
            let read = Parser::new(allocator, text, kind).with_options(options).parse();
            if read.errors.is_empty() && !read.panicked {
                let program = allocator.alloc(read.program);
                return Ok(ParsedScript { program, line_starts });
            }
            first = first.or(read.errors.into_iter().next());
        }
        let script = ParsedScript { program: allocator.alloc(empty(allocator)), line_starts };
        let label = first.as_ref().and_then(|e| e.labels.as_ref()?.first().map(|l| l.offset()));
        let line = script.line(label.unwrap_or(0));
        let what = first.map_or_else(String::new, |e| format!(": {}", e.message));
        Err(wrong(format!("line {line}: the script is no JavaScript or TypeScript{what}")))
    }

    /// Its bytes.
    pub(super) fn length(&self) -> usize {
        self.program.source_text.len()
    }

    /// The number of the line with this byte.
    pub(super) fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at) + 1
    }
}

fn empty(allocator: &Allocator) -> Program<'_> {
    Parser::new(allocator, "", SourceType::mjs()).parse().program
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
