//! State that the sessions of one worker share: randomness, data, and the kind of the next user.

use super::origin::Origin;
use super::plan::{DataSet, Deal, SessionPlan};
use crate::rng::{self, Rng};
use rand_core::RngCore as _;
use std::rc::Rc;
use std::sync::Arc;

/// A worker's own handle on the plan that all workers have. Steps take copies of the handle: with
/// the plan's alone, all workers would write to the same counter at each step.
#[allow(clippy::redundant_allocation, reason = "the counter of each worker is what it is for")]
pub type Plan = Rc<Arc<SessionPlan>>;

/// A record of a data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DealtRecord {
    pub(super) set: u16,
    pub(super) row: u32,
}

/// What the sessions of one worker are made from.
#[derive(Debug)]
pub struct Users {
    plan: Plan,
    /// The origins of the target's servers, by their numbers.
    origins: Box<[Origin]>,
    rng: Rng,
    /// The running sums of the kinds' weights.
    weights: Box<[u64]>,
    /// The next record of each data set.
    next_rows: Box<[u64]>,
    /// How many of each set were dealt in the warm-up, without being used up.
    warmup_rows: Box<[u64]>,
    /// This worker's number, and how many there are.
    share: (u64, u64),
    calls_of_seq: u64,
    /// Sessions that have begun.
    sessions: u64,
    /// The data set that had no record left for a user.
    exhausted: Option<u16>,
    /// Redirections that led to no server of the target, and were not followed.
    pub(super) led_away: u64,
}

impl Users {
    /// Users of worker `index` of `of`. No two workers deal the same record.
    pub fn new(plan: Arc<SessionPlan>, (index, of): (u32, u32), seed: u64) -> Users {
        let mut sum = 0;
        let weights = plan.kinds.iter().map(|kind| {
            sum += u64::from(kind.weight);
            sum
        });
        Users {
            weights: weights.collect(),
            next_rows: plan.data.iter().map(|_| u64::from(index)).collect(),
            warmup_rows: plan.data.iter().map(|_| 0).collect(),
            rng: rng::stream(seed, rng::SESSIONS + u64::from(index)),
            share: (u64::from(index), u64::from(of.max(1))),
            calls_of_seq: 0,
            sessions: 0,
            exhausted: None,
            led_away: 0,
            origins: Box::new([Origin::default()]),
            plan: Rc::new(plan),
        }
    }

    /// The same, whose requests go to servers of these origins, at least one.
    pub fn of_origins(self, origins: impl IntoIterator<Item = Origin>) -> Users {
        Users { origins: origins.into_iter().collect(), ..self }
    }

    pub(super) fn origins(&self) -> &[Origin] {
        &self.origins
    }

    /// What they do.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Redirections that led to no server of the target, and were not followed.
    pub fn led_away(&self) -> u64 {
        self.led_away
    }

    /// The data set that had no record left, where users had to be turned away for that.
    pub fn exhausted(&self) -> Option<&DataSet> {
        self.plan.data.get(usize::from(self.exhausted?))
    }

    /// The kind of session of the next user.
    pub fn draw_kind(&mut self) -> u16 {
        let Some(&total) = self.weights.last().filter(|_| self.weights.len() > 1) else {
            return 0;
        };
        let drawn = (rng::unit(&mut self.rng) * total as f64) as u64;
        let kind = self.weights.partition_point(|&sum| sum <= drawn);
        kind.min(self.weights.len() - 1) as u16
    }

    /// The kind of session of the user of this number among all, where each keeps its kind: as many
    /// users have each as the weights say.
    pub fn kind_of(&self, user: u64) -> u16 {
        let total = self.weights.last().copied().unwrap_or_default().max(1);
        self.weights.partition_point(|&sum| sum <= user % total) as u16
    }

    /// Deals the next record of a data set; `None` if none is left. The warm-up uses up no unique
    /// record. It deals them from the last one on backwards, so that the measured time comes to
    /// these last. After the first it begins again with the last.
    pub(super) fn deal(&mut self, set: u16, in_warmup: bool) -> Option<DealtRecord> {
        let of = &self.plan.data[usize::from(set)];
        let rows = of.rows.len() as u64;
        let (index, workers) = self.share;
        let next = &mut self.next_rows[usize::from(set)];
        let row = match of.deal {
            _ if rows == 0 => None,
            Deal::Random => Some((rng::unit(&mut self.rng) * rows as f64) as u64),
            Deal::Unique if in_warmup => {
                let dealt = &mut self.warmup_rows[usize::from(set)];
                let back = (index + *dealt * workers) % rows;
                *dealt += 1;
                Some(rows - 1 - back)
            }
            Deal::Unique => {
                let row = *next;
                *next += workers;
                Some(row).filter(|row| *row < rows)
            }
            Deal::InOrder => {
                let row = *next;
                *next += workers;
                Some(row % rows)
            }
        };
        if row.is_none() {
            self.exhausted.get_or_insert(set);
        }
        let row = row?.min(rows - 1) as u32;
        Some(DealtRecord { set, row })
    }

    pub(super) fn cell(&self, row: DealtRecord, column: u16) -> &str {
        let rows = &self.plan.data[usize::from(row.set)].rows;
        let row = rows.get(row.row as usize);
        row.and_then(|row| row.get(usize::from(column))).map_or("", String::as_str)
    }

