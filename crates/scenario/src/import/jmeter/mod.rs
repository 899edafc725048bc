//! A test plan of JMeter (.jmx): thread groups with HTTP requests and what holds for them.
//!
//! The tree of the plan is walked in its order. `ELEMENTS` says what becomes of each kind of
//! element; what has no place in a scenario is named with its line. What holds for a request is
//! looked up in the scopes around it, as JMeter does.

mod body;
mod element;
mod expression;
mod groups;
mod load;
mod request;
mod response;

use super::builder::{ScenarioBuilder, step_name};
use super::grammar::LineStarts;
use super::yaml::YamlValue;
use super::{ImportedScenario, ImportedText, as_text, error};
use element::JmeterElement;
use groups::TIMERS;
use knee_load::quantity::ParseError;
use response::{ASSERTIONS, EXTRACTORS};
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The most elements, and the deepest tree of them that is walked.
const NODES_MAX: u32 = 1_000_000;
const DEPTH_MAX: usize = 60;
/// The most elements of one controller that hold for its requests.
const SETTINGS_MAX: usize = 500;
/// The longest value of a variable that has others in it, in bytes.
const VALUE_MAX: usize = 1000;
/// How often steps are done that are done forever.
const FOREVER: i64 = 1_000_000_000;

/// What becomes of an element.
#[derive(Clone, Copy, Debug, PartialEq)]
enum JmeterUse {
    /// It is a request.
    Request,
    /// It is a pause.
    Pause,
    /// Its steps are done.
    Steps,
    /// Its steps are reported as a whole too.
    Group,
    /// Its steps are repeated.
    Loop,
    /// It holds for the requests beside and below it.
    Setting,
    /// It changes nothing that is sent.
    Nothing,
    /// It is left out, with what that changes.
    LeftOut(&'static str),
    /// It is left out, and its steps are done.
    StepsOnly(&'static str),
}

/// What becomes of the kinds of elements; `*` stands for any letters. The first row counts.
const ELEMENTS: &[(&[&str], JmeterUse)] = {
    use JmeterUse::{Group, LeftOut, Loop, Nothing, Pause, Request, Setting, Steps, StepsOnly};
    &[
        (&["HTTPSamplerProxy", "HTTPSampler", "HTTPSampler2"], Request),
        (&["TestAction"], Pause),
        (&["GenericController", "RecordingController"], Steps),
        (&["TransactionController"], Group),
        (&["LoopController"], Loop),
        (&["ConfigTestElement", "HeaderManager", "CookieManager", "CSVDataSet"], Setting),
        (&TIMERS, Setting),
        (&EXTRACTORS, Setting),
        (&ASSERTIONS, Setting),
        // Variables are taken before the walk.
        (&["Arguments", "TestFragmentController", "WorkBench"], Nothing),
        (&["DebugSampler", "DebugPostProcessor", "HttpMirrorControl", "ProxyControl"], Nothing),
        (&["IfController"], StepsOnly("its condition is not asked: its steps are always done")),
        (&["OnceOnlyController"], StepsOnly("its steps are done in each session, not once")),
        (&["ModuleController"], LeftOut("the steps that it stands for are not done")),
        (&["IncludeController"], LeftOut("the plan that it includes is not read")),
        (
            &["*Controller", "*Control", "RunTime", "ParallelSampler"],
            StepsOnly("its steps are done once, one after another"),
        ),
        (&["AuthManager"], LeftOut("its credentials are not sent")),
        (&["CacheManager"], LeftOut("what is cached is asked for again")),
        (&["SyncTimer"], LeftOut("requests do not wait for one another")),
        (&["*ThroughputTimer"], LeftOut("its rate is not held: write load")),
        (&["JSR223*", "BeanShell*", "BSF*"], LeftOut("its script is not run")),
        (&["*Listener", "*Collector", "*Visualizer", "*Reporter", "Summariser"], Nothing),
        (&["*Assertion"], LeftOut("it is not asked of responses")),
        (
            &["*Extractor", "*Processor", "*Config", "UserParameters"],
            LeftOut("it sets and changes nothing here"),
        ),
        (&["*Timer"], LeftOut("there is no pause")),
        (&["*Sampler", "*Sample"], LeftOut("it is not done: only HTTP Requests are")),
        (&["*"], LeftOut("it has no effect here")),
    ]
};

fn use_of(kind: &str) -> JmeterUse {
    let is_it = |pattern: &&str| match pattern.split_once('*') {
        Some((begin, end)) => kind.starts_with(begin) && kind.ends_with(end),
        None => *pattern == kind,
    };
    let row = ELEMENTS.iter().find(|(patterns, _)| patterns.iter().any(is_it));
    row.map_or(JmeterUse::Nothing, |(_, own)| *own)
}

/// Imports the plan: each thread group becomes a kind of session.
///
/// # Errors
/// One line: no XML, no plan, no request that a scenario can have.
pub fn jmeter(bytes: &[u8]) -> Result<ImportedScenario, ParseError> {
    let text = as_text(bytes, "the file")?;
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|e| super::wrong(format!("the file is no XML: {e}")))?;
    let root = document.root_element();
    if root.tag_name().name() != "jmeterTestPlan" {
        return error("the file is no test plan of JMeter: it has no jmeterTestPlan");
    }
    // The target is the server of most requests.
    let lines = LineStarts::of(text);
    let mut first = JmeterReader { lines: lines.clone(), ..JmeterReader::default() };
    first.plan(root);
    let mut reader = JmeterReader { lines, ..JmeterReader::default() };
    reader.all.set_target_of(first.servers.iter());
    reader.plan(root);
    reader.all.finish("the plan has no HTTP request that a scenario can have")
}

/// What is known at the place up to which the plan is read.
#[derive(Default)]
struct JmeterReader<'a> {
    all: ScenarioBuilder,
    lines: LineStarts,
    /// Values of the plan's variables.
    variables: HashMap<String, ImportedText>,
    /// Variables that responses of the session have set so far.
    known: HashSet<String>,
    /// Names of variables with the sets of records and the columns that they are.
    columns: Vec<(String, String, String)>,
    /// The set whose columns its file names.
    nameless_set: Option<String>,
    used_sets: BTreeSet<String>,
    /// The settings of the trees around, the outer ones first.
    scopes: Vec<Vec<JmeterElement<'a>>>,
    /// How many loops are around.
    loops: usize,
    /// How deep a text lies in other texts.
    text_depth: usize,
    /// Whether sessions go on after failures.
    goes_on: bool,
    /// Where all requests go.
    servers: Vec<ImportedText>,
}

