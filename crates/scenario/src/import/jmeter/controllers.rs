//! Controllers: what is repeated, asked, chosen and reported as a whole.

use super::JmeterReader;
use super::condition::JmeterDecision;
use super::element::{JmeterElement, JmeterScope};
use super::expression::parts;
use super::groups::RATES;
use crate::flow::BRANCHES_MAX;
use crate::import::collect::Collector;
use crate::import::{
    ImportedCondition, ImportedRelation, ImportedRepeat, ImportedStep, ImportedText,
};
use std::rc::Rc;

/// How often steps are done that are done forever.
pub(super) const FOREVER: &str = "1000000000";
/// What it means that a condition does not hold in any session.
const NEVER: &str = "its condition never holds: its steps are left out";
/// The most passes of a loop whose condition says how many.
const PASSES_MAX: u32 = 1000;

impl<'a> JmeterReader<'a> {
    /// Imports what lies below an element.
    pub(super) fn below(&mut self, element: JmeterElement<'a>, outer: &Rc<JmeterScope<'a>>) {
        let (own, scope) = self.settled_below(element, outer);
        own.into_iter().for_each(|child| self.element(child, &scope));
    }

    /// What lies below an element, with its scope. What is no step there is settled.
    fn settled_below(
        &mut self,
        element: JmeterElement<'a>,
        outer: &Rc<JmeterScope<'a>>,
    ) -> (Vec<JmeterElement<'a>>, Rc<JmeterScope<'a>>) {
        let own = element.children();
        self.settle(&own);
        let scope = self.scope_of(&own, outer);
        (own, scope)
    }

    /// The steps of an element, in a list of their own.
    fn steps_of(
        &mut self,
        element: JmeterElement<'a>,
        scope: &Rc<JmeterScope<'a>>,
    ) -> Vec<ImportedStep> {
        self.all.open();
        self.element(element, scope);
        self.all.close()
    }

    /// The steps of a loop, whose passes may have a variable.
    fn steps_of_loop(
        &mut self,
        element: JmeterElement<'a>,
        variable: Option<String>,
        scope: &Rc<JmeterScope<'a>>,
    ) -> Vec<ImportedStep> {
        variable.iter().for_each(|name| self.all.know(name));
        self.passes.push(variable);
        let steps = self.steps_below(element, scope);
        self.passes.pop();
        steps
    }

    fn steps_below(
        &mut self,
        element: JmeterElement<'a>,
        scope: &Rc<JmeterScope<'a>>,
    ) -> Vec<ImportedStep> {
        self.all.open();
        self.below(element, scope);
        self.all.close()
    }

    /// Imports an element with all below it.
    pub(super) fn element(&mut self, element: JmeterElement<'a>, scope: &Rc<JmeterScope<'a>>) {
        if self.depth > super::DEPTH_MAX {
            return self.all.leave_out("what lies more than 60 levels deep");
        }
        self.depth += 1;
        match element.kind() {
            "HTTPSamplerProxy" | "HTTPSampler" | "HTTPSampler2" => self.request(element, scope),
            "TestAction" => {
                let scope = self.scope_of(&element.children(), scope);
                self.pauses(&scope);
                self.action(element);
            }
            "GenericController" | "RecordingController" => self.below(element, scope),
            "TransactionController" => self.transaction(element, scope),
            "LoopController" => self.loop_of(element, scope),
            "WhileController" => self.while_of(element, scope),
            "ForeachController" => self.for_each(element, scope),
            "IfController" => self.if_of(element, scope),
            "OnceOnlyController" => self.once_only(element, scope),
            "SwitchController" => self.switch(element, scope),
            "ThroughputController" => self.throughput(element, scope),
            "RandomController" | "InterleaveControl" => self.one_of(element, scope),
            "RunTime" => {
                self.leave_out(element, "its steps are done once, not again for a time");
                self.below(element, scope);
            }
            "ParallelSampler" => self.parallel(element, scope),
            "ModuleController" => self.module(element, scope),
            "TestFragmentController" => {}
            _ => self.other(element, scope),
        }
        self.depth -= 1;
    }

