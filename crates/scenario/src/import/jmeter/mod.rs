//! A test plan of JMeter (.jmx): thread groups, controllers, HTTP requests and what is around them.
//!
//! The tree of the plan is walked in its order. What holds for a request is looked up in the
//! scopes around it, as JMeter does. What has no place in a scenario is named with its line.

mod assertions;
mod body;
mod condition;
mod controllers;
mod data;
mod element;
mod expression;
mod extractors;
mod functions;
mod groups;
mod load;
mod request;

use super::collect::Collector;
use super::grammar::LineStarts;
use super::{Imported, ImportedStep, ImportedText, as_text, error};
use element::{JmeterElement, JmeterScope};
use knee_load::quantity::ParseError;
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The largest plan: the tree of it takes several times as much.
const PLAN_MAX: usize = 32 << 20;
/// The most elements, and the deepest tree of them that is walked.
const NODES_MAX: u32 = 1_000_000;
const DEPTH_MAX: usize = 60;
/// The most elements of one controller that hold for its requests.
const SCOPED_MAX: usize = 500;
/// The longest value of a variable that has others in it, in bytes.
const VALUE_MAX: usize = 1000;

/// Imports the plan: each thread group becomes a kind of session.
///
/// # Errors
/// One line: no XML, no plan, no request that a scenario can have.
pub fn jmeter(bytes: &[u8]) -> Result<Imported, ParseError> {
    let text = as_text(bytes, "the file")?;
    if text.len() > PLAN_MAX {
        return error("the plan is larger than 32 MiB");
    }
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|e| super::wrong(format!("the file is no XML: {e}")))?;
    let root = document.root_element();
    if root.tag_name().name() != "jmeterTestPlan" {
        return error("the file is no test plan of JMeter: it has no jmeterTestPlan");
    }
    // The target is the server of most requests.
    let mut reader = JmeterReader::new(root, LineStarts::of(text));
    reader.plan();
    let urls = std::mem::take(&mut reader.urls);
    let mut reader = JmeterReader::new(root, reader.lines);
    reader.all.set_target_of(urls.iter());
    reader.plan();
    reader.all.finish("the plan has no HTTP request that a scenario can have")
}

/// The plan, and what is known at the place up to which it is read.
struct JmeterReader<'a> {
    all: Collector,
    lines: LineStarts,
    root: Node<'a, 'a>,
    plan_name: String,
    /// Values of the plan's variables, which are the same for all sessions.
    variables: HashMap<String, ImportedText>,
    /// Variables of the plan that something else sets too, or that are drawn.
    first: Vec<(String, ImportedText)>,
    /// Names in references, and variables that steps set.
    used: HashSet<&'a str>,
    set_by_steps: HashSet<&'a str>,
    /// Columns of records by the name of their variable, and the set whose columns are not known.
    columns: HashMap<String, String>,
    nameless_set: Option<String>,
    /// Properties that `setup` sets, with the variable that they are of.
    properties: HashMap<String, String>,
    /// What is set before the step that is read.
    before: Vec<(String, ImportedText)>,
    /// The thread group that is read, and whether its sessions go on after failures.
    group: String,
    goes_on: bool,
    /// Whether its sessions are whole threads.
    is_thread: bool,
    /// The variables that number the passes of the loops around, where something asks for one.
    passes: Vec<Option<String>>,
    /// How many requests were taken over, and where all of them go.
    requests: usize,
    urls: Vec<ImportedText>,
    depth: usize,
}