impl<'a> JmeterReader<'a> {
    fn plan(&mut self, root: Node<'a, 'a>) {
        let tree = root.children().find(|node| node.has_tag_name("hashTree"));
        let mut top = tree.map_or_else(Vec::new, JmeterElement::list).into_iter();
        let Some(plan) = top.find(|element| element.kind() == "TestPlan") else {
            return;
        };
        if let Some(variables) = plan.inner("TestPlan.user_defined_variables") {
            self.define(variables);
        }
        let is_serial = plan.flag("TestPlan.serialize_threadgroups");
        let effect = "its thread groups follow one another; their sessions run side by side";
        self.leave_out_where(plan, &[(is_serial, effect)]);
        self.define_below(plan, 0);
        self.groups(plan);
        if !root.descendants().any(|node| node.has_tag_name("CookieManager")) {
            self.all.remark("JMeter sends no cookies without a Cookie Manager; sessions here do.");
        }
        let is_disabled = |node: &Node| node.attribute("enabled") == Some("false");
        let disabled = root.descendants().filter(is_disabled).count();
        if disabled > 0 {
            self.all.leave_out(format!("elements that are disabled in the plan: {disabled}"));
        }
    }

    /// Takes the variables of all elements that define some, wherever they stand.
    fn define_below(&mut self, element: JmeterElement<'a>, depth: usize) {
        for child in element.children().into_iter().filter(|_| depth < DEPTH_MAX) {
            if child.kind() == "Arguments" {
                self.define(child);
            }
            self.define_below(child, depth + 1);
        }
    }

    /// Takes variables. Each may have those before it in its value.
    fn define(&mut self, arguments: JmeterElement<'a>) {
        for argument in arguments.listed("Arguments.arguments") {
            let name = argument.text("Argument.name").trim();
            let raw = argument.text("Argument.value");
            let value = self.filled(raw, arguments);
            let is_short = value.template().len() <= VALUE_MAX;
            let value = if is_short { value } else { raw.into() };
            if value.literal().is_none() && !value.template().starts_with("${env(") {
                self.all.remark(format!("The variable {name} is drawn for each use, not once."));
            }
            self.variables.insert(name.to_owned(), value);
        }
    }