    fn transaction(&mut self, element: JmeterElement<'a>, scope: &Rc<JmeterScope<'a>>) {
        let steps = self.steps_below(element, scope);
        self.all.push(ImportedStep::Group { name: element.name().to_owned(), steps });
    }

    fn parallel(&mut self, element: JmeterElement<'a>, scope: &Rc<JmeterScope<'a>>) {
        let steps = self.steps_below(element, scope);
        if steps.len() <= BRANCHES_MAX && steps.iter().all(ImportedStep::is_branch) {
            return self.all.push(ImportedStep::Parallel(steps));
        }
        self.leave_out(element, "its steps are done one after another");
        steps.into_iter().for_each(|step| self.all.push(step));
    }

    /// The variable that numbers the passes of a loop, where something asks for it.
    fn pass_variable(&self, element: JmeterElement<'a>) -> Option<String> {
        let name = format!("__jm__{}__idx", element.name());
        if self.used.contains(name.as_str()) {
            return Some(Collector::variable(&name));
        }
        asks_for_first_pass(element).then(|| match self.passes.iter().flatten().count() {
            0 => "pass".to_owned(),
            outer => format!("pass{}", outer + 1),
        })
    }

    /// Repeats what lies below an element.
    pub(super) fn repeated(
        &mut self,
        element: JmeterElement<'a>,
        times: ImportedText,
        scope: &Rc<JmeterScope<'a>>,
    ) {
        let variable = self.pass_variable(element);
        let steps = self.steps_of_loop(element, variable.clone(), scope);
        let times = ImportedRepeat::Times(times);
        self.all.push(ImportedStep::Repeat { times, variable, steps });
    }

    fn loop_of(&mut self, element: JmeterElement<'a>, scope: &Rc<JmeterScope<'a>>) {
        let text = element.text("LoopController.loops").trim();
        let is_forever = element.flag("LoopController.continue_forever") && text.is_empty();
        let times = if is_forever { "-1".into() } else { self.filled(text, element) };
        self.set_what_is_needed();
        match times.literal().map(str::trim) {
            Some("1") if self.pass_variable(element).is_none() => self.below(element, scope),
            Some("0") => self.leave_out(element, "it has no pass: its steps are left out"),
            Some(text) if text.starts_with('-') => self.repeated(element, FOREVER.into(), scope),
            Some(text) if text.parse::<u32>().is_err() => {
                self.leave_out(element, "its number of passes is not known: one is done");
                self.below(element, scope);
            }
            _ => self.repeated(element, times, scope),
        }
    }

    fn while_of(&mut self, element: JmeterElement<'a>, scope: &Rc<JmeterScope<'a>>) {
        let text = element.text("WhileController.condition").trim();
        // Variables that its own steps set are empty before the first pass.
        let names: Vec<String> = self.names_in(text);
        let is_new = |name: &String| !self.all.is_known(name);
        let unknown: Vec<String> = names.into_iter().filter(is_new).collect();
        let variable = self.pass_variable(element);
        let steps = self.steps_of_loop(element, variable.clone(), scope);
        let condition = match text {
            "" | "LAST" => Err("it asks whether the last request failed".to_owned()),
            _ => self.lasting(text),
        };
        let empty = |name: &String| (name.clone(), ImportedText::default());
        let set = unknown.iter().filter(|name| self.all.is_known(name)).map(empty).collect();
        let times = match condition {
            Ok(JmeterDecision::Asked(condition)) => {
                self.set(set);
                self.set_what_is_needed();
                ImportedRepeat::While(condition, PASSES_MAX)
            }
            Ok(JmeterDecision::Known(false)) => {
                return self.leave_out(element, NEVER);
            }
            Ok(JmeterDecision::Known(true)) => ImportedRepeat::Times(FOREVER.into()),
            Err(why) => {
                self.leave_out(element, &format!("{why}: its steps are done once"));
                ImportedRepeat::Times("1".into())
            }
        };
        self.all.push(ImportedStep::Repeat { times, variable, steps });
    }

