//! A test plan of JMeter (.jmx).

use super::collect::{Collector, FORM, SourceRequest};
use super::{Imported, as_text, error};
use knee_load::percent::component;
use knee_load::quantity::ParseError;
use knee_load::time::Nanos;
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::HashMap;

/// The largest plan: the tree of it takes several times as much.
const PLAN_MAX: usize = 32 << 20;
/// The most elements, and the deepest tree of them that is walked.
const NODES_MAX: u32 = 1_000_000;
const DEPTH_MAX: usize = 100;
/// The longest text with variables in their places: they may be in one another.
const TEXT_MAX: usize = 1 << 20;
/// The longest value of a variable that has others in it.
const VALUE_MAX: usize = 1000;

/// Elements that change nothing in the requests, or that sessions have by themselves.
const WITHOUT_EFFECT: [&str; 12] = [
    "CacheManager",
    "CookieManager",
    "DebugSampler",
    "GenericController",
    "LoopController",
    "ResultCollector",
    "Summariser",
    "TestPlan",
    "ThreadGroup",
    "TransactionController",
    "HTTPSamplerProxy",
    "BackendListener",
];

/// Headers, defaults and variables of all requests below an element.
#[derive(Clone, Debug, Default)]
struct JmeterScope {
    headers: Vec<(String, String)>,
    defaults: HashMap<String, String>,
    variables: HashMap<String, String>,
    think: Nanos,
}

/// Imports all requests, in their order, with the load of the first thread group.
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
    let mut all = Collector::default();
    let mut groups = 0;
    for tree in root.children().filter(|n| n.has_tag_name("hashTree")) {
        walk(tree, &JmeterScope::default(), 0, &mut groups, &mut all);
    }
    all.finish("the plan has no HTTP request that a scenario can have")
}

/// Imports the elements of a `hashTree`. After each element comes the tree of its children.
fn walk(tree: Node, outer: &JmeterScope, depth: usize, groups: &mut usize, all: &mut Collector) {
    if depth > DEPTH_MAX {
        return all.leave_out("what lies more than 100 levels deep");
    }
    let mut scope = outer.clone();
    let elements = || tree.children().filter(Node::is_element);
    // Managers hold for what stands beside them, before or after.
    for element in elements().filter(is_enabled) {
        scope.take(element, all);
    }
    let mut elements = elements().peekable();
    while let Some(element) = elements.next() {
        let below = elements.next_if(|next| next.has_tag_name("hashTree"));
        if !is_enabled(&element) || element.has_tag_name("hashTree") {
            continue;
        }
        match element.tag_name().name() {
            "ThreadGroup" => {
                *groups += 1;
                group(element, *groups, &scope, all);
            }
            "HTTPSamplerProxy" | "HTTPSampler" => {
                let mut own = scope.clone();
                let managers = below.iter().flat_map(|tree| tree.children());
                for element in managers.filter(|n| n.is_element() && is_enabled(n)) {
                    own.take(element, all);
                    leave_out(element, all);
                }
                sample(element, &own, all);
                continue;
            }
            _ => leave_out(element, all),
        }
        if let Some(below) = below {
            walk(below, &scope, depth + 1, groups, all);
        }
    }
}

fn is_enabled(element: &Node) -> bool {
    element.attribute("enabled") != Some("false")
}

fn leave_out(element: Node, all: &mut Collector) {
    const SCOPED: [&str; 4] = ["HeaderManager", "ConfigTestElement", "Arguments", "ConstantTimer"];
    let tag = element.tag_name().name();
    if !WITHOUT_EFFECT.contains(&tag) && !SCOPED.contains(&tag) && tag != "hashTree" {
        let name = element.attribute("testname").unwrap_or_default();
        all.leave_out(format!("{tag} '{name}'"));
    }
}

/// The load of a group of threads.
fn group(element: Node, number: usize, scope: &JmeterScope, all: &mut Collector) {
    if number > 1 {
        let name = element.attribute("testname").unwrap_or_default();
        return all
            .leave_out(format!("thread group '{name}': its steps follow those of the first one"));
    }
    let value = |name| property(element, name).map(|text| scope.filled(&text));
    let whole = |name| value(name).and_then(|text| text.parse::<u32>().ok());
    all.load.vusers = whole("ThreadGroup.num_threads").filter(|n| (1..=1_000_000).contains(n));
    if value("ThreadGroup.scheduler").as_deref() == Some("true") {
        let seconds = whole("ThreadGroup.duration").filter(|s| *s > 0);
        all.load.duration = seconds.map(|s| Nanos::from_secs(u64::from(s)));
    }
    if let Some(seconds) = whole("ThreadGroup.ramp_time").filter(|s| *s > 1) {
        all.leave_out(format!("the ramp of {seconds} s: all users come at once"));
    }
    let loops = element.descendants().find(|n| n.attribute("name") == Some("LoopController.loops"));
    let loops = loops.and_then(|n| n.text()).and_then(|t| t.trim().parse::<i64>().ok());
    if let Some(loops) = loops.filter(|loops| *loops > 1) {
        all.leave_out(format!("{loops} loops of each thread: write -n or a duration"));
    }
}