    pub(super) fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// A whole number from `low` to `high`, both included.
    pub(super) fn random(&mut self, low: i64, high: i64) -> i64 {
        let span = (i128::from(high) - i128::from(low) + 1).max(1) as u128;
        // Scales 64 random bits to `span`: no number is more likely than another by more than one
        // part in 2^64.
        let drawn = (u128::from(self.rng.next_u64()) * span) >> 64;
        (i128::from(low) + drawn as i128) as i64
    }

    pub(super) fn bits(&mut self) -> u128 {
        u128::from(self.rng.next_u64()) << 64 | u128::from(self.rng.next_u64())
    }

    /// The number of a session that begins, which no other of the run has: 1, 2, 3, … where there
    /// is one worker.
    pub fn number(&mut self) -> u64 {
        let (index, of) = self.share;
        self.sessions += 1;
        (self.sessions - 1) * of + index + 1
    }

    /// A number that no other call gives: 1, 2, 3, … where there is one worker.
    pub(super) fn seq(&mut self) -> i64 {
        let (index, of) = self.share;
        self.calls_of_seq += 1;
        ((self.calls_of_seq - 1) * of + index + 1) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionKind;
    use std::collections::HashSet;

    fn users(deal: Deal, rows: usize, index: u32, of: u32) -> Users {
        let plan = SessionPlan {
            data: vec![DataSet {
                name: "users".to_owned(),
                columns: vec!["n".to_owned()],
                rows: (0..rows).map(|row| vec![row.to_string()]).collect(),
                deal,
            }],
            ..SessionPlan::default()
        };
        Users::new(Arc::new(plan), (index, of), 3)
    }

    #[test]
    fn unique_records_are_dealt_once_among_all_workers() {
        let mut seen = HashSet::new();
        for index in 0..3 {
            let mut users = users(Deal::Unique, 10, index, 3);
            while let Some(row) = users.deal(0, false) {
                assert!(seen.insert(users.cell(row, 0).to_owned()));
            }
            assert_eq!(users.exhausted().map(|set| &*set.name), Some("users"));
        }
        assert_eq!(seen.len(), 10);
    }

    /// What is dealt to this many users, by row.
    fn dealt(users: &mut Users, count: usize, in_warmup: bool) -> Vec<u32> {
        let rows = (0..count).filter_map(|_| users.deal(0, in_warmup));
        rows.map(|row| row.row).collect()
    }

    #[test]
    fn the_warmup_uses_up_no_unique_record() {
        let mut seen = HashSet::new();
        for index in 0..3 {
            let mut users = users(Deal::Unique, 10, index, 3);
            // More than there are, and none runs out.
            let warm = dealt(&mut users, 11, true);
            assert_eq!(warm.len(), 11);
            assert_eq!(warm[..2], [9 - index, 6 - index], "the last ones first");
            assert_eq!(users.exhausted(), None);
            let measured = dealt(&mut users, 5, false);
            assert_eq!(measured[..2], [index, index + 3], "from the first one on");
            assert!(measured.into_iter().all(|row| seen.insert(row)));
            assert!(users.exhausted().is_some());
        }
        assert_eq!(seen.len(), 10, "each once in the measured time");
    }

    #[test]
    fn records_that_repeat_are_dealt_on_after_the_warmup() {
        let mut users = users(Deal::InOrder, 3, 0, 1);
        assert_eq!(dealt(&mut users, 2, true), [0, 1]);
        assert_eq!(dealt(&mut users, 2, false), [2, 0]);
    }

    #[test]
    fn warmup_records_are_apart_while_there_are_enough() {
        let mut users = users(Deal::Unique, 10, 0, 1);
        let mut all = dealt(&mut users, 4, true);
        all.extend(dealt(&mut users, 6, false));
        let different: HashSet<_> = all.iter().collect();
        assert_eq!(different.len(), 10, "{all:?}");
    }

    #[test]
    fn records_in_order_begin_again_and_random_ones_never_end() {
        let mut users = users(Deal::InOrder, 3, 0, 1);
        let dealt: Vec<u32> = (0..5).filter_map(|_| users.deal(0, false)).map(|r| r.row).collect();
        assert_eq!(dealt, [0, 1, 2, 0, 1]);
        assert_eq!(users.exhausted(), None);
        let mut users = self::users(Deal::Random, 3, 0, 1);
        let dealt: HashSet<u32> =
            (0..100).filter_map(|_| users.deal(0, false)).map(|r| r.row).collect();
        assert_eq!(dealt.len(), 3);
    }

    #[test]
    fn kinds_come_by_their_weights() {
        let kind = |weight| SessionKind {
            name: String::new(),
            weight,
            data: Vec::new(),
            program: Vec::new(),
            variables: Vec::new(),
            repetitions: Vec::new(),
            new_connection: false,
        };
        let plan = SessionPlan { kinds: vec![kind(3), kind(7)], ..SessionPlan::default() };
        let mut users = Users::new(Arc::new(plan), (0, 1), 3);
        let first = (0..10_000).filter(|_| users.draw_kind() == 0).count();
        assert!(first.abs_diff(3_000) < 150, "{first}");
    }

    #[test]
    fn numbers_of_seq_are_unique_among_workers() {
        let mut seen = HashSet::new();
        for index in 0..4 {
            let mut users = users(Deal::Random, 1, index, 4);
            assert!((0..10).all(|_| seen.insert(users.seq())));
        }
        assert_eq!((seen.iter().min(), seen.iter().max()), (Some(&1), Some(&40)));
    }
}
