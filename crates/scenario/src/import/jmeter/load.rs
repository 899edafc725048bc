//! The load of thread groups: users or sessions per second over time.

use super::JmeterReader;
use super::element::{JmeterElement, JmeterScope};
use crate::import::collect::Collector;
use crate::import::{ImportedRepeat, ImportedStage, ImportedStep};
use knee_load::time::Nanos;

/// The most stages that are added up.
const STAGES_MAX: usize = 500;
/// The most passes of a loop whose requests are counted.
const PASSES_MAX: f64 = 1e6;

/// The load of one thread group.
#[derive(Clone, Debug, Default)]
pub(super) struct JmeterLoad {
    /// The name of its sessions.
    pub(super) session: String,
    of_rates: bool,
    /// Users or sessions per second, where there are no stages.
    level: f64,
    length_s: Option<f64>,
    stages: Vec<JmeterStage>,
}

/// A time of a load.
#[derive(Clone, Copy, Debug)]
struct JmeterStage {
    from: f64,
    to: f64,
    length_s: f64,
}

impl JmeterLoad {
    fn push(&mut self, from: f64, to: f64, length_s: f64) {
        if length_s > 0.0 && self.stages.len() < STAGES_MAX {
            self.stages.push(JmeterStage { from, to, length_s });
        }
    }

    /// Its greatest level.
    fn most(&self) -> f64 {
        let levels = self.stages.iter().flat_map(|stage| [stage.from, stage.to]);
        levels.fold(self.level, f64::max)
    }

    /// How long it lasts, in seconds.
    fn length(&self) -> Option<f64> {
        match &self.stages[..] {
            [] => self.length_s,
            stages => Some(stages.iter().map(|stage| stage.length_s).sum()),
        }
    }

    /// The same as stages.
    fn all_stages(&self) -> Vec<JmeterStage> {
        match (&self.stages[..], self.length_s) {
            ([], Some(length_s)) => {
                vec![JmeterStage { from: self.level, to: self.level, length_s }]
            }
            (stages, _) => stages.to_vec(),
        }
    }

    /// The level at a time: just after it, or just before.
    fn at(&self, time_s: f64, is_after: bool) -> f64 {
        let mut begin = 0.0;
        for stage in self.all_stages() {
            let end = begin + stage.length_s;
            let is_in = if is_after {
                time_s >= begin && time_s < end
            } else {
                time_s > begin && time_s <= end
            };
            if is_in {
                let part = (time_s - begin) / stage.length_s;
                return stage.from + (stage.to - stage.from) * part;
            }
            begin = end;
        }
        0.0
    }
}

impl<'a> JmeterReader<'a> {
    /// The load that a thread group asks for.
    pub(super) fn load_of(&mut self, group: JmeterElement<'a>, loops: Option<u64>) -> JmeterLoad {
        match group.kind() {
            "UltimateThreadGroup" => self.ultimate(group),
            "SteppingThreadGroup" => self.stepping(group),
            "ConcurrencyThreadGroup" | "ArrivalsThreadGroup" => self.leveled(group),
            "FreeFormArrivalsThreadGroup" => {
                let unit = unit_s(group);
                self.profile(group, "Schedule", unit, unit)
            }
            "OpenModelThreadGroup" => self.open_model(group),
            _ => self.threads_and_ramp(group, loops),
        }
    }

    fn value(&mut self, element: JmeterElement<'a>, name: &str) -> f64 {
        let value = self.number::<f64>(element.text(name)).filter(|value| value.is_finite());
        value.unwrap_or(0.0).clamp(0.0, 1e9)
    }

    /// The first numbers of a row, 0 for those that are not known.
    fn fields<const N: usize>(&mut self, row: JmeterElement<'a>) -> [f64; N] {
        let fields = row.texts("");
        std::array::from_fn(|at| {
            let text = fields.get(at).copied().unwrap_or_default();
            self.number::<f64>(text).unwrap_or(0.0).clamp(0.0, 1e9)
        })
    }

