//! The load that the options of a script ask for.

use super::super::collect::Collector;
use super::super::{ImportedLoad, ImportedStage};
use super::interpreter::K6Interpreter;
use super::value::{JsValue, number_text};
use knee_load::time::Nanos;

/// The options that are used, here or elsewhere.
const USED: [&str; 8] = [
    "vus",
    "duration",
    "iterations",
    "stages",
    "scenarios",
    "maxRedirects",
    "thresholds",
    "userAgent",
];

/// A scenario of the options, or the function that there is without any.
pub(super) struct K6Scenario {
    pub(super) name: String,
    pub(super) exec: String,
    load: ImportedLoad,
    starts_after: Nanos,
}

/// The greatest number of users or rate of a load, and whether it is of users.
fn most(load: &ImportedLoad) -> Option<(f64, bool)> {
    if !load.stages.is_empty() {
        let ends = load.stages.iter().flat_map(|stage| [stage.from, stage.to]);
        return Some((ends.fold(0.0, f64::max), load.stages_of_users));
    }
    match (load.rate_per_s, load.vusers) {
        (Some(rate), _) => Some((rate, false)),
        (None, Some(users)) => Some((f64::from(users), true)),
        _ => None,
    }
}

impl<'a> K6Interpreter<'a, '_> {
    /// The scenarios of the options; the rest of them is settled here.
    pub(super) fn scenarios(&mut self, options: &JsValue<'a>) -> Vec<K6Scenario> {
        let whole = |load| K6Scenario {
            name: "default".to_owned(),
            exec: "default".to_owned(),
            load,
            starts_after: Nanos::ZERO,
        };
        let options = options.clone().certain();
        let Some(entries) = self.heap.entries(&options).map(<[_]>::to_vec) else {
            if !matches!(options, JsValue::Undefined) {
                self.leave_out("options: they are not known");
            }
            return vec![whole(ImportedLoad::default())];
        };
        for (name, value) in &entries {
            if !USED.contains(&&**name) && !matches!(value, JsValue::Undefined) {
                self.leave_out(format!("option {name}"));
            }
        }
        let scenarios = self.entry(&options, "scenarios");
        let Some(scenarios) = self.heap.entries(&scenarios).map(<[_]>::to_vec) else {
            if !matches!(scenarios, JsValue::Undefined) {
                self.leave_out("option scenarios: they are not known");
            }
            let load = self.plain_load(&options);
            return vec![whole(load)];
        };
        let scenarios = scenarios.into_iter();
        let scenarios: Vec<K6Scenario> =
            scenarios.map(|(name, value)| self.scenario(&name, &value.certain())).collect();
        if scenarios.is_empty() { vec![whole(ImportedLoad::default())] } else { scenarios }
    }

    pub(super) fn entry(&self, object: &JsValue<'a>, name: &str) -> JsValue<'a> {
        let value = self.heap.entry(object, name).cloned();
        value.unwrap_or(JsValue::Undefined).certain()
    }

    /// A number of the options.
    fn option_number(&mut self, of: &JsValue<'a>, name: &str) -> Option<f64> {
        let value = self.entry(of, name);
        match self.as_number(value) {
            JsValue::Number(number) if number.is_finite() => Some(number),
            JsValue::Number(_) => None,
            other => {
                self.leave_out_option(name, &other);
                None
            }
        }
    }

    fn option_time(&mut self, of: &JsValue<'a>, name: &str) -> Option<Nanos> {
        let value = self.entry(of, name);
        let time = duration(&value);
        if time.is_none() && !matches!(value, JsValue::Undefined | JsValue::Null) {
            self.leave_out_option(name, &value);
        }
        time
    }

    fn leave_out_option(&mut self, name: &str, value: &JsValue<'a>) {
        let text = self.text_of(value).map_or_else(|what| what, |text| text.template());
        self.leave_out(format!("option {name}: {text}"));
    }

    /// `vus`, `duration`, `iterations` and `stages`.
    fn plain_load(&mut self, options: &JsValue<'a>) -> ImportedLoad {
        let mut load = ImportedLoad { stages_of_users: true, ..ImportedLoad::default() };
        let vus = self.option_number(options, "vus");
        load.vusers = vus.filter(|vus| (1.0..=1e6).contains(vus)).map(|vus| vus as u32);
        load.duration = self.option_time(options, "duration");
        let stages = self.entry(options, "stages");
        if !matches!(stages, JsValue::Undefined | JsValue::Null) {
            load.stages = self.stages(&stages, vus.unwrap_or(1.0), 1.0);
        }
        self.iterations(options, &mut load);
        load
    }

    fn iterations(&mut self, options: &JsValue<'a>, load: &mut ImportedLoad) {
        if let Some(count) = self.option_number(options, "iterations") {
            let count = number_text(count);
            self.leave_out(format!(
                "option iterations: {count} of them, where knee goes on until a duration or -n \
                 ends the run"
            ));
            if load.vusers.is_none() {
                load.vusers = Some(1);
            }
        }
    }

    fn stages(&mut self, list: &JsValue<'a>, begin: f64, unit_s: f64) -> Vec<ImportedStage> {
        let Some(items) = self.heap.items(list).map(<[_]>::to_vec) else {
            self.leave_out("option stages: they are not known");
            return Vec::new();
        };
        let mut from = begin / unit_s;
        let mut stages = Vec::new();
        for item in items {
            let target = self.option_number(&item, "target");
            let value = self.entry(&item, "duration");
            let (Some(target), Some(length)) = (target, zero_or(&value)) else {
                self.leave_out("option stages: one of them is not known");
                return Vec::new();
            };
            let to = target / unit_s;
            if length > Nanos::ZERO {
                stages.push(ImportedStage { from, to, length });
            }
            from = to;
        }
        stages
    }

    fn scenario(&mut self, name: &str, of: &JsValue<'a>) -> K6Scenario {
        let exec = self.entry(of, "exec");
        let exec = exec.literal().unwrap_or("default").to_owned();
        let executor = self.entry(of, "executor");
        let executor = executor.literal().unwrap_or_default().to_owned();
        let load = self.scenario_load(name, &executor, of);
        const USED: [&str; 12] = [
            "exec",
            "executor",
            "vus",
            "duration",
            "iterations",
            "stages",
            "rate",
            "timeUnit",
            "startRate",
            "startVUs",
            "startTime",
            "preAllocatedVUs",
        ];
        for (key, _) in self.heap.entries(of).unwrap_or_default().to_vec() {
            if !USED.contains(&&*key) {
                self.leave_out(format!("scenario '{name}': {key}"));
            }
        }
        let begin = self.entry(of, "startTime");
        let starts_after = zero_or(&begin).unwrap_or(Nanos::ZERO);
        K6Scenario { name: name.to_owned(), exec, load, starts_after }
    }

    fn scenario_load(&mut self, name: &str, executor: &str, of: &JsValue<'a>) -> ImportedLoad {
        let mut load = ImportedLoad::default();
        let unit = self.option_time(of, "timeUnit").unwrap_or(Nanos::from_secs(1)).as_secs_f64();
        let stages = self.entry(of, "stages");
        match executor {
            "constant-vus" | "shared-iterations" | "per-vu-iterations" => {
                load = self.plain_load(of);
                load.vusers = load.vusers.or(Some(1));
            }
            "ramping-vus" => {
                let begin = self.option_number(of, "startVUs").unwrap_or(1.0);
                load.stages = self.stages(&stages, begin, 1.0);
                load.stages_of_users = true;
            }
            "constant-arrival-rate" => {
                let rate = self.option_number(of, "rate").map(|rate| rate / unit);
                load.rate_per_s = rate.filter(|rate| (1e-3..=1e9).contains(rate));
                load.duration = self.option_time(of, "duration");
            }
            "ramping-arrival-rate" => {
                let begin = self.option_number(of, "startRate").unwrap_or(0.0);
                load.stages = self.stages(&stages, begin, unit);
            }
            other => self.leave_out(format!("scenario '{name}': the executor '{other}'")),
        }
        load
    }
}

