//! Thread groups: kinds of sessions, and what is done once. Pauses before requests, and timers that
//! give a rate.

use super::JmeterReader;
use super::controllers::{FOREVER, asks_for_first_pass, effect};
use super::element::{JmeterElement, JmeterScope};
use super::load::{JmeterLoad, requests_in, settle};
use crate::import::ImportedText;
use crate::import::collect::Collector;
use knee_load::time::Nanos;
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
            if let Some(effect) = effect(element.kind()).filter(|_| !is_step) {
                self.leave_out(*element, effect);
            }
        }
        let has = |kind: &str| {
            let mut all = self.root.descendants();
            all.any(|n| n.has_tag_name(kind) && n.attribute("enabled") != Some("false"))
        };
        if !has("CookieManager") {
            self.all.remark("JMeter sends no cookies without a Cookie Manager; sessions here do.");
        }
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
            let threads = self.number::<u32>(group.text("ThreadGroup.num_threads"));
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
        self.set(self.first.clone());
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
        self.is_thread = asks_for_first_pass(group) && loops != Some(1) && !has_records;
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

    /// How many passes each thread makes; `None` without an end.
    fn loops(&mut self, group: JmeterElement<'a>) -> Option<u64> {
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

/// Timers that wait before each request.
pub(super) const TIMERS: [&str; 5] = [
    "ConstantTimer",
    "GaussianRandomTimer",
    "PoissonRandomTimer",
    "UniformRandomTimer",
    "SampleTimeout",
];
/// Timers that hold a rate.
pub(super) const RATES: [&str; 3] =
    ["ConstantThroughputTimer", "PreciseThroughputTimer", "VariableThroughputTimer"];

impl<'a> JmeterReader<'a> {
    /// The pauses of all timers in whose scope a request is.
    pub(super) fn pauses(&mut self, scope: &JmeterScope<'a>) {
        let timers = scope.all(&TIMERS);
        for timer in timers.into_iter().filter(|timer| timer.kind() != "SampleTimeout") {
            let delay = self.number::<f64>(timer.text("ConstantTimer.delay"));
            let is_constant = timer.kind() == "ConstantTimer";
            let range = timer.text("RandomTimer.range");
            let range = if is_constant { Some(0.0) } else { self.number::<f64>(range) };
            let is_time = |ms: &f64| (0.0..=1e10).contains(ms);
            match (delay.filter(is_time), range.filter(is_time)) {
                (Some(delay), Some(range)) => self.pause(timer, delay, range),
                _ => self.leave_out(timer, "its time is not known: there is no pause"),
            }
        }
    }

    /// A pause of `delay` milliseconds and a random part.
    fn pause(&mut self, timer: JmeterElement<'a>, delay: f64, range: f64) {
        let time = |ms: f64| Nanos::from_secs_f64(ms / 1000.0).exactly();
        let (least, most) = match timer.kind() {
            "UniformRandomTimer" => (delay, delay + range),
            // The same mean and the same deviation.
            "GaussianRandomTimer" => {
                let half = range * 3_f64.sqrt();
                ((delay - half).max(0.0), delay + half)
            }
            "PoissonRandomTimer" => {
                let half = (range * 3.0).sqrt();
                ((delay + range - half).max(0.0), delay + range + half)
            }
            _ => (delay, delay),
        };
        if least == most {
            self.all.think(Nanos::from_secs_f64(least / 1000.0));
            return;
        }
        if timer.kind() != "UniformRandomTimer" {
            self.leave_out(timer, "its pauses are uniform, of the same mean and deviation");
        }
        self.all.think_law(&format!("uniform({},{})", time(least.round()), time(most.round())));
    }

    /// A Flow Control Action: a pause, or an end of something.
    pub(super) fn action(&mut self, element: JmeterElement<'a>) {
        match element.text("ActionProcessor.action").trim() {
            "1" | "" => match self.number::<f64>(element.text("ActionProcessor.duration")) {
                Some(ms) if (0.0..=1e10).contains(&ms) => {
                    self.all.think(Nanos::from_secs_f64(ms / 1000.0));
                }
                _ => self.paused_by_law(element),
            },
            "5" => self.leave_out(element, "it breaks its loop; here the loop goes on"),
            "3" | "4" => self.leave_out(element, "it begins the next pass; here the steps go on"),
            _ => self.leave_out(element, "it stops threads; here the steps go on"),
        }
    }

    /// `${__Random(1000,3000)}` as a pause.
    fn paused_by_law(&mut self, element: JmeterElement<'a>) {
        let (value, _) = self.resolved(element.text("ActionProcessor.duration"));
        let template = value.template();
        let range = template.strip_prefix("${random(").and_then(|rest| rest.strip_suffix(")}"));
        match range.and_then(|range| range.split_once(',')) {
            Some((least, most)) if value.parts().len() == 1 => {
                self.all.think_law(&format!("uniform({least}ms,{most}ms)"));
            }
            _ => self.leave_out(element, "its time is not known: there is no pause"),
        }
    }
}
