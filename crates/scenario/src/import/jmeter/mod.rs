//! A test plan of JMeter (.jmx).

mod checks;
mod controllers;
mod sampler;
mod scope;
mod values;

use super::collect::Collector;
use super::{Imported, ImportedStage, as_text, error};
use knee_load::quantity::ParseError;
use knee_load::time::Nanos;
use roxmltree::{Document, Node, ParsingOptions};
use scope::PlanScope;
use std::rc::Rc;

/// The largest plan: the tree of it takes several times as much.
const PLAN_MAX: usize = 32 << 20;
/// The most elements, and the deepest tree of them that is walked.
const NODES_MAX: u32 = 1_000_000;
const DEPTH_MAX: usize = 100;

/// Elements that change nothing in the requests, or that sessions have by themselves.
const WITHOUT_EFFECT: [&str; 11] = [
    "BackendListener",
    "CacheManager",
    "CookieManager",
    "DebugPostProcessor",
    "DebugSampler",
    "ResultCollector",
    "Summariser",
    "TestPlan",
    "ViewResultsFullVisualizer",
    "hashTree",
    "kg.apc.jmeter.reporters.LoadosophiaUploader",
];

/// Imports the thread groups as kinds of sessions.
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
    let mut plan = PlanWalk::default();
    for tree in root.children().filter(|n| n.has_tag_name("hashTree")) {
        plan.find_groups(tree, &PlanScope::default(), 0);
    }
    plan.end()
}

/// What is collected of a plan.
#[derive(Default)]
struct PlanWalk {
    all: Collector,
    /// Thread groups so far.
    groups: Vec<ThreadGroup>,
    disabled: usize,
}

/// The load of a group of threads.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadGroup {
    threads: u32,
    ramp_s: u32,
    duration_s: Option<u32>,
}

/// An element with the tree of its children, which stands after it.
type PlanItem<'a, 'b> = (Node<'a, 'b>, Option<Node<'a, 'b>>);

/// The enabled elements of a tree.
fn items<'a, 'b>(tree: Node<'a, 'b>) -> (Vec<PlanItem<'a, 'b>>, usize) {
    let mut elements = tree.children().filter(Node::is_element).peekable();
    let (mut items, mut disabled) = (Vec::new(), 0);
    while let Some(element) = elements.next() {
        let below = elements.next_if(|next| next.has_tag_name("hashTree"));
        if element.attribute("enabled") == Some("false") {
            disabled += 1;
        } else if element.has_tag_name("hashTree") {
            items.push((element, Some(element)));
        } else {
            items.push((element, below));
        }
    }
    (items, disabled)
}

impl PlanWalk {
    /// Walks through what lies above the thread groups.
    fn find_groups(&mut self, tree: Node, outer: &PlanScope, depth: usize) {
        if depth > DEPTH_MAX {
            return self.all.leave_out("what lies more than 100 levels deep");
        }
        let (items, disabled) = items(tree);
        self.disabled += disabled;
        let mut scope = outer.clone();
        items.iter().for_each(|(element, _)| scope.take(*element, &mut self.all));
        // What is done before the load is known before the sessions that use it.
        let is_setup = |item: &&PlanItem| item.0.has_tag_name("SetupThreadGroup");
        let (setup, others): (Vec<_>, Vec<_>) = items.iter().partition(|item| is_setup(item));
        for (element, below) in setup.into_iter().chain(others) {
            match element.tag_name().name() {
                name if name.ends_with("ThreadGroup") => self.group(element, below, &scope),
                "TestPlan" | "hashTree" => {
                    if let Some(below) = below {
                        let mut inner = scope.clone();
                        inner.take_plan(element);
                        self.find_groups(below, &inner, depth + 1);
                    }
                }
                name if !PlanScope::takes(name) => {
                    self.leave_out(element, "it stands outside of all thread groups");
                }
                _ => {}
            }
        }
    }

