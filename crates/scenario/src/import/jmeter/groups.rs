//! Thread groups: kinds of sessions, and what is done once; their records, and pauses.

use super::load;
use super::{JmeterElement, JmeterReader, variable};
use knee_load::time::Nanos;

/// The longest pause, in milliseconds.
const PAUSE_MAX_MS: f64 = 1e10;

/// Timers that wait before each request.
pub(super) const TIMERS: [&str; 4] =
    ["ConstantTimer", "UniformRandomTimer", "GaussianRandomTimer", "PoissonRandomTimer"];

impl<'a> JmeterReader<'a> {
    /// Imports all thread groups of a plan.
    pub(super) fn groups(&mut self, plan: JmeterElement<'a>) {
        let (mut setup, mut teardown, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for element in self.enter(plan) {
            match element.kind() {
                "SetupThreadGroup" => setup.push(element),
                "PostThreadGroup" => teardown.push(element),
                kind if kind.ends_with("ThreadGroup") => groups.push(element),
                _ => self.note(element),
            }
        }
        self.once(&setup);
        self.all.end_setup();
        let loads: Vec<_> = groups.into_iter().filter_map(|group| self.group(group)).collect();
        load::put(&loads, &mut self.all);
        self.once(&teardown);
        self.all.end_teardown();
        self.scopes.pop();
    }

    /// Imports what is done once, before or after the load: it has no records.
    fn once(&mut self, groups: &[JmeterElement<'a>]) {
        let sets = (std::mem::take(&mut self.columns), self.nameless_set.take());
        for group in groups {
            let threads = self.number::<u32>(group.text("ThreadGroup.num_threads"));
            if threads != Some(1) || self.passes(*group) != Some(1) {
                self.leave_out(*group, "it is done once, by one user");
            }
            self.begin(*group);
            self.below(*group);
        }
        self.known.clear();
        (self.columns, self.nameless_set) = sets;
    }

    /// Begins the steps of a thread group.
    fn begin(&mut self, group: JmeterElement<'a>) {
        let on_error = group.text("ThreadGroup.on_sample_error").trim();
        self.goes_on = matches!(on_error, "" | "continue");
        if on_error.starts_with("stop") {
            self.leave_out(group, "a failure ends its session, and nothing else: write fail_if");
        }
    }

    /// A kind of session with its load. A session is a pass of a thread.
    fn group(&mut self, group: JmeterElement<'a>) -> Option<load::JmeterLoad> {
        let sets = (self.columns.len(), self.nameless_set.clone());
        self.begin(group);
        self.below(group);
        self.known.clear();
        self.columns.truncate(sets.0);
        self.nameless_set = sets.1;
        let data = std::mem::take(&mut self.used_sets).into_iter().collect();
        let session = self.all.end_session(group.name(), data);
        self.leave_out_where(group, &[(session.is_none(), "it sends nothing here")]);
        Some(self.load_of(group, session?))
    }

    /// How many passes each thread makes; `None` without an end.
    pub(super) fn passes(&mut self, group: JmeterElement<'a>) -> Option<u64> {
        let main = group.inner("ThreadGroup.main_controller")?;
        self.number::<u64>(main.text("LoopController.loops"))
    }

    /// Takes a set of records.
    pub(super) fn records(&mut self, element: JmeterElement<'a>) {
        let Some(file) = self.constant(element.text("filename")).filter(|file| !file.is_empty())
        else {
            return self.leave_out(element, "its file is not known: its variables have no values");
        };
        let name = file.rsplit(['/', '\\']).next().unwrap_or(&file);
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let wanted = if name.ends_with(".csv") { file.clone() } else { format!("{stem}.csv") };
        let is_unique = element.given("recycle") == Some("false");
        let Some((set, taken)) = self.all.data(&variable(stem), &wanted, is_unique) else {
            return self.leave_out(element, "its file cannot be one of a scenario");
        };
        if taken != file {
            self.all.remark(format!("The file '{file}' has to be {taken} beside this one."));
        }
        let is_divided = !matches!(element.text("delimiter"), "," | "");
        let has_end = is_unique && element.given("stopThread") == Some("false");
        let is_of_thread = element.text("shareMode") == "shareMode.thread";
        let effects = [
            (is_divided, "its values are not divided by ',': they have to be here"),
            (has_end, "after its last record values are <EOF>; here the load ends"),
            (is_of_thread, "each thread reads it from its begin; here all share it"),
            (self.loops > 0, "it is read in each pass; a session has one record here"),
        ];
        self.leave_out_where(element, &effects);
        let names = self.constant(element.text("variableNames")).unwrap_or_default();
        if names.is_empty() {
            self.nameless_set = Some(set);
            return;
        }
        // A column has the name that templates can have.
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        let column = |name: &&str| if name.is_empty() { String::new() } else { variable(name) };
        let columns: Vec<String> = names.iter().map(column).collect();
        let first = columns.join(",");
        self.all.remark(format!("The first line of {taken} has to be: {first}."));
        let named = names.into_iter().zip(columns).filter(|(name, _)| !name.is_empty());
        self.columns.extend(named.map(|(name, column)| (name.to_owned(), set.clone(), column)));
    }

    /// The pauses of all timers in whose scope a request is.
    pub(super) fn pauses(&mut self) {
        for timer in self.settings(&TIMERS) {
            let range = match timer.kind() {
                "ConstantTimer" => Some(0.0),
                _ => self.number::<f64>(timer.text("RandomTimer.range")),
            };
            let delay = self.number::<f64>(timer.text("ConstantTimer.delay"));
            let is_time = |ms: &f64| (0.0..=PAUSE_MAX_MS).contains(ms);
            let (Some(delay), Some(range)) = (delay.filter(is_time), range.filter(is_time)) else {
                self.leave_out(timer, "its time is not known: there is no pause");
                continue;
            };
            // Of a normal and a Poisson distribution the mean and the deviation.
            let (middle, half) = match timer.kind() {
                "GaussianRandomTimer" => (delay, range * 3_f64.sqrt()),
                "PoissonRandomTimer" => (delay + range, (range * 3.0).sqrt()),
                _ => (delay + range / 2.0, range / 2.0),
            };
            if range > 0.0 && timer.kind() != "UniformRandomTimer" {
                self.leave_out(timer, "its pauses are uniform, of the same mean and deviation");
            }
            let (least, most) = ((middle - half).max(0.0), middle + half);
            if least == most {
                self.all.think(Nanos::from_secs_f64(least / 1000.0));
            } else {
                let [least, most] =
                    [least, most].map(|ms| Nanos::from_secs_f64(ms.round() / 1000.0).exactly());
                self.all.think_law(&format!("uniform({least},{most})"));
            }
        }
    }

    /// A Flow Control Action: a pause, or an end of something.
    pub(super) fn pause(&mut self, element: JmeterElement<'a>) {
        for child in self.enter(element) {
            self.note(child);
        }
        self.pauses();
        self.scopes.pop();
        let time = self.number::<f64>(element.text("ActionProcessor.duration"));
        let time = time.filter(|ms| (0.0..=PAUSE_MAX_MS).contains(ms));
        match (element.text("ActionProcessor.action").trim(), time) {
            ("" | "1", Some(ms)) => self.all.think(Nanos::from_secs_f64(ms / 1000.0)),
            ("" | "1", None) => self.leave_out(element, "its time is not known: there is no pause"),
            _ => self.leave_out(element, "it ends something; here the steps go on"),
        }
    }
}