    /// A While controller goes on as long as its text is not `false`.
    fn lasting(&mut self, text: &str) -> Result<JmeterDecision, String> {
        if text.trim_start().starts_with("${__") {
            return self.decision(text, false);
        }
        let value = self.known(&parts(text))?;
        Ok(match value.literal() {
            Some(text) => JmeterDecision::Known(text.trim() != "false"),
            None => JmeterDecision::Asked(ImportedCondition::Compare(
                value,
                ImportedRelation::NotEqual,
                "false".into(),
            )),
        })
    }

    /// The variables that a text names.
    fn names_in(&self, text: &str) -> Vec<String> {
        let names = text.split("${").skip(1).filter_map(|rest| rest.split(['}', '(']).next());
        let names = names.filter(|name| self.set_by_steps.contains(name.trim()));
        names.map(|name| Collector::variable(name.trim())).collect()
    }

    /// Once for each of the variables `name_1`, `name_2`, ….
    fn for_each(&mut self, element: JmeterElement<'a>, scope: &Rc<JmeterScope<'a>>) {
        let input = self.constant(element.text("ForeachController.inputVal")).unwrap_or_default();
        let variable = Collector::variable(element.text("ForeachController.returnVal").trim());
        let separator = element.given("ForeachController.useSeparator") != Some("false");
        let name = |number: u32| format!("{input}{}{number}", if separator { "_" } else { "" });
        let begin = self.number::<u32>(element.text("ForeachController.startIndex")).unwrap_or(0);
        let end = self.number(element.text("ForeachController.endIndex")).unwrap_or(1000_u32);
        let list = Collector::variable(&format!("{input}_ALL"));
        let mut values = Vec::new();
        for number in begin.saturating_add(1)..=end.min(1000) {
            match self.variables.get(&name(number)).cloned() {
                Some(value) => values.push(value),
                None => break,
            }
        }
        let times = if !values.is_empty() {
            ImportedRepeat::Each(values)
        } else if self.all.is_known(&list) && begin == 0 && end == 1000 {
            ImportedRepeat::Elements(ImportedText::value(list))
        } else {
            let what = format!("the values of {} are not a list here: one pass is done", name(1));
            self.leave_out(element, &what);
            return self.below(element, scope);
        };
        self.all.know(&variable);
        let steps = self.steps_of_loop(element, None, scope);
        self.all.push(ImportedStep::Repeat { times, variable: Some(variable), steps });
    }

    fn if_of(&mut self, element: JmeterElement<'a>, scope: &Rc<JmeterScope<'a>>) {
        let is_script = !element.flag("IfController.useExpression");
        let decision = self.decision(element.text("IfController.condition"), is_script);
        self.set_what_is_needed();
        match decision {
            Ok(JmeterDecision::Known(true)) => self.below(element, scope),
            Ok(JmeterDecision::Known(false)) => self.leave_out(element, NEVER),
            Ok(JmeterDecision::Asked(condition)) => {
                if element.flag("IfController.evaluateAll") {
                    self.leave_out(element, "its condition is asked once, not before each step");
                }
                let steps = self.steps_below(element, scope);
                self.all.push(ImportedStep::When { condition, steps, otherwise: Vec::new() });
            }
            Err(why) => {
                self.leave_out(element, &format!("{why}: its steps are always done"));
                self.below(element, scope);
            }
        }
    }

    fn once_only(&mut self, element: JmeterElement<'a>, scope: &Rc<JmeterScope<'a>>) {
        let Some(Some(pass)) = self.passes.last().cloned() else {
            if self.passes.is_empty() {
                self.leave_out(
                    element,
                    "its steps are done in each session, not once in each thread",
                );
            }
            return self.below(element, scope);
        };
        let first = ImportedCondition::Compare(
            ImportedText::value(pass),
            ImportedRelation::Equal,
            "0".into(),
        );
        let steps = self.steps_below(element, scope);
        self.all.push(ImportedStep::When { condition: first, steps, otherwise: Vec::new() });
    }

