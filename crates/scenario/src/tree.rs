//! A YAML file as a tree whose nodes know where they stand. JSON is YAML too.

use super::fault::ScenarioError;
use super::fault::{Position, Read, bail, fault};
use knee_load::quantity::quoted;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, Tag};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The largest file.
pub const FILE_MAX: usize = 16 << 20;
/// The deepest nesting of lists and maps.
const DEPTH_MAX: usize = 64;
/// The most values, those of each alias among them.
const NODES_MAX: usize = 500_000;
/// The most bytes of text, that of each alias among them.
const TEXT_MAX: usize = 4 * FILE_MAX;

/// A value in the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// Where it begins.
    pub(super) at: Position,
    pub(super) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A text, a number, a truth value or nothing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scalar {
    pub(super) text: Arc<str>,
    /// It is in quotes, so that it is a text whatever it looks like.
    pub(super) is_quoted: bool,
    /// Where in the line its text begins, if each of its characters stands for itself.
    pub(super) begins: Option<Position>,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: Arc<str>,
    pub(super) at: Position,
    pub(super) value: Node,
}

impl Node {
    /// What it is, with an article.
    pub(super) fn what(&self) -> &'static str {
        match &self.value {
            _ if self.is_null() => "nothing",
            Value::Scalar(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// Whether nothing stands there.
    pub(super) fn is_null(&self) -> bool {
        let null =
            |s: &Scalar| !s.is_quoted && ["", "~", "null", "Null", "NULL"].contains(&&*s.text);
        matches!(&self.value, Value::Scalar(scalar) if null(scalar))
    }

    /// The keys and values of a map; of anything else none.
    pub(super) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The value of a key, where there is one.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        let mut entries = self.entries().iter();
        let entry = entries.find(|entry| &*entry.key == key);
        entry.map(|entry| &entry.value)
    }

    /// Its text, unless nothing stands there.
    pub(super) fn scalar(&self) -> Option<&Scalar> {
        match &self.value {
            Value::Scalar(scalar) if !self.is_null() => Some(scalar),
            _ => None,
        }
    }
}

/// How much a file may hold.
#[derive(Clone, Copy, Default)]
pub(super) struct TreeLimits {
    pub(super) bytes: usize,
    /// Its values, those of each alias among them.
    pub(super) values: usize,
    /// What to do about too many of them.
    pub(super) advice: &'static str,
}

/// Reads a scenario file.
pub(super) fn parse(bytes: &[u8]) -> Read<Node> {
    let advice = "; put records into a file of 'data'";
    parse_within(bytes, TreeLimits { bytes: FILE_MAX, values: NODES_MAX, advice })
}

/// Reads a file with limits of its own.
pub(super) fn parse_within(bytes: &[u8], limits: TreeLimits) -> Read<Node> {
    const BEGIN: Position = Position { line: 1, column: 1 };
    if bytes.len() > limits.bytes {
        let mib = limits.bytes >> 20;
        bail!(BEGIN, "the file is too large: expected at most {mib} MiB");
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(error) => {
            let at = end_of(&String::from_utf8_lossy(&bytes[..error.valid_up_to()]));
            bail!(at, "this is not UTF-8 text: save the file as UTF-8");
        }
    };
    let mut builder = TreeBuilder { limits, ..TreeBuilder::default() };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| not_yaml(&error))?;
        builder.take(event, span)?;
    }
    match builder.root {
        Some(root) => Ok(root),
        None => bail!(BEGIN, "the file is empty: 'knee scenario new' writes an example"),
    }
}

/// The place just behind a text.
fn end_of(text: &str) -> Position {
    let last = text.rsplit('\n').next().unwrap_or_default();
    Position { line: text.matches('\n').count() + 1, column: last.chars().count() + 1 }
}

fn place(marker: &Marker) -> Position {
    Position { line: marker.line().max(1), column: marker.col() + 1 }
}

fn not_yaml(error: &ScanError) -> ScenarioError {
    // It looks ahead of the values that it gives, and has a limit of its own there.
    let is_too_deep = error.info().contains("recursion limit");
    let what = if is_too_deep {
        too_deep()
    } else {
        format!("not YAML ({}): check indentation, quotes and brackets", error.info())
    };
    let at = place(error.marker());
    ScenarioError { at, what }
}

/// How much of the limits a part of the tree takes.
#[derive(Clone, Copy, Default)]
struct Cost {
    nodes: usize,
    text: usize,
    depth: usize,
}

/// A list or a map that has not ended.
struct OpenNode {
    at: Position,
    anchor: usize,
    /// What there was before it.
    before: Cost,
    /// How deep its own parts are.
    depth: usize,
    kind: OpenKind,
}

enum OpenKind {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, names: HashSet<Arc<str>>, key: Option<(Arc<str>, Position)> },
}

#[derive(Default)]
struct TreeBuilder {
    open: Vec<OpenNode>,
    /// The parts of the tree that something names, and what it costs to have each once more.
    anchors: HashMap<usize, (Node, Cost)>,
    spent: Cost,
    limits: TreeLimits,
    root: Option<Node>,
}