    fn threads_and_ramp(&mut self, group: JmeterElement<'a>, loops: Option<u64>) -> JmeterLoad {
        let mut load = JmeterLoad::default();
        let threads = group.text("ThreadGroup.num_threads").trim();
        match self.number::<u32>(threads) {
            Some(threads) => load.level = f64::from(threads.clamp(1, 1_000_000)),
            None => self.leave_out(group, &format!("its number of threads, '{threads}'")),
        }
        let ramp_s = self.value(group, "ThreadGroup.ramp_time");
        let is_timed = group.flag("ThreadGroup.scheduler");
        let length_s = Some(self.value(group, "ThreadGroup.duration"));
        load.length_s = length_s.filter(|length| is_timed && *length > 0.0);
        let delay_s = self.value(group, "ThreadGroup.delay");
        if is_timed && delay_s > 0.0 {
            self.leave_out(group, &format!("it begins after {delay_s} s, here at once"));
        }
        if let Some(loops) = loops {
            let level = load.level;
            let end =
                if load.length_s.is_some() { "its duration ends" } else { "a duration or -n ends" };
            let what = format!("passes of each of {level} threads: {loops}; here {end} the run");
            self.leave_out(group, &what);
        }
        match load.length_s {
            Some(length) if ramp_s > 1.0 => {
                let (level, ramp) = (load.level, ramp_s.min(length));
                load.push(0.0, level * ramp / ramp_s, ramp);
                load.push(level, level, length - ramp);
            }
            None if ramp_s > 1.0 => {
                let what = format!("its threads come within {ramp_s} s; users here come at once");
                self.leave_out(group, &what);
            }
            _ => {}
        }
        load
    }

    /// Rows of threads, delay, ramp, hold and end.
    fn ultimate(&mut self, group: JmeterElement<'a>) -> JmeterLoad {
        let mut rows = Vec::new();
        for name in ["ultimatethreadgroupdata", "threads_schedule"] {
            for row in group.listed(name).into_iter().take(50) {
                let [level, delay, ramp, hold, end] = self.fields(row);
                let mut load = JmeterLoad::default();
                load.push(0.0, 0.0, delay);
                load.push(0.0, level, ramp);
                load.push(level, level, hold);
                load.push(level, 0.0, end);
                rows.push(load);
            }
        }
        JmeterLoad { stages: sum(&rows), ..JmeterLoad::default() }
    }

    /// Steps of threads up, a hold, and steps down.
    fn stepping(&mut self, group: JmeterElement<'a>) -> JmeterLoad {
        let [threads, delay, period, ramp, hold, burst, up, down, down_period] = [
            "ThreadGroup.num_threads",
            "Threads initial delay",
            "Start users period",
            "rampUp",
            "flighttime",
            "Start users count burst",
            "Start users count",
            "Stop users count",
            "Stop users period",
        ]
        .map(|name| self.value(group, name));
        let mut load = JmeterLoad::default();
        load.push(0.0, 0.0, delay);
        let (mut level, mut step) = (0.0, if burst > 0.0 { burst } else { up.max(1.0) });
        while level < threads && load.stages.len() + 2 < STAGES_MAX {
            let next = (level + step).min(threads);
            load.push(level, next, ramp.min(period.max(ramp)));
            if next < threads {
                load.push(next, next, (period - ramp).max(0.0));
            }
            (level, step) = (next, up.max(1.0));
        }
        load.push(threads, threads, hold);
        while level > 0.0 && load.stages.len() < STAGES_MAX && down_period > 0.0 {
            level = (level - down.max(1.0)).max(0.0);
            load.push(level, level, if level > 0.0 { down_period } else { 0.0 });
        }
        load
    }

    /// A target with ramp, steps and hold, of users or of arrivals.
    fn leveled(&mut self, group: JmeterElement<'a>) -> JmeterLoad {
        let unit = unit_s(group);
        let of_rates = group.kind() == "ArrivalsThreadGroup";
        let target = self.value(group, "TargetLevel") / if of_rates { unit } else { 1.0 };
        let [ramp, steps, hold] = ["RampUp", "Steps", "Hold"].map(|name| self.value(group, name));
        let mut load = JmeterLoad { of_rates, ..JmeterLoad::default() };
        let (ramp, steps) = (ramp * unit, steps.round().min(100.0));
        if steps < 1.0 {
            load.push(0.0, target, ramp);
        } else {
            for step in 1..=steps as u32 {
                let level = target * f64::from(step) / steps;
                load.push(level, level, ramp / steps);
            }
        }
        load.push(target, target, hold * unit);
        for limit in ["Iterations", "ConcurrencyLimit"] {
            if self.value(group, limit) > 0.0 {
                self.leave_out(group, &format!("its limit {limit}"));
            }
        }
        load
    }

    /// Rows of begin, end and time.
    fn profile(
        &mut self,
        element: JmeterElement<'a>,
        name: &str,
        unit_s: f64,
        time_s: f64,
    ) -> JmeterLoad {
        let mut load = JmeterLoad { of_rates: true, ..JmeterLoad::default() };
        for row in element.listed(name).into_iter().take(STAGES_MAX) {
            let [from, to, length] = self.fields(row);
            load.push(from / unit_s, to / unit_s, length * time_s);
        }
        load
    }