impl<'a> JmeterReader<'a> {
    fn new(root: Node<'a, 'a>, lines: LineStarts) -> JmeterReader<'a> {
        JmeterReader {
            all: Collector::default(),
            lines,
            root,
            plan_name: String::new(),
            variables: HashMap::new(),
            first: Vec::new(),
            used: HashSet::new(),
            set_by_steps: HashSet::new(),
            columns: HashMap::new(),
            nameless_set: None,
            properties: HashMap::new(),
            before: Vec::new(),
            group: String::new(),
            goes_on: true,
            is_thread: false,
            passes: Vec::new(),
            requests: 0,
            urls: Vec::new(),
            depth: 0,
        }
    }

    fn plan(&mut self) {
        let mut disabled = 0;
        let tree = self.root.children().find(|node| node.has_tag_name("hashTree"));
        let top = tree.map_or_else(Vec::new, |tree| JmeterElement::list(tree, &mut disabled));
        let is_plan = |element: &&JmeterElement<'a>| element.kind() == "TestPlan";
        let plan = top.iter().find(is_plan).copied();
        let elements = match plan {
            Some(plan) => plan.list_below(&mut disabled),
            None => top,
        };
        self.names();
        if let Some(plan) = plan {
            self.plan_name = plan.name().to_owned();
            if let Some(variables) = plan.inner("TestPlan.user_defined_variables") {
                self.define(variables);
            }
            if plan.flag("TestPlan.serialize_threadgroups") {
                let what = "its thread groups follow one another; their sessions run side by side";
                self.leave_out(plan, what);
            }
        }
        self.define_below(&elements, 0);
        self.groups(&elements);
        for element in &elements {
            disabled += self.disabled_below(*element, 0);
        }
        if disabled > 0 {
            self.all.leave_out(format!("elements that are disabled in the plan: {disabled}"));
        }
    }

    /// How many elements below one are disabled.
    fn disabled_below(&self, element: JmeterElement<'a>, depth: usize) -> usize {
        let mut disabled = 0;
        if depth < DEPTH_MAX {
            for child in element.list_below(&mut disabled) {
                disabled += self.disabled_below(child, depth + 1);
            }
        }
        disabled
    }

    /// Collects the names that references have, and those that steps set.
    fn names(&mut self) {
        const SETS: [&str; 11] = [
            "RegexExtractor.refname",
            "BoundaryExtractor.refname",
            "HtmlExtractor.refname",
            "XPathExtractor.refname",
            "XPathExtractor2.refname",
            "JSONPostProcessor.referenceNames",
            "CounterConfig.name",
            "ForeachController.returnVal",
            "variableName",
            "VAR",
            "UserParameters.names",
        ];
        for node in self.root.descendants() {
            if let Some(text) = node.text().filter(|_| node.is_text()) {
                for reference in text.split("${").skip(1) {
                    let end = reference.find(['}', '(']).unwrap_or(reference.len());
                    self.used.insert(reference[..end].trim());
                }
                let quotes = text.split("vars.get(").skip(1);
                let named = quotes.filter_map(|rest| rest.split(['"', '\'']).nth(1));
                self.used.extend(named);
            }
            let name = node.attribute("name").unwrap_or_default();
            if SETS.contains(&name) {
                let texts = node.descendants().filter(Node::is_text).filter_map(|n| n.text());
                let names = texts.flat_map(|text| text.split(';')).map(str::trim);
                self.set_by_steps.extend(names.filter(|name| !name.is_empty()));
            }
        }
    }

    /// Takes the variables of all elements that define some, wherever they stand.
    fn define_below(&mut self, elements: &[JmeterElement<'a>], depth: usize) {
        for element in elements {
            if element.kind() == "Arguments" {
                self.define(*element);
            }
            if depth < DEPTH_MAX {
                self.define_below(&element.children(), depth + 1);
            }
        }
    }

    /// Takes variables. Each may have those before it in its value.
    fn define(&mut self, arguments: JmeterElement<'a>) {
        for argument in arguments.listed("Arguments.arguments") {
            let name = argument.text("Argument.name").trim();
            let raw = argument.text("Argument.value");
            let (value, unknown) = self.resolved(raw);
            for what in unknown {
                self.all.leave_out(format!("variable '{name}': nothing here sets {what}"));
            }
            let is_short = value.template().len() <= VALUE_MAX;
            let value = if is_short { value } else { raw.into() };
            let is_drawn = value.literal().is_none() && !value.template().starts_with("${env(");
            if is_drawn {
                let told = format!("The variable {name} is drawn for each session, not once.");
                self.all.remark(told);
            }
            if !is_drawn && !self.set_by_steps.contains(name) {
                self.variables.insert(name.to_owned(), value);
            } else if self.used.contains(name) {
                let variable = Collector::variable(name);
                self.first.retain(|(other, _)| *other != variable);
                self.first.push((variable, value));
            }
        }
    }

    /// What an element is, for a line about it.
    fn told(&self, element: JmeterElement<'a>) -> String {
        element.told(&self.lines)
    }

    /// Names an element that a scenario cannot have, with what that changes.
    fn leave_out(&mut self, element: JmeterElement<'a>, effect: &str) {
        let told = self.told(element);
        self.all.leave_out(format!("{told}: {effect}"));
    }

    /// Sets what the step that was read needs.
    fn set_what_is_needed(&mut self) {
        let before = std::mem::take(&mut self.before);
        self.set(before);
    }

    fn set(&mut self, variables: Vec<(String, ImportedText)>) {
        if !variables.is_empty() {
            self.all.push(ImportedStep::Set(variables));
        }
    }

    /// The scope of a tree: what holds for the requests in it.
    fn scope_of(
        &mut self,
        elements: &[JmeterElement<'a>],
        outer: &Rc<JmeterScope<'a>>,
    ) -> Rc<JmeterScope<'a>> {
        let mut own = elements.iter().filter(|element| !controllers::is_step(element)).copied();
        let scope = outer.with(own.by_ref().take(SCOPED_MAX).collect());
        if own.next().is_some() {
            self.all.leave_out(format!("managers after the first {SCOPED_MAX} of a controller"));
        }
        scope
    }
}

/// Whether a text has letters, digits and these signs only.
fn is_word(text: &str, signs: &[u8]) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || signs.contains(&b))
}

/// Whether a regular expression has no sign that means something.
fn is_plain(pattern: &str) -> bool {
    !pattern.contains(|c| "\\.+*?()|[]{}^$".contains(c))
}
