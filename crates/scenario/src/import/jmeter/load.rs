//! The load of thread groups: users over time.

use super::{JmeterElement, JmeterReader};
use crate::import::builder::{ScenarioBuilder, present};
use crate::import::yaml::YamlValue;
use knee_load::time::Nanos;

/// The load of one thread group.
#[derive(Clone, Debug, Default)]
pub(super) struct JmeterLoad {
    /// The name of its sessions.
    session: String,
    users: u32,
    /// The time in which the users come, and the whole one; 0 where there is none.
    ramp: Nanos,
    length: Nanos,
}

impl<'a> JmeterReader<'a> {
    /// The load that a thread group asks for.
    pub(super) fn load_of(&mut self, group: JmeterElement<'a>, session: String) -> JmeterLoad {
        let mut load = JmeterLoad { session, ..JmeterLoad::default() };
        if group.kind() != "ThreadGroup" {
            self.leave_out(group, "its load is not taken over: write load");
            return load;
        }
        let threads = group.text("ThreadGroup.num_threads").trim();
        match self.number::<u32>(threads) {
            Some(threads) => load.users = threads.clamp(1, 1_000_000),
            None => self.leave_out(group, &format!("its number of threads, '{threads}'")),
        }
        let [ramp_s, length_s, delay_s] = ["ramp_time", "duration", "delay"].map(|name| {
            let value = self.number::<f64>(group.text(&format!("ThreadGroup.{name}")));
            value.filter(|value| value.is_finite()).unwrap_or(0.0).clamp(0.0, 1e9)
        });
        let is_timed = group.flag("ThreadGroup.scheduler");
        if is_timed {
            load.length = Nanos::from_secs_f64(length_s);
            // JMeter begins its threads at once where they have a second.
            load.ramp = Nanos::from_secs_f64(if ramp_s > 1.0 { ramp_s } else { 0.0 });
        }
        let has_end = load.length > Nanos::ZERO;
        if let Some(passes) = self.passes(group) {
            let what = format!("its threads make {passes} passes; here a duration or -n ends it");
            self.leave_out(group, &what);
        }
        let effects = [
            (is_timed && delay_s > 0.0, "it begins after a delay, here at once"),
            (!has_end && ramp_s > 1.0, "its threads come one after another, here at once"),
        ];
        self.leave_out_where(group, &effects);
        load
    }
}

/// Puts the load of all thread groups together, and the weights of their sessions.
pub(super) fn put(loads: &[JmeterLoad], all: &mut ScenarioBuilder) {
    let divisor = loads.iter().map(|load| load.users).fold(0, gcd).max(1);
    for load in loads {
        all.weigh(&load.session, load.users / divisor);
    }
    if loads.len() > 1 {
        all.remark(
            "Weights share the sessions out, where JMeter gives each thread group users of its own.",
        );
    }
    let users = loads.iter().fold(0, |sum: u32, load| sum.saturating_add(load.users));
    let length = loads.iter().map(|load| load.length).max().unwrap_or(Nanos::ZERO);
    let first = loads.first().map(|load| (load.ramp, load.length));
    let is_same = loads.iter().all(|load| Some((load.ramp, load.length)) == first);
    if !is_same {
        all.leave_out("times of thread groups that differ: all users come at once and stay");
    }
    let ramp = first.map_or(Nanos::ZERO, |(ramp, _)| ramp);
    if users == 0 {
        return;
    }
    if !is_same || ramp == Nanos::ZERO || length == Nanos::ZERO {
        let length = (length > Nanos::ZERO).then(|| YamlValue::plain(length.exactly()));
        all.load = present([("vusers", Some(YamlValue::plain(users))), ("duration", length)]);
        return;
    }
    let stage = |key: &str, level: String, length: Nanos| {
        let level = (key, Some(YamlValue::Plain(level)));
        YamlValue::Line(present([level, ("for", Some(YamlValue::plain(length.exactly())))]))
    };
    let reached = f64::from(users) * (length.min(ramp).as_secs_f64() / ramp.as_secs_f64());
    let mut stages =
        vec![stage("ramp", format!("0 -> {} users", reached.round()), length.min(ramp))];
    if length > ramp {
        stages.push(stage("hold", format!("{users} users"), length - ramp));
    }
    all.load = present([("stages", Some(YamlValue::List(stages)))]);
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