    /// A schedule such as `rate(10/min) random_arrivals(1 min) rate(20/min)`.
    fn open_model(&mut self, group: JmeterElement<'a>) -> JmeterLoad {
        let mut load = JmeterLoad { of_rates: true, ..JmeterLoad::default() };
        let schedule = self.constant(group.text("OpenModelThreadGroup.schedule"));
        let schedule = schedule.unwrap_or_default();
        let (mut rate, mut waiting): (f64, Option<f64>) = (0.0, None);
        for call in schedule.split(')') {
            let Some((name, argument)) = call.split_once('(') else {
                continue;
            };
            let argument = argument.trim();
            match name.trim() {
                "rate" => {
                    let (number, unit) = argument.split_once('/').unwrap_or((argument, "s"));
                    let number = number.trim().parse::<f64>().unwrap_or(0.0);
                    let next = (number / seconds(unit).unwrap_or(1.0)).clamp(0.0, 1e9);
                    if let Some(length) = waiting.take() {
                        load.push(rate, next, length);
                    }
                    rate = next;
                }
                "random_arrivals" | "even_arrivals" => {
                    if let Some(length) = waiting.take() {
                        load.push(rate, rate, length);
                    }
                    waiting = seconds(argument);
                }
                "pause" => load.push(0.0, 0.0, seconds(argument).unwrap_or(0.0)),
                other => self.leave_out(group, &format!("'{other}' of its schedule")),
            }
        }
        if let Some(length) = waiting {
            load.push(rate, rate, length);
        }
        load
    }

    /// Takes the rate that timers of a thread group hold.
    pub(super) fn rates(
        &mut self,
        load: &mut JmeterLoad,
        scope: &JmeterScope<'a>,
        per_session: Option<f64>,
    ) {
        for timer in scope.all(&super::groups::RATES) {
            let Some(each) = per_session.filter(|each| *each > 0.0) else {
                self.leave_out(timer, "how many requests a session sends varies: write a rate");
                continue;
            };
            let mut own = match timer.kind() {
                "VariableThroughputTimer" => self.profile(timer, "load_profile", 1.0, 1.0),
                kind => {
                    let is_precise = kind == "PreciseThroughputTimer";
                    let period = self.value(timer, "throughputPeriod");
                    let period = if is_precise { period.max(1.0) } else { 60.0 };
                    let mode = timer.text("calcMode").trim();
                    let is_each =
                        !is_precise && (mode.is_empty() || mode == "0" || mode.starts_with("this"));
                    let times = if is_each { load.most().max(1.0) } else { 1.0 };
                    let level = self.value(timer, "throughput") / period * times;
                    JmeterLoad { level, length_s: load.length(), ..JmeterLoad::default() }
                }
            };
            if own.most() <= 0.0 {
                self.leave_out(timer, "its rate is not known");
                continue;
            }
            own.level /= each;
            for stage in &mut own.stages {
                (stage.from, stage.to) = (stage.from / each, stage.to / each);
            }
            let told = self.told(timer);
            let users = load.most();
            self.all.remark(format!(
                "The rate is that of {told}, for which JMeter has these threads: {users}."
            ));
            own.of_rates = true;
            own.session = std::mem::take(&mut load.session);
            *load = own;
        }
    }
}

/// The unit of a plugin's thread group, in seconds.
fn unit_s(group: JmeterElement) -> f64 {
    if group.text("Unit").trim() == "S" { 1.0 } else { 60.0 }
}

/// `1 min`, `30 s`, or a unit alone.
fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let (digits, unit) =
        text.split_at(text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len()));
    let number = if digits.trim().is_empty() { 1.0 } else { digits.trim().parse().ok()? };
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "ms" => 0.001,
        "" | "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    };
    Some(number * unit).filter(|seconds: &f64| (0.0..=1e9).contains(seconds))
}

/// All loads together.
fn sum(loads: &[JmeterLoad]) -> Vec<JmeterStage> {
    let mut times = vec![0.0];
    for load in loads {
        let mut end = 0.0;
        for stage in load.all_stages() {
            end += stage.length_s;
            times.push(end);
        }
    }
    times.sort_by(f64::total_cmp);
    times.dedup_by(|a, b| (*a - *b).abs() < 1e-9);
    let level = |time, is_after| loads.iter().map(|load| load.at(time, is_after)).sum::<f64>();
    let mut stages: Vec<JmeterStage> = Vec::new();
    for (begin, end) in times.iter().zip(times.iter().skip(1)).take(STAGES_MAX) {
        let (from, to) = (level(*begin, true), level(*end, false));
        let length_s = end - begin;
        match stages.last_mut() {
            Some(last) if last.from == last.to && from == to && last.to == from => {
                last.length_s += length_s;
            }
            _ => stages.push(JmeterStage { from, to, length_s }),
        }
    }
    stages
}

