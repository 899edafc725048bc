//! Thread groups: kinds of sessions, and what is done once.

use super::JmeterReader;
use super::controllers::FOREVER;
use super::element::{JmeterElement, JmeterScope};
use super::load::{JmeterLoad, requests_in, settle};
use crate::import::ImportedText;
use crate::import::collect::Collector;
use std::rc::Rc;

/// The most thread groups.
const GROUPS_MAX: usize = 200;

impl<'a> JmeterReader<'a> {
    /// Imports all thread groups of a plan.
    pub(super) fn groups(&mut self, plan: &[JmeterElement<'a>]) {
        let scope = self.scope_of(plan, &Rc::new(JmeterScope::default()));
        let of = |kind: &str| -> Vec<JmeterElement<'a>> {
            plan.iter().filter(|element| element.kind() == kind).copied().collect()
        };
        let (setup, teardown) = (of("SetupThreadGroup"), of("PostThreadGroup"));
        self.note(plan);
        if !setup.is_empty() {
            self.once(plan, &setup, &scope);
            self.all.end_setup();
        }
        let is_group = |element: &&JmeterElement<'a>| {
            let kind = element.kind();
            kind.ends_with("ThreadGroup") && !matches!(kind, "SetupThreadGroup" | "PostThreadGroup")
        };
        let mut loads = Vec::new();
        let mut groups = plan.iter().filter(is_group);
        for group in groups.by_ref().take(GROUPS_MAX) {
            loads.extend(self.group(plan, *group, &scope));
        }
        if groups.next().is_some() {
            self.all.leave_out(format!("what follows the first {GROUPS_MAX} thread groups"));
        }
        settle(&loads, &mut self.all);
        if !teardown.is_empty() {
            self.once(plan, &teardown, &scope);
            self.all.end_teardown();
        }
    }

    /// Names what stands beside the thread groups.
    fn note(&mut self, plan: &[JmeterElement<'a>]) {
        for element in plan.iter().filter(|e| !e.kind().ends_with("ThreadGroup")) {
            let is_step = element.kind().ends_with("Controller") || element.kind() == "WorkBench";
            match super::controllers::effect(element.kind()) {
                Some(effect) if !is_step => self.leave_out(*element, effect),
                _ => {}
            }
        }
        let has = |kind: &str| {
            let mut all = self.root.descendants();
            all.any(|n| n.has_tag_name(kind) && n.attribute("enabled") != Some("false"))
        };
        if has("CookieManager") {
            return;
        }
        self.all.remark("JMeter sends no cookies without a Cookie Manager; sessions here do.");
    }

    /// What is done once, before or after the load.
    fn once(
        &mut self,
        plan: &[JmeterElement<'a>],
        groups: &[JmeterElement<'a>],
        scope: &Rc<JmeterScope<'a>>,
    ) {
        self.all.begin_once();
        self.is_thread = false;
        for group in groups {
            self.begin(plan, *group);
            let threads = self.threads(*group);
            let loops = self.loops(*group);
            if threads != Some(1) || loops != Some(1) {
                self.leave_out(*group, "it is done once, by one user");
            }
            self.below(*group, scope);
            self.properties_of(*group, 0);
        }
    }

    /// Begins the steps of a thread group.
    fn begin(&mut self, plan: &[JmeterElement<'a>], group: JmeterElement<'a>) {
        self.group = group.name().to_owned();
        self.columns.clear();
        self.nameless_set = None;
        let on_error = group.text("ThreadGroup.on_sample_error").trim();
        self.goes_on = matches!(on_error, "" | "continue");
        match on_error {
            "stopthread" => self.leave_out(group, "a failure ends a session, and the next begins"),
            "stoptest" | "stoptestnow" => {
                self.leave_out(group, "a failure ends its session, not the load: write fail_if");
            }
            _ => {}
        }
        if self.used.contains("__threadNum") {
            self.set(vec![("threadNum".to_owned(), ImportedText::value("seq()"))]);
        }
        let first: Vec<(String, ImportedText)> = self.first.clone();
        self.set(first);
        self.settle(plan);
    }

    /// A kind of session, with its load.
    fn group(
        &mut self,
        plan: &[JmeterElement<'a>],
        group: JmeterElement<'a>,
        scope: &Rc<JmeterScope<'a>>,
    ) -> Option<JmeterLoad> {
        self.records(plan, group);
        let (columns, nameless) = (self.columns.clone(), self.nameless_set.clone());
        let has_records = !columns.is_empty() || nameless.is_some();
        self.begin(plan, group);
        (self.columns, self.nameless_set) = (columns, nameless);
        let requests = self.requests;
        let loops = self.loops(group);
        // A session is a pass of a thread, but for what is done in the first pass only.
        let once = |e: &JmeterElement<'a>| e.kind() == "OnceOnlyController";
        let asks = group.children().iter().any(|e| once(e) || e.children().iter().any(once));
        self.is_thread = asks && loops != Some(1) && !has_records;
        if self.is_thread {
            let times = loops.map_or(FOREVER.to_owned(), |loops| loops.to_string());
            self.all.remark(format!(
                "A session of '{}' is a whole thread, as its first pass differs.",
                group.name()
            ));
            if !self.goes_on {
                self.leave_out(group, "a failure ends all passes of its thread");
            }
            self.repeated(group, times.into(), scope);
        } else {
            if loops == Some(1) {
                self.passes.push(None);
            }
            self.below(group, scope);
            self.passes.clear();
        }
        let sent = self.requests - requests;
        if sent == 0 {
            self.leave_out(group, "it sends nothing here");
        }
        let session = self.all.end_session(group.name(), 1);
        let (name, steps) = session.map(|session| (session.name.clone(), &session.steps))?;
        let per_session = requests_in(steps);
        let mut load = self.load_of(group, loops);
        load.session = name;
        let own = self.scope_of(&group.children(), scope);
        self.rates(&mut load, &own, per_session);
        Some(load)
    }

    fn threads(&mut self, group: JmeterElement<'a>) -> Option<u32> {
        self.number(group.text("ThreadGroup.num_threads"))
    }

    /// How many passes each thread makes; `None` without an end.
    pub(super) fn loops(&mut self, group: JmeterElement<'a>) -> Option<u64> {
        let main = group.inner("ThreadGroup.main_controller")?;
        let loops = self.number::<i64>(main.text("LoopController.loops"));
        loops.and_then(|loops| u64::try_from(loops).ok())
    }

    /// The properties that scripts set from variables.
    fn properties_of(&mut self, element: JmeterElement<'a>, depth: usize) {
        for (_, text) in element.properties() {
            self.properties_in(text);
        }
        for child in element.children().into_iter().filter(|_| depth < super::DEPTH_MAX) {
            self.properties_of(child, depth + 1);
        }
    }

    /// `${__setProperty(name,${variable})}` and `props.put("name", vars.get("variable"))`.
    fn properties_in(&mut self, text: &str) {
        for call in ["__setProperty(", "props.put(", "setProperty("] {
            for rest in text.split(call).skip(1) {
                let Some((name, value)) = rest.split_once(',') else {
                    continue;
                };
                let value = value.trim_start();
                let of_call = value.strip_prefix("vars.get(");
                let variable = of_call.and_then(|rest| rest.split(['"', '\'']).nth(1));
                let plain = || value.strip_prefix("${").and_then(|rest| rest.split('}').next());
                if let Some(variable) = variable.or_else(plain) {
                    let name = name.trim().trim_matches(['"', '\'']).to_owned();
                    self.properties.insert(name, Collector::variable(variable.trim()));
                }
            }
        }
    }
}