impl JmeterScope {
    /// Adds the settings of a manager element.
    fn take(&mut self, element: Node, all: &mut Collector) {
        match element.tag_name().name() {
            "HeaderManager" => {
                for header in below_named(element, "Header") {
                    let (Some(name), value) =
                        (property(header, "Header.name"), property(header, "Header.value"))
                    else {
                        continue;
                    };
                    let (name, value) = (self.filled(&name), value.unwrap_or_default());
                    let value = self.filled(&value);
                    self.headers.retain(|h| !h.0.eq_ignore_ascii_case(&name));
                    self.headers.push((name, value));
                }
            }
            "ConfigTestElement" => {
                for property in element.children().filter(Node::is_element) {
                    let name = property.attribute("name").unwrap_or_default();
                    let text = property.text().unwrap_or_default().trim();
                    if name.starts_with("HTTPSampler.") && !text.is_empty() {
                        self.defaults.insert(name.to_owned(), text.to_owned());
                    }
                }
            }
            "Arguments" => {
                for argument in below_named(element, "Argument") {
                    let name = property(argument, "Argument.name").unwrap_or_default();
                    let value = property(argument, "Argument.value").unwrap_or_default();
                    // Variables may be in one another: what grows by that stays as it is.
                    let filled = Some(self.filled(&value)).filter(|f| f.len() <= VALUE_MAX);
                    self.variables.insert(name, filled.unwrap_or(value));
                }
            }
            "ConstantTimer" => {
                let delay = property(element, "ConstantTimer.delay").unwrap_or_default();
                match self.filled(&delay).parse::<u32>() {
                    Ok(ms) => self.think += Nanos::from_millis(u64::from(ms)),
                    Err(_) => all.leave_out(format!("constant timer of '{delay}'")),
                }
            }
            _ => {}
        }
    }

    /// A text with the variables of the plan in their places, as far as they are known.
    fn filled(&self, text: &str) -> String {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            if filled.len() > TEXT_MAX {
                break;
            }
            filled.push_str(before);
            let known = after
                .split_once('}')
                .and_then(|(name, after)| self.variables.get(name).map(|value| (value, after)));
            match known {
                Some((value, after)) => {
                    filled.push_str(value);
                    rest = after;
                }
                None => {
                    filled.push_str("${");
                    rest = after;
                }
            }
        }
        filled + rest
    }

    /// A property of a sampler, or of the defaults.
    fn property(&self, sampler: Node, name: &str) -> String {
        let own = property(sampler, name).filter(|text| !text.is_empty());
        let text = own.or_else(|| self.defaults.get(name).cloned());
        self.filled(&text.unwrap_or_default())
    }
}

/// One request.
fn sample(sampler: Node, scope: &JmeterScope, all: &mut Collector) {
    let value = |name| scope.property(sampler, name);
    let name = sampler.attribute("testname").unwrap_or_default().to_owned();
    let path = value("HTTPSampler.path");
    let is_whole = path.starts_with("http://") || path.starts_with("https://");
    let mut url = if is_whole {
        path
    } else {
        let protocol = value("HTTPSampler.protocol");
        let protocol = if protocol.is_empty() { "http" } else { &protocol };
        let (domain, port) = (value("HTTPSampler.domain"), value("HTTPSampler.port"));
        let colon = if port.is_empty() { "" } else { ":" };
        let slash = if path.starts_with('/') { "" } else { "/" };
        format!("{protocol}://{domain}{colon}{port}{slash}{path}")
    };
    let method = value("HTTPSampler.method");
    let method = if method.is_empty() { "GET".to_owned() } else { method };
    let is_raw = value("HTTPSampler.postBodyRaw") == "true";
    let (arguments, is_unknown) = arguments(sampler, is_raw, scope);
    if is_unknown || url.contains("${") {
        all.leave_out(format!("the value of a variable in '{name}': it is text here"));
    }
    let mut draft = SourceRequest {
        method,
        name: Some(name),
        headers: scope.headers.iter().map(|(name, value)| (name.clone(), value.into())).collect(),
        drops_cookies: false,
        ..SourceRequest::default()
    };
    let has_body = matches!(draft.method.as_str(), "POST" | "PUT" | "PATCH");
    match (arguments.is_empty(), is_raw || has_body) {
        (true, _) => {}
        (false, true) => draft.body = arguments.into_bytes(),
        (false, false) => {
            let sign = if url.contains('?') { '&' } else { '?' };
            url = format!("{url}{sign}{arguments}");
        }
    }
    if !draft.body.is_empty() && !is_raw && !draft.has_header("content-type") {
        draft.header("Content-Type", FORM);
    }
    draft.url = url.into();
    all.request_after(scope.think, draft);
}

/// Body or query of a request, and whether a variable in it is not known.
fn arguments(sampler: Node, is_raw: bool, scope: &JmeterScope) -> (String, bool) {
    let mut parts = Vec::new();
    for argument in below_named(sampler, "HTTPArgument") {
        let value = property(argument, "Argument.value").unwrap_or_default();
        let value = scope.filled(&value);
        if is_raw {
            parts.push(value);
            continue;
        }
        let name = scope.filled(&property(argument, "Argument.name").unwrap_or_default());
        let is_encoded =
            property(argument, "HTTPArgument.always_encode").as_deref() == Some("true");
        parts.push(if is_encoded {
            format!("{name}={}", component(value.as_bytes()))
        } else {
            format!("{name}={value}")
        });
    }
    let text = parts.join(if is_raw { "" } else { "&" });
    let is_unknown = text.contains("${");
    (text, is_unknown)
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