/// How many requests a session sends, where that is known.
pub(super) fn requests_in(steps: &[ImportedStep]) -> Option<f64> {
    let mut sum = 0.0;
    for step in steps {
        sum += match step {
            ImportedStep::Request(_) => 1.0,
            ImportedStep::Think(_) | ImportedStep::Set(_) => 0.0,
            ImportedStep::Group { steps, .. } | ImportedStep::Parallel(steps) => {
                requests_in(steps)?
            }
            ImportedStep::Repeat { times, steps, .. } => {
                let times = match times {
                    ImportedRepeat::Times(text) => text.literal()?.parse::<f64>().ok()?,
                    ImportedRepeat::Each(list) => list.len() as f64,
                    _ => return None,
                };
                if times > PASSES_MAX {
                    return None;
                }
                times * requests_in(steps)?
            }
            ImportedStep::Choose(choices) => {
                let weights: f64 = choices.iter().map(|(weight, _)| f64::from(*weight)).sum();
                let mut mean = 0.0;
                for (weight, steps) in choices {
                    mean += f64::from(*weight) / weights * requests_in(steps)?;
                }
                mean
            }
            ImportedStep::When { steps, otherwise, .. } => {
                let (then, not) = (requests_in(steps)?, requests_in(otherwise)?);
                if then != not {
                    return None;
                }
                then
            }
        };
    }
    Some(sum)
}

/// Settles the load of all thread groups together, and the weights of their sessions.
pub(super) fn settle(loads: &[JmeterLoad], all: &mut Collector) {
    let Some(first) = loads.first() else {
        return;
    };
    let is_one_kind = loads.iter().all(|load| load.of_rates == first.of_rates);
    if !is_one_kind {
        all.leave_out(format!(
            "thread groups of users and of rates: the load of '{}' is for all",
            first.session
        ));
        return put(std::slice::from_ref(first), all);
    }
    if loads.len() > 1 {
        let weights: Vec<u64> =
            loads.iter().map(|load| ((load.most() * 100.0).round() as u64).max(1)).collect();
        let divisor = weights.iter().copied().fold(0, gcd).max(1);
        for (load, weight) in loads.iter().zip(&weights) {
            all.weigh(&load.session, (weight / divisor).clamp(1, 1_000_000) as u32);
        }
        if !first.of_rates {
            all.remark(
                "Weights share the sessions out, where JMeter gives each thread group users of \
                 its own.",
            );
        }
        let is_same_shape = loads.iter().all(|load| load.length() == first.length());
        if !is_same_shape {
            all.leave_out(
                "times of thread groups: the shares of their sessions are the same at all times",
            );
        }
    }
    put(loads, all);
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Takes the sum of loads of one kind.
fn put(loads: &[JmeterLoad], all: &mut Collector) {
    let of_rates = loads.iter().any(|load| load.of_rates);
    let is_known = loads.iter().all(|load| load.length().is_some());
    let stages = if is_known { sum(loads) } else { Vec::new() };
    let rounded = |level: f64| {
        if of_rates { (level * 1e6).round() / 1e6 } else { level.round() }
    };
    let level = loads.iter().map(JmeterLoad::most).sum::<f64>();
    let length = match &stages[..] {
        [] => loads.iter().filter_map(JmeterLoad::length).fold(0.0, f64::max),
        stages => stages.iter().map(|stage| stage.length_s).sum(),
    };
    let is_constant = stages.iter().all(|stage| stage.from == stage.to) && stages.len() < 2;
    if is_constant {
        let level = rounded(level);
        if of_rates && level > 0.0 {
            all.load.rate_per_s = Some(level);
        } else if level >= 1.0 {
            all.load.vusers = Some(level.min(1e6) as u32);
        }
        all.load.duration = Some(Nanos::from_secs_f64(length)).filter(|time| *time > Nanos::ZERO);
        return;
    }
    let stage = |stage: &JmeterStage| ImportedStage {
        from: rounded(stage.from),
        to: rounded(stage.to),
        length: Nanos::from_secs_f64(stage.length_s),
    };
    let stages: Vec<ImportedStage> =
        stages.iter().map(stage).filter(|s| s.length > Nanos::ZERO).collect();
    if stages.iter().any(|stage| stage.from > 0.0 || stage.to > 0.0) {
        all.load.stages = stages;
        all.load.stages_of_users = !of_rates;
    }
}
