//! What holds for all requests below an element: headers, defaults, variables, pauses and checks.

use super::{below_named, property};
use crate::import::ImportedText;
use crate::import::collect::Collector;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use knee_load::session::Deal;
use roxmltree::Node;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The longest value of a variable that has others in it.
const VALUE_MAX: usize = 1000;

/// Settings of an element and of those above it.
#[derive(Clone, Debug, Default)]
pub(super) struct PlanScope<'a, 'b> {
    pub(super) headers: Vec<(String, ImportedText)>,
    pub(super) defaults: HashMap<String, String>,
    pub(super) variables: HashMap<String, ImportedText>,
    /// Variables that requests of the thread group have set so far.
    pub(super) extracted: Rc<RefCell<HashSet<String>>>,
    /// Pauses before each request, as laws.
    pub(super) pauses: Vec<String>,
    /// Extractors and assertions of all requests.
    pub(super) checks: Vec<Node<'a, 'b>>,
    /// Whether a session goes on after a failed request.
    pub(super) goes_on: bool,
}

/// The elements that are settings.
const SETTINGS: [&str; 9] = [
    "Arguments",
    "AuthManager",
    "CSVDataSet",
    "ConfigTestElement",
    "ConstantTimer",
    "CounterConfig",
    "GaussianRandomTimer",
    "HeaderManager",
    "UniformRandomTimer",
];

/// The elements that look at responses.
const CHECKS: [&str; 8] = [
    "BoundaryExtractor",
    "DurationAssertion",
    "HtmlExtractor",
    "JSONPathAssertion",
    "JSONPostProcessor",
    "RegexExtractor",
    "ResponseAssertion",
    "XPath2Extractor",
];

impl<'a, 'b> PlanScope<'a, 'b> {
    /// Whether elements of this name are taken into a scope.
    pub(super) fn takes(name: &str) -> bool {
        SETTINGS.contains(&name) || CHECKS.contains(&name)
    }

    /// The variables of the plan itself.
    pub(super) fn take_plan(&mut self, element: Node) {
        for arguments in
            element.children().filter(|n| n.attribute("elementType") == Some("Arguments"))
        {
            self.arguments(arguments);
        }
    }

    /// Adds the settings of an element.
    pub(super) fn take(&mut self, element: Node<'a, 'b>, all: &mut Collector) {
        let text = |name: &str| property(element, name).unwrap_or_default();
        let number = |scope: &Self, name: &str| scope.constant(&text(name)).trim().parse::<f64>();
        let name = element.tag_name().name();
        if CHECKS.contains(&name) {
            return self.checks.push(element);
        }
        match name {
            "HeaderManager" => self.header_manager(element),
            "AuthManager" => self.authorisation(element, all),
            "Arguments" => self.arguments(element),
            "CSVDataSet" => self.data(element, all),
            "ConfigTestElement" => {
                for property in element.children().filter(Node::is_element) {
                    let name = property.attribute("name").unwrap_or_default();
                    let text = property.text().unwrap_or_default().trim();
                    if name.starts_with("HTTPSampler.") && !text.is_empty() {
                        self.defaults.insert(name.to_owned(), text.to_owned());
                    }
                }
            }
            "CounterConfig" => {
                let value = ImportedText::value("seq()");
                self.variables.insert(text("CounterConfig.name"), value);
                all.remark("A counter of JMeter is the number of the call, ${seq()}.");
            }
            "ConstantTimer" | "UniformRandomTimer" | "GaussianRandomTimer" => {
                let delay = number(self, "ConstantTimer.delay").unwrap_or_default();
                let range = number(self, "RandomTimer.range").unwrap_or_default();
                let law = match name {
                    "UniformRandomTimer" if range > 0.0 => {
                        format!("uniform({delay}ms,{}ms)", delay + range)
                    }
                    "GaussianRandomTimer" => {
                        all.leave_out(format!(
                            "Gaussian timer: its mean of {delay} ms is the pause"
                        ));
                        format!("{delay}ms")
                    }
                    _ => format!("{delay}ms"),
                };
                if delay + range > 0.0 {
                    self.pauses.push(law);
                } else if text("ConstantTimer.delay") != "0" {
                    all.leave_out(format!("a timer of '{}'", text("ConstantTimer.delay")));
                }
            }
            _ => {}
        }
    }

    fn header_manager(&mut self, element: Node) {
        for header in below_named(element, "Header") {
            let Some(name) = property(header, "Header.name") else {
                continue;
            };
            let name = self.constant(&name);
            let value = property(header, "Header.value").unwrap_or_default();
            let value = self.text(&value, &mut Vec::new());
            self.headers.retain(|h| !h.0.eq_ignore_ascii_case(&name));
            self.headers.push((name, value));
        }
    }

    /// Basic authentication, which all requests of the target have.
    fn authorisation(&mut self, element: Node, all: &mut Collector) {
        let mut users = below_named(element, "Authorization");
        let Some(first) = users.next() else {
            return;
        };
        let text = |name| self.constant(&property(first, name).unwrap_or_default());
        let is_basic = !text("Authorization.mechanism").contains("DIGEST");
        if users.next().is_some() || !is_basic {
            return all.leave_out("authorisation of several places, or not Basic: write a header");
        }
        let user = format!("{}:{}", text("Authorization.username"), text("Authorization.password"));
        let value = format!("Basic {}", STANDARD.encode(user));
        self.headers.push(("Authorization".to_owned(), value.into()));
    }

    fn arguments(&mut self, element: Node) {
        for argument in below_named(element, "Argument") {
            let name = property(argument, "Argument.name").unwrap_or_default();
            let value = property(argument, "Argument.value").unwrap_or_default();
            // Variables may be in one another: what grows by that stays as it is.
            let filled = self.text(&value, &mut Vec::new());
            let is_short = filled.with_letters().len() <= VALUE_MAX;
            self.variables.insert(name, if is_short { filled } else { value.into() });
        }
    }

    /// A file of records, whose first line has to name its columns.
    fn data(&mut self, element: Node, all: &mut Collector) {
        let text = |name| self.constant(&property(element, name).unwrap_or_default());
        let (file, names) = (text("filename"), text("variableNames"));
        let order = if text("recycle") == "false" { Deal::Unique } else { Deal::InOrder };
        let stem = file.rsplit(['/', '\\']).next().unwrap_or_default();
        let set = Collector::variable(stem.split('.').next().unwrap_or_default());
        let delimiter = text("delimiter");
        let Some(written) = all.data(&set, &file, order) else {
            return all.leave_out(format!("records of '{file}': expected a .csv file"));
        };
        if names.is_empty() {
            all.leave_out(format!("records of '{file}': the plan does not name the columns"));
        }
        if !matches!(delimiter.as_str(), "" | ",") {
            all.leave_out(format!("records of '{file}': separate the columns by commas"));
        }
        if !names.is_empty() && text("ignoreFirstLine") != "true" {
            all.remark(format!("Write {names} as the first line of {written}."));
        }
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let value = ImportedText::value(format!("{set}.{name}"));
            self.variables.insert(name.to_owned(), value);
        }
    }
}