/// Settles the load of all scenarios and gives each a weight.
pub(super) fn settle(scenarios: &[K6Scenario], all: &mut Collector) -> Vec<u32> {
    let Some(first) = scenarios.first() else {
        return Vec::new();
    };
    for scenario in scenarios.iter().filter(|s| s.starts_after > Nanos::ZERO) {
        let (name, time) = (&scenario.name, scenario.starts_after.exactly());
        all.leave_out(format!("scenario '{name}': it begins after {time}, here with the others"));
    }
    if scenarios.len() == 1 {
        put_load(&first.load, 1.0, all);
        return vec![1];
    }
    let most: Vec<Option<(f64, bool)>> = scenarios.iter().map(|s| most(&s.load)).collect();
    let of_users = most.first().copied().flatten().is_some_and(|(_, of_users)| of_users);
    let is_one_kind = most.iter().all(|m| m.is_some_and(|(m, users)| users == of_users && m > 0.0));
    if !is_one_kind {
        put_load(&first.load, 1.0, all);
        all.leave_out(format!(
            "option scenarios: their loads are of several kinds: that of '{}' for all",
            first.name
        ));
        return scenarios.iter().map(|_| 1).collect();
    }
    let shares: Vec<f64> = most.iter().map(|m| m.map_or(0.0, |(most, _)| most)).collect();
    let sum: f64 = shares.iter().sum();
    let duration = first.load.duration;
    let is_same = scenarios.iter().all(|s| s.load.stages.is_empty() && s.load.duration == duration);
    put_load(&first.load, sum / shares.first().copied().unwrap_or(sum), all);
    if !is_same {
        all.leave_out(format!(
            "option scenarios: all follow the times of '{}', by weights of their greatest loads",
            first.name
        ));
    }
    if of_users {
        all.remark(
            "Weights share the sessions out, where k6 gives each scenario users of its own.",
        );
    }
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let factor = if shares.iter().all(|s| (s / least).fract() == 0.0) { 1.0 } else { 100.0 };
    shares.iter().map(|s| ((s / least * factor).round() as u32).clamp(1, 1_000_000)).collect()
}

