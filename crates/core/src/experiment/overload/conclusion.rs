//! What a report asks of the conclusion of `knee overload`, and whether that agrees with all else.

use super::findings::CODES;
use super::report::OverloadConclusion;
use crate::consistency::{Contradictions, Said, at_most};
use crate::experiment::answer::{Answer, values};
use crate::finding::Code;
use crate::measure::Outcomes;
use crate::trial::report::TrialReport;
use serde_json::Value;

/// A capacity that is a mean over levels may exceed each of them by this factor.
const FITTED: f64 = 1.05;

impl Answer for OverloadConclusion {
    fn codes() -> &'static [Code] {
        CODES
    }

    fn cut_short(&mut self, _trial: &TrialReport, words: String) {
        self.answer = words;
    }

    fn rows(&self) -> usize {
        self.simple.len() + self.sclients.len()
    }

    fn table(&self) -> serde_json::Result<Vec<Value>> {
        values(&self.sclients)
    }

    fn check(&self, said: Said<'_>, found: &mut Contradictions) {
        check(said, self, found);
    }
}

/// The numbers that findings rest on are those of the table.
fn stated(said: Said<'_>, of: &OverloadConclusion, found: &mut Contradictions) {
    type Row = (f64, f64, Option<u32>);
    let simple = of.simple.iter();
    let simple = simple.map(|r| (r.served_per_s, r.first_syn_per_s, r.accept_queue_max));
    let sclients = of.sclients.iter();
    let sclients = sclients.map(|r| (r.served_per_s, r.first_syn_per_s, r.accept_queue_max));
    let rows: Vec<Row> = simple.chain(sclients).collect();
    type Column = fn(&Row) -> Option<f64>;
    let columns: [(&str, Column); 3] = [
        ("served_per_s", |r| Some(r.0)),
        ("first_syn_per_s", |r| Some(r.1)),
        ("accept_queue_max", |r| r.2.map(f64::from)),
    ];
    for finding in said.findings {
        let capacity = finding.evidence.get("capacity_per_s");
        for (name, of_row) in columns {
            // What is foretold before the load rests on other figures.
            let is_measured = name != "served_per_s" || capacity.is_some();
            let Some(value) = finding.evidence.get(name).filter(|_| is_measured) else {
                continue;
            };
            let is_there = rows.iter().filter_map(of_row).any(|cell| cell == *value);
            found.unless(is_there, || {
                format!("{}: {name} {value} is in no row", finding.code)
            });
        }
        found.unless(capacity.is_none_or(|c| *c == of.capacity_per_s), || {
            format!(
                "{}: capacity {capacity:?}, {}",
                finding.code, of.capacity_per_s
            )
        });
    }
}

fn check(said: Said<'_>, of: &OverloadConclusion, found: &mut Contradictions) {
    let simple = of.simple.iter().map(|r| (r.served_per_s, &r.outcomes));
    let sclients = of.sclients.iter().map(|r| (r.served_per_s, &r.outcomes));
    let rows: Vec<(f64, &Outcomes)> = simple.chain(sclients).collect();
    let most = rows.iter().map(|(per_s, _)| *per_s).reduce(f64::max);
    if let Some(most) = most {
        found.unless(at_most(of.capacity_per_s, most * FITTED), || {
            format!("capacity {}/s, at most {most}/s served", of.capacity_per_s)
        });
        found.unless((of.capacity_per_s > 0.0) == (most > 0.0), || {
            format!("capacity {}/s, and {most}/s served", of.capacity_per_s)
        });
    }
    let syns = of.simple.iter().map(|r| (r.first_syn_per_s, r.syn_per_s));
    let syns = syns.chain(of.sclients.iter().map(|r| (r.first_syn_per_s, r.syn_per_s)));
    for (first, all) in syns {
        found.unless(at_most(first, all), || {
            format!("{first} first SYNs per second of {all}")
        });
        found.unless(at_most(first, of.max_syn_per_s), || {
            format!("{first} SYNs per second, at most {}", of.max_syn_per_s)
        });
    }
    stated(said, of, found);
    if let Some(r_squared) = of.r_squared {
        found.unless((0.0..=1.0).contains(&r_squared), || {
            format!("R² {r_squared}")
        });
    }
    let trials: u64 = said.trials.iter().map(|t| t.attempts().total()).sum();
    let listed: u64 = rows.iter().map(|(_, o)| o.total()).sum();
    found.unless(listed <= trials || said.trials.is_empty(), || {
        format!("{listed} attempts in the rows, {trials} in the trials")
    });
}
