//! The answer of `knee udp` against its own ledgers.

use super::report::UdpConclusion;
use crate::consistency::{Contradictions, trial};

pub(super) fn check(of: &UdpConclusion, found: &mut Contradictions) {
    for law in &of.laws {
        found.within(&law.label, |found| {
            trial::ledger(&law.ledger, found);
            found.interval("sent per second", Some(law.sent_per_s), law.sent_ci95_per_s);
            found.unless((0.0..=100.0).contains(&law.loss_percent), || {
                format!("{} % lost", law.loss_percent)
            });
            let missing = law.ledger.lost.values().sum::<u64>() as i64 + law.ledger.unexplained;
            found.unless(missing <= 0 || law.loss_percent > 0.0, || {
                format!("{missing} lost, and {} %", law.loss_percent)
            });
        });
    }
    once_each(of, found);
}

/// An explanation is supported, ruled out or undecided: one of them.
fn once_each(of: &UdpConclusion, found: &mut Contradictions) {
    let lists = [&of.supported, &of.ruled_out, &of.undecided];
    let mut names: Vec<&str> = lists
        .iter()
        .flat_map(|list| list.iter())
        .filter_map(|line| line.split(':').next())
        .collect();
    names.sort_unstable();
    for pair in names.windows(2) {
        found.unless(pair[0] != pair[1], || format!("`{}` twice", pair[0]));
    }
}
