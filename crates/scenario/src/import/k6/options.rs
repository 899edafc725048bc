//! The load that the options of a script ask for.

use super::value::JsValue;
use crate::import::collect::Collector;
use knee_load::time::Nanos;

/// Reads `options`.
pub(super) fn read(options: &JsValue, all: &mut Collector) {
    let JsValue::Object(parts) = options else {
        return;
    };
    for (name, value) in parts {
        match name.as_str() {
            "vus" | "duration" => {}
            "stages" => stages(value, all),
            "scenarios" => scenarios(value, all),
            "thresholds" => all.leave_out("option thresholds: write 'fail_if'"),
            other => all.leave_out(format!("option {other}")),
        }
    }
    fixed(options, all);
}

/// A constant number of users for a duration.
fn fixed(options: &JsValue, all: &mut Collector) {
    if let Some(JsValue::Number(vus)) = options.get("vus")
        && (1.0..=1e6).contains(vus)
    {
        all.load.vusers = Some(*vus as u32);
    }
    if let Some(time) = options.get("duration").and_then(duration) {
        all.load.duration = Some(time);
    }
}

/// Stages of users: knee's are of rates.
fn stages(stages: &JsValue, all: &mut Collector) {
    let JsValue::List(list) = stages else {
        return all.leave_out("option stages");
    };
    let (mut most, mut time) = (0.0_f64, Nanos::ZERO);
    for stage in list {
        if let Some(JsValue::Number(target)) = stage.get("target") {
            most = most.max(*target);
        }
        let length = stage.get("duration").and_then(duration);
        time += length.unwrap_or(Nanos::ZERO);
    }
    if !(1.0..=1e6).contains(&most) || time == Nanos::ZERO {
        return all.leave_out("option stages");
    }
    all.load.vusers = Some(most as u32);
    all.load.duration = Some(time);
    let time = time.exactly();
    all.leave_out(format!("option stages: {most} users for {time} in their place"));
}

fn scenarios(scenarios: &JsValue, all: &mut Collector) {
    let JsValue::Object(scenarios) = scenarios else {
        return all.leave_out("option scenarios");
    };
    for (number, (name, scenario)) in scenarios.iter().enumerate() {
        let executor = scenario.get("executor").and_then(JsValue::text);
        match executor.as_deref() {
            _ if number > 0 => all.leave_out(format!("option scenarios: '{name}'")),
            Some("constant-vus") => fixed(scenario, all),
            Some("ramping-vus") => match scenario.get("stages") {
                Some(list) => stages(list, all),
                None => all.leave_out(format!("option scenarios: '{name}'")),
            },
            Some("constant-arrival-rate") => {
                let unit = scenario.get("timeUnit").and_then(duration);
                let unit = unit.unwrap_or(Nanos::from_secs(1)).as_secs_f64();
                if let Some(JsValue::Number(rate)) = scenario.get("rate") {
                    let rate = rate / unit;
                    all.load.rate_per_s = Some(rate).filter(|r| (1e-3..=1e9).contains(r));
                }
                all.load.duration = scenario.get("duration").and_then(duration);
            }
            _ => all.leave_out(format!("option scenarios: the executor of '{name}'")),
        }
    }
}

/// `1m30s`, or a number of milliseconds.
fn duration(value: &JsValue) -> Option<Nanos> {
    let text = match value {
        JsValue::Text(text) => text.trim(),
        JsValue::Number(ms) if (0.0..=1e12).contains(ms) => {
            return Some(Nanos::from_millis(*ms as u64));
        }
        _ => return None,
    };
    let (mut sum_ms, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let is_digit = |c: char| c.is_ascii_digit() || c == '.';
        let (digits, after) = rest.split_at(rest.find(|c| !is_digit(c))?);
        let (unit, after) = after.split_at(after.find(is_digit).unwrap_or(after.len()));
        let unit_ms = match unit {
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
    (sum_ms > 0.0 && sum_ms <= 1e12).then(|| Nanos::from_millis(sum_ms as u64))
}
