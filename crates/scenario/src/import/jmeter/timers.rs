//! Pauses before requests, and timers that give a rate.

use super::JmeterReader;
use super::element::{JmeterElement, JmeterScope};
use knee_load::time::Nanos;

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