    /// Imports what lies below an element.
    fn below(&mut self, element: JmeterElement<'a>) {
        let children = self.enter(element);
        for child in children {
            self.element(child);
        }
        self.scopes.pop();
    }

    /// The elements below one, whose settings hold until the scope is left.
    fn enter(&mut self, element: JmeterElement<'a>) -> Vec<JmeterElement<'a>> {
        let elements = element.children();
        let is_setting = |element: &&JmeterElement| use_of(element.kind()) == JmeterUse::Setting;
        let mut own: Vec<JmeterElement<'a>> = elements.iter().filter(is_setting).copied().collect();
        if own.len() > SETTINGS_MAX {
            self.all.leave_out(format!("settings after the first {SETTINGS_MAX} of a controller"));
            own.truncate(SETTINGS_MAX);
        }
        self.scopes.push(own.clone());
        for set in own.into_iter().filter(|element| element.kind() == "CSVDataSet") {
            self.records(set);
        }
        elements
    }

    /// All settings of these kinds that hold here, the inner ones first.
    fn settings(&self, kinds: &[&str]) -> Vec<JmeterElement<'a>> {
        let all = self.scopes.iter().rev().flatten();
        all.filter(|element| kinds.contains(&element.kind())).copied().collect()
    }

    /// Imports an element with all below it.
    fn element(&mut self, element: JmeterElement<'a>) {
        if self.scopes.len() > DEPTH_MAX {
            return self.all.leave_out("what lies more than 60 levels deep");
        }
        match use_of(element.kind()) {
            JmeterUse::Request => self.request(element),
            JmeterUse::Pause => self.pause(element),
            JmeterUse::Steps => self.below(element),
            JmeterUse::Group => {
                let steps = self.steps_below(element);
                let name = step_name(element.name()).unwrap_or_else(|| "group".to_owned());
                self.all.push_around("group", YamlValue::word(&name), steps);
            }
            JmeterUse::Loop => self.loop_of(element),
            JmeterUse::StepsOnly(effect) => {
                self.leave_out(element, effect);
                self.below(element);
            }
            _ => self.note(element),
        }
    }

    /// Names an element that is left out.
    fn note(&mut self, element: JmeterElement<'a>) {
        if let JmeterUse::LeftOut(effect) = use_of(element.kind()) {
            self.leave_out(element, effect);
        }
    }

    fn steps_below(&mut self, element: JmeterElement<'a>) -> Vec<YamlValue> {
        self.all.open();
        self.below(element);
        self.all.close()
    }

    fn loop_of(&mut self, element: JmeterElement<'a>) {
        let text = element.text("LoopController.loops").trim();
        let is_forever = element.flag("LoopController.continue_forever") && text.is_empty();
        let times = if is_forever { "-1".into() } else { self.filled(text, element) };
        let times = match times.literal().map(|text| text.trim().parse::<i64>()) {
            None => YamlValue::Template(times),
            Some(Ok(i64::MIN..0)) => YamlValue::plain(FOREVER),
            Some(Ok(times @ 2..=FOREVER)) => YamlValue::plain(times),
            Some(Ok(0)) => {
                return self.leave_out(element, "it has no pass: its steps are left out");
            }
            Some(other) => {
                self.leave_out_where(element, &[(other != Ok(1), "one pass is done, not several")]);
                return self.below(element);
            }
        };
        self.loops += 1;
        let steps = self.steps_below(element);
        self.loops -= 1;
        self.all.push_around("repeat", times, steps);
    }

    /// Names an element that a scenario cannot have, with what that changes.
    fn leave_out(&mut self, element: JmeterElement<'a>, effect: &str) {
        let line = self.lines.line(element.place());
        let (kind, name) = (element.kind(), element.name());
        self.all.leave_out(format!("line {line}: {kind} '{name}': {effect}"));
    }

    /// The same with those of several effects that there are.
    fn leave_out_where(&mut self, element: JmeterElement<'a>, effects: &[(bool, &str)]) {
        for (_, effect) in effects.iter().filter(|(is, _)| *is) {
            self.leave_out(element, effect);
        }
    }
}

/// The name of a variable that a template can have.
fn variable(name: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let name: String = name.chars().filter(|c| is_part(*c)).take(60).collect();
    if crate::names::is_name(&name) { name } else { format!("v{name}") }
}