    /// A group of threads is a kind of session.
    fn group(&mut self, element: Node, below: Option<Node>, scope: &PlanScope) {
        let name = element.attribute("testname").unwrap_or("threads").to_owned();
        let number = |key: &str| {
            let text = property(element, key).map(|text| scope.constant(&text));
            text.and_then(|text| text.trim().parse::<u32>().ok())
        };
        let mut scope = PlanScope { extracted: Rc::default(), ..scope.clone() };
        let on_error = property(element, "ThreadGroup.on_sample_error").unwrap_or_default();
        scope.goes_on = !on_error.starts_with("st");
        if on_error.starts_with("stop") {
            self.leave_out(
                element,
                "a failed request ends its session, not the thread or the test",
            );
        }
        let kind = element.tag_name().name();
        let is_once = matches!(kind, "SetupThreadGroup" | "PostThreadGroup");
        if is_once {
            self.all.begin_once();
        }
        if let Some(below) = below {
            self.steps(below, &scope, 0);
        }
        match kind {
            "SetupThreadGroup" => return self.all.end_setup(),
            "PostThreadGroup" => return self.all.end_teardown(),
            "ThreadGroup" => {}
            _ => self.leave_out(element, "only its number of threads is taken over, if any"),
        }
        let is_timed = property(element, "ThreadGroup.scheduler").as_deref() == Some("true");
        let group = ThreadGroup {
            threads: number("ThreadGroup.num_threads").filter(|n| *n <= 1_000_000).unwrap_or(1),
            ramp_s: number("ThreadGroup.ramp_time").unwrap_or_default(),
            duration_s: number("ThreadGroup.duration").filter(|s| *s > 0 && is_timed),
        };
        self.loops(element, group);
        self.all.end_session(&name, group.threads.clamp(1, 1_000_000));
        self.groups.push(group);
    }

    /// How often each thread does its steps.
    fn loops(&mut self, element: Node, group: ThreadGroup) {
        let is_loops = |n: &Node| n.attribute("name") == Some("LoopController.loops");
        let loops = element.descendants().find(is_loops).and_then(|n| n.text());
        match loops.and_then(|text| text.trim().parse::<i64>().ok()) {
            Some(loops) if loops > 0 && group.duration_s.is_none() => {
                let sessions = u64::from(group.threads).saturating_mul(loops as u64);
                self.leave_out(
                    element,
                    &format!("each thread does its steps {loops} times: write -n {sessions}"),
                );
            }
            Some(loops) if loops > 1 => {
                self.leave_out(element, &format!("{loops} loops: only its duration ends it"));
            }
            _ => {}
        }
    }

    fn end(mut self) -> Result<Imported, ParseError> {
        let users: u64 = self.groups.iter().map(|group| u64::from(group.threads)).sum();
        let users = users.min(1_000_000) as u32;
        let ramp_s = self.groups.iter().map(|group| group.ramp_s).max().unwrap_or_default();
        let lasts_s = self.groups.iter().filter_map(|group| group.duration_s).max();
        let s = |s: u32| Nanos::from_secs(u64::from(s));
        if users > 0 {
            self.all.load.vusers = Some(users);
        }
        self.all.load.duration = lasts_s.map(s);
        match lasts_s {
            Some(lasts) if ramp_s > 1 && ramp_s < lasts && users > 1 => {
                let stage = |from, to, s| ImportedStage { from, to, length: s };
                let most = f64::from(users);
                self.all.load.stages =
                    vec![stage(0.0, most, s(ramp_s)), stage(most, most, s(lasts - ramp_s))];
                self.all.load.stages_of_users = true;
            }
            None if ramp_s > 1 && users > 1 => self.all.leave_out(format!(
                "the ramp of {ramp_s} s: without a duration of the plan all users come at once"
            )),
            _ => {}
        }
        if self.groups.len() > 1 {
            self.all.remark(
                "The thread groups run at the same time, with all users shared among them.",
            );
        }
        if self.disabled > 0 {
            self.all.remark(format!("{} disabled elements are left out.", self.disabled));
        }
        self.all.finish("the plan has no HTTP request that a scenario can have")
    }

    /// Names an element that is not taken over, and the effect of that.
    fn leave_out(&mut self, element: Node, effect: &str) {
        let tag = element.tag_name().name();
        if WITHOUT_EFFECT.contains(&tag) {
            return;
        }
        let line = element.document().text_pos_at(element.range().start).row;
        let name = element.attribute("testname").unwrap_or_default();
        self.all.leave_out(format!("line {line}: {tag} '{name}': {effect}"));
    }
}

/// The elements of this type below another.
fn below_named<'a, 'b>(
    element: Node<'a, 'b>,
    kind: &'static str,
) -> impl Iterator<Item = Node<'a, 'b>> {
    let is_it = move |n: &Node| n.attribute("elementType") == Some(kind);
    element.descendants().filter(is_it)
}

/// The value of a property of an element.
fn property(element: Node, name: &str) -> Option<String> {
    let mut children = element.children();
    let property = children.find(|n| n.attribute("name") == Some(name))?;
    Some(property.text().unwrap_or_default().to_owned())
}