/// Takes a load, several times as large.
fn put_load(load: &ImportedLoad, factor: f64, all: &mut Collector) {
    let rounded = |value: f64| (value * 1e6).round() / 1e6;
    all.load.rate_per_s = load.rate_per_s.map(|rate| rounded(rate * factor));
    let users = load.vusers.map(|users| (f64::from(users) * factor).round());
    all.load.vusers = users.map(|users| users.clamp(1.0, 1e6) as u32);
    all.load.duration = load.duration;
    let scaled = |of_users: bool, value: f64| {
        let value = rounded(value * factor);
        if of_users { value.round() } else { value }
    };
    let scale = |stage: &ImportedStage| ImportedStage {
        from: scaled(load.stages_of_users, stage.from),
        to: scaled(load.stages_of_users, stage.to),
        ..*stage
    };
    let stages: Vec<ImportedStage> = load.stages.iter().map(scale).collect();
    if stages.iter().all(|stage| stage.from == 0.0 && stage.to == 0.0) {
        return;
    }
    all.load.stages = stages;
    all.load.stages_of_users = load.stages_of_users;
}

/// A time that may be 0.
fn zero_or(value: &JsValue) -> Option<Nanos> {
    let is_zero = match value {
        JsValue::Number(number) => *number == 0.0,
        other => other.literal().is_some_and(|text| {
            let digits = text.trim().trim_end_matches(|c: char| c.is_alphabetic());
            digits.parse() == Ok(0.0)
        }),
    };
    if is_zero { Some(Nanos::ZERO) } else { duration(value) }
}

/// `1m30s`, or a number of milliseconds.
pub(super) fn duration(value: &JsValue) -> Option<Nanos> {
    let text = match value {
        JsValue::Number(ms) if (0.0..=1e12).contains(ms) => {
            let time = Nanos::from_millis(*ms as u64);
            return (time > Nanos::ZERO).then_some(time);
        }
        other => other.literal()?.trim(),
    };
    if let Ok(ms) = text.parse::<f64>() {
        return duration(&JsValue::Number(ms));
    }
    let (mut sum_ms, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let is_digit = |c: char| c.is_ascii_digit() || c == '.';
        let (digits, after) = rest.split_at(rest.find(|c| !is_digit(c))?);
        let (unit, after) = after.split_at(after.find(is_digit).unwrap_or(after.len()));
        let unit_ms = match unit {
            "us" | "µs" => 1e-3,
            "ms" => 1.0,
            "s" => 1e3,
            "m" => 60e3,
            "h" => 3_600e3,
            "d" => 86_400e3,
            _ => return None,
        };
        sum_ms += digits.parse::<f64>().ok()? * unit_ms;
        rest = after;
    }
    (1.0..=1e12).contains(&sum_ms).then(|| Nanos::from_millis(sum_ms as u64))
}