impl TreeBuilder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Read<()> {
        let at = place(&span.start);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => {
                bail!(at, "a second document begins here: expected one scenario in a file")
            }
            Event::DocumentStart(_) => Ok(()),
            Event::Alias(anchor) => self.alias(anchor, at),
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = check_tag(tag, at)?;
                let scalar = scalar(&text, style, is_text, &span);
                self.scalar(scalar, anchor, at)
            }
            Event::SequenceStart(anchor, tag) => {
                check_tag(tag, at)?;
                self.begin(at, anchor, OpenKind::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                check_tag(tag, at)?;
                let kind = OpenKind::Map { entries: Vec::new(), names: HashSet::new(), key: None };
                self.begin(at, anchor, kind)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(at),
        }
    }

    fn begin(&mut self, at: Position, anchor: usize, kind: OpenKind) -> Read<()> {
        self.refuse_as_key(at)?;
        if self.open.len() >= DEPTH_MAX {
            return fault(at, too_deep());
        }
        let before = self.spent;
        self.spend(1, 0, at)?;
        self.open.push(OpenNode { at, anchor, before, depth: 0, kind });
        Ok(())
    }

    fn end(&mut self, at: Position) -> Read<()> {
        let Some(ended) = self.open.pop() else {
            bail!(at, "nothing ends here: check the brackets");
        };
        let value = match ended.kind {
            OpenKind::List(nodes) => Value::List(nodes),
            OpenKind::Map { entries, .. } => Value::Map(entries),
        };
        let node = Node { at: ended.at, value };
        let cost = Cost {
            nodes: self.spent.nodes - ended.before.nodes,
            text: self.spent.text - ended.before.text,
            depth: ended.depth + 1,
        };
        self.put(node, ended.anchor, cost)
    }

    fn scalar(&mut self, scalar: Scalar, anchor: usize, at: Position) -> Read<()> {
        let text = scalar.text.len();
        self.spend(1, text, at)?;
        if let Some(OpenNode { kind: OpenKind::Map { names, key, .. }, .. }) = self.open.last_mut()
            && key.is_none()
        {
            let name = Arc::clone(&scalar.text);
            if !names.insert(Arc::clone(&name)) {
                let name = quoted(&name);
                bail!(at, "the key {name} stands here twice: leave one out");
            }
            *key = Some((name, at));
            return Ok(());
        }
        let node = Node { at, value: Value::Scalar(scalar) };
        let cost = Cost { nodes: 1, text, depth: 0 };
        self.put(node, anchor, cost)
    }

    fn alias(&mut self, anchor: usize, at: Position) -> Read<()> {
        self.refuse_as_key(at)?;
        let Some(&(_, cost)) = self.anchors.get(&anchor) else {
            bail!(at, "an alias of what it is a part of: name something above it");
        };
        if self.open.len() + cost.depth > DEPTH_MAX {
            return fault(at, too_deep());
        }
        // Before there is anything more to hold.
        self.spend(cost.nodes, cost.text, at)?;
        let node = self.anchors[&anchor].0.clone();
        self.put(node, 0, cost)
    }

    fn put(&mut self, node: Node, anchor: usize, cost: Cost) -> Read<()> {
        if anchor > 0 {
            let node = node.clone();
            self.spend(cost.nodes, cost.text, node.at)?;
            self.anchors.insert(anchor, (node, cost));
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.depth = open.depth.max(cost.depth);
        match &mut open.kind {
            OpenKind::List(nodes) => nodes.push(node),
            OpenKind::Map { entries, key, .. } => {
                if let Some((key, at)) = key.take() {
                    let value = node;
                    entries.push(Entry { key, at, value });
                }
            }
        }
        Ok(())
    }

    fn refuse_as_key(&self, at: Position) -> Read<()> {
        match self.open.last() {
            Some(OpenNode { kind: OpenKind::Map { key: None, .. }, .. }) => {
                bail!(at, "this cannot be a key: expected a word and ':'")
            }
            _ => Ok(()),
        }
    }

    fn spend(&mut self, nodes: usize, text: usize, at: Position) -> Read<()> {
        self.spent.nodes += nodes;
        self.spent.text += text;
        if self.spent.nodes > self.limits.values || self.spent.text > TEXT_MAX {
            fault(at, too_much(self.limits))
        } else {
            Ok(())
        }
    }
}

fn too_deep() -> String {
    format!("this is nested too deeply: expected at most {DEPTH_MAX} levels")
}

fn too_much(TreeLimits { values, advice, .. }: TreeLimits) -> String {
    format!("the file has too many values, aliases written out: expected at most {values}{advice}")
}

/// Whether the tag makes a text of it. Only those of the YAML core schema are known.
fn check_tag(tag: Option<Cow<'_, Tag>>, at: Position) -> Read<bool> {
    let Some(tag) = tag else { return Ok(false) };
    let is_known = ["str", "int", "float", "bool", "null", "seq", "map"];
    if tag.is_yaml_core_schema() && is_known.contains(&tag.suffix.as_str()) {
        Ok(tag.suffix == "str")
    } else {
        let shown = quoted(&format!("!{}", tag.suffix));
        bail!(at, "unknown tag {shown}: leave it out, or quote the text")
    }
}

fn scalar(text: &str, style: ScalarStyle, is_text: bool, span: &Span) -> Scalar {
    let quotes = match style {
        ScalarStyle::Plain => 0,
        _ => 1,
    };
    // Where it takes as many places as it has characters, none of them is an escape.
    let places = span.end.index().saturating_sub(span.start.index());
    let stands_for_itself = span.start.line() == span.end.line()
        && !matches!(style, ScalarStyle::Literal | ScalarStyle::Folded)
        && text.chars().count() + 2 * quotes == places;
    Scalar {
        text: Arc::from(text),
        is_quoted: quotes > 0 || is_text,
        begins: stands_for_itself.then(|| place(&span.start).right(quotes)),
    }
}