    /// The child with the number or the name that a value has.
    fn switch(&mut self, element: JmeterElement<'a>, scope: &Rc<JmeterScope<'a>>) {
        let value = self.filled(element.text("SwitchController.value").trim(), element);
        self.set_what_is_needed();
        let (own, scope) = self.settled_below(element, scope);
        let children: Vec<JmeterElement<'a>> = own.into_iter().filter(is_step).collect();
        if let Some(text) = value.literal() {
            let number = text.parse::<usize>().ok().filter(|n| *n < children.len());
            let named = || children.iter().position(|child| child.name() == text);
            let is_number = text.is_empty() || text.bytes().all(|b| b.is_ascii_digit());
            let at = number.or_else(|| if is_number { Some(0) } else { named() });
            if let Some(child) = at.and_then(|at| children.get(at)) {
                self.element(*child, &scope);
            }
            return;
        }
        for (number, child) in children.iter().enumerate() {
            let is = |text: &str| {
                ImportedCondition::Compare(value.clone(), ImportedRelation::Equal, text.into())
            };
            let number = number.to_string();
            let condition = ImportedCondition::Any(vec![is(&number), is(child.name())]);
            let steps = self.steps_of(*child, &scope);
            self.all.push(ImportedStep::When { condition, steps, otherwise: Vec::new() });
        }
        self.leave_out(element, "a value that is none of its children does nothing");
    }

    /// A share of the passes, or a number of them.
    fn throughput(&mut self, element: JmeterElement<'a>, scope: &Rc<JmeterScope<'a>>) {
        let is_percent = element.text("ThroughputController.style").trim() == "1";
        let percent = element.given("ThroughputController.percentThroughput").unwrap_or("100");
        let Some(percent) = self.number::<f64>(percent).filter(|_| is_percent) else {
            let what = if is_percent {
                "its share is not known: its steps are always done"
            } else {
                "its steps are done in each session, not a number of times in all"
            };
            self.leave_out(element, what);
            return self.below(element, scope);
        };
        let share = (percent * 100.0).round().clamp(0.0, 10_000.0) as u32;
        match share {
            0 => self.leave_out(element, "its share is 0 %: its steps are left out"),
            10_000 => self.below(element, scope),
            share => {
                let steps = self.steps_below(element, scope);
                let unit = if share % 100 == 0 { 100 } else { 1 };
                let others = (10_000 - share) / unit;
                if !steps.is_empty() {
                    let choices = vec![(share / unit, steps), (others, Vec::new())];
                    self.all.push(ImportedStep::Choose(choices));
                }
            }
        }
    }

    /// One of the children, by chance.
    fn one_of(&mut self, element: JmeterElement<'a>, scope: &Rc<JmeterScope<'a>>) {
        if element.kind() == "InterleaveControl" {
            self.leave_out(element, "one of its children is chosen by chance, not in turn");
        }
        let (own, scope) = self.settled_below(element, scope);
        let mut choices = Vec::new();
        for child in own.into_iter().filter(is_step) {
            let steps = self.steps_of(child, &scope);
            if !steps.is_empty() {
                choices.push((1, steps));
            }
        }
        if !choices.is_empty() {
            self.all.push(ImportedStep::Choose(choices));
        }
    }

    /// What another place of the plan has.
    fn module(&mut self, element: JmeterElement<'a>, scope: &Rc<JmeterScope<'a>>) {
        let path = element.texts("ModuleController.node_path");
        let Some(tree) = self.root.children().find(|node| node.has_tag_name("hashTree")) else {
            return;
        };
        let mut found: Option<JmeterElement<'a>> = None;
        for (depth, name) in path.iter().enumerate() {
            let among = match found {
                Some(at) => at.children(),
                None => JmeterElement::list(tree, &mut 0),
            };
            match among.into_iter().find(|element| element.name() == *name) {
                Some(next) => found = Some(next),
                // The first is the root that the program itself has.
                None if depth == 0 => {}
                None => {
                    found = None;
                    break;
                }
            }
        }
        match found {
            Some(found) if found.kind() == "TestFragmentController" => self.below(found, scope),
            Some(found) => self.element(found, scope),
            None => self.leave_out(element, "what it stands for is not in the plan"),
        }
    }

    /// An element that is neither a request nor a controller of JMeter itself.
    fn other(&mut self, element: JmeterElement<'a>, scope: &Rc<JmeterScope<'a>>) {
        let kind = element.kind();
        match effect(kind) {
            Some(effect) => self.leave_out(element, effect),
            // Those beside the steps of a thread group are the rate of its sessions.
            None if RATES.contains(&kind) && self.depth > 1 => self.no_rate(element),
            None => {}
        }
        let is_around = kind.ends_with("Controller") || kind.ends_with("Control");
        if is_around {
            self.below(element, scope);
        }
    }
}

/// Whether something in a loop or a thread group is done in the first pass only.
pub(super) fn asks_for_first_pass(element: JmeterElement) -> bool {
    let asks = |e: &JmeterElement| e.kind() == "OnceOnlyController";
    element.children().iter().any(|e| asks(e) || e.children().iter().any(asks))
}

/// Whether an element is done, as a request or a controller is.
pub(super) fn is_step(element: &JmeterElement<'_>) -> bool {
    let kind = element.kind();
    let ends =
        ["Controller", "Control", "Sampler", "SamplerProxy", "Sampler2", "Action", "RunTime"];
    ends.iter().any(|end| kind.ends_with(end))
}

/// What it means that an element is not taken over. `None` where it is used elsewhere, or where
/// it changes nothing that is sent.
pub(super) fn effect(kind: &str) -> Option<&'static str> {
    const WITHOUT: [&str; 17] = [
        "Arguments",
        "ConfigTestElement",
        "CookieManager",
        "CounterConfig",
        "CSVDataSet",
        "DebugPostProcessor",
        "DebugSampler",
        "HeaderManager",
        "RandomCSVDataSetConfig",
        "RandomVariableConfig",
        "ResultCollector",
        "Summariser",
        "UserParameters",
        "AuthManager",
        "HttpMirrorControl",
        "ProxyControl",
        "TestPlan",
    ];
    const LISTENS: [&str; 8] = [
        "Listener",
        "Collector",
        "Visualizer",
        "Reporter",
        "Writer",
        "ResultSaver",
        "Logger",
        "Uploader",
    ];
    let ends = |end: &str| kind.ends_with(end);
    let is_used = super::groups::TIMERS.contains(&kind)
        || super::groups::RATES.contains(&kind)
        || super::extractors::EXTRACTORS.contains(&kind)
        || super::assertions::ASSERTIONS.contains(&kind)
        || WITHOUT.contains(&kind);
    let is_script =
        kind.starts_with("BeanShell") || kind.starts_with("BSF") || kind.starts_with("JSR223");
    match kind {
        _ if is_used => None,
        _ if is_script && ends("Listener") => {
            Some("its script is not run: what it sets or changes is not")
        }
        _ if LISTENS.iter().any(|end| ends(end)) => None,
        "CacheManager" => Some("what is cached is asked for again"),
        "DNSCacheManager" => Some("names are resolved as knee does"),
        "KeystoreConfig" => Some("its certificates are not sent"),
        "SyncTimer" => Some("requests do not wait for one another"),
        "ResultAction" => Some("what follows a failure is not changed by it"),
        "URLRewritingModifier" | "AnchorModifier" | "ParamModifier" | "RegExUserParameters" => {
            Some("requests are not changed by it")
        }
        "RandomOrderController" => Some("its steps are done in their order, not in any"),
        "CriticalSectionController" => Some("several sessions are in it at the same time"),
        "IncludeController" => Some("the plan that it includes is not read"),
        "AutoStop" => Some("the load is not ended by it: write fail_if"),
        _ if is_script => Some("its script is not run: what it sets or changes is not"),
        _ if ends("Assertion") => Some("it is not asked of responses"),
        _ if ends("Extractor") => Some("its variables are not set"),
        _ if ends("Processor") => Some("it is not done: what it sets or changes is not"),
        _ if ends("Timer") => Some("there is no pause"),
        _ if ends("Sampler") || ends("Sample") => Some("it is not done: only HTTP Requests are"),
        _ if ends("Controller") || ends("Control") => {
            Some("its steps are done once, one after another")
        }
        _ => Some("it has no effect here"),
    }
}
