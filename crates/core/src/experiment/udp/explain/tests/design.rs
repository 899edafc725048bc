//! What is tried, in which order, and what it is compared with.

use super::super::cells::{CellChange, DesignCell, block};
use super::super::{ExplainSpec, UdpExplain};
use super::{CROWD, Who, asked, explain, losers, standing, who};
use crate::experiment::NextTrial;
use crate::experiment::udp::report::{EffectRow, UdpConclusion};
use crate::experiment::udp::tests::fake::{TrialBehaviour, run};
use crate::experiment::{EndReason, Experiment};
use knee_load::experiment::udp::{ClientWait, UdpTrialSpec};
use knee_load::spec::{ArrivalLaw, WaitPolicy};

#[test]
fn the_design_has_each_cell_once_in_each_block() {
    let mut experiment = UdpExplain::new(asked(&[0, 1]));
    assert_eq!(experiment.trials(), 2 + 3 * 13);
    let (conducted, conclusion) = run(&mut experiment, |spec| losers(CROWD)(who(spec)));
    assert_eq!(conducted.trials.len(), 41);
    assert_eq!(conducted.ended, EndReason::Converged);
    assert_eq!(conclusion.effects.len(), 12);
    assert!(conclusion.effects.iter().all(|e| e.pairs == 3));
    let rows: Vec<u32> = conclusion.laws.iter().map(|row| row.trials).collect();
    assert_eq!(rows, [4, 4], "the pilot's too");
    let labels = |block: usize| {
        let trials = conducted.trials[2 + 13 * block..][..13].iter();
        let mut labels: Vec<String> = trials.map(|t| t.report.label.clone()).collect();
        let order = labels.clone();
        labels.sort();
        (order, labels)
    };
    assert_eq!(labels(0).1, labels(1).1);
    assert_ne!(labels(0).0, labels(1).0, "in another order");
    assert!(conducted.findings.iter().all(|f| !f.text.contains("4 MiB")));
    let one_core = UdpExplain::new(asked(&[0]));
    assert_eq!(one_core.trials(), 2 + 3 * 10);
    let with_priority = UdpExplain::new(ExplainSpec { realtime: true, ..asked(&[0]) });
    assert_eq!(with_priority.trials(), 2 + 3 * 11);
}

#[test]
fn a_block_has_the_unchanged_before_what_is_derived_from_it() {
    let changes =
        [CellChange::Constant, CellChange::Buffer, CellChange::Poisson, CellChange::Replay];
    for seed in 0..200 {
        let cells = block(DesignCell::Second, &changes, seed, 1);
        assert_eq!(cells.len(), 6);
        let at = |cell| cells.iter().position(|c| *c == cell).expect("once");
        for change in [CellChange::Constant, CellChange::Poisson, CellChange::Replay] {
            assert!(at(DesignCell::Second) < at(DesignCell::Changed(change)), "{cells:?}");
        }
    }
}

#[test]
fn the_subject_is_who_loses_clearly_more() {
    let base = |lost: [f64; 2]| {
        let world = move |spec: &UdpTrialSpec| TrialBehaviour {
            lost: lost[usize::from(spec.wait != ClientWait::Yield)],
            ..TrialBehaviour::default()
        };
        let (_, conclusion) = run(&mut UdpExplain::new(asked(&[0])), world);
        conclusion.effects[0].base.clone()
    };
    assert_eq!(base([0.0, 0.0]), "exp(200us)*128");
    assert_eq!(base([0.021, 0.01]), "yield*64");
    assert_eq!(base([0.019, 0.01]), "exp(200us)*128");
}

#[test]
fn a_replay_sends_the_moments_of_its_own_block() {
    let mut experiment = UdpExplain::new(asked(&[0, 1]));
    let (conducted, _) = run(&mut experiment, |spec| losers(CROWD)(who(spec)));
    let past = &conducted.trials;
    let mut replays = 0;
    for made in 0..past.len() {
        let NextTrial::Run(spec) = experiment.next(&past[..made]) else {
            panic!("trial {made} was made");
        };
        assert_eq!(spec.label, past[made].report.label, "the same again");
        let ClientWait::Schedule { rate, arrival } = &spec.wait else {
            continue;
        };
        assert_eq!((spec.clients, spec.engine.wait), (1, WaitPolicy::Spin));
        assert_eq!(rate.per_s(), 10_000.0);
        if let ArrivalLaw::Trace(moments) = arrival {
            let block = &past[2 + (made - 2) / 13 * 13..made];
            let base = block.iter().find(|t| t.report.label == "exp(200us)*128");
            assert_eq!(*moments, base.expect("before it").starts);
            replays += 1;
        }
    }
    assert_eq!(replays, 6);
}

#[test]
fn clients_that_send_nothing_cannot_be_sent_again() {
    let world = |_: &UdpTrialSpec| TrialBehaviour { refused: 1.0, ..TrialBehaviour::default() };
    let (conducted, conclusion) = run(&mut UdpExplain::new(asked(&[])), world);
    assert_eq!(
        conducted.ended,
        EndReason::Doomed("exp(200us)*128 sent nothing that could be sent again".into())
    );
    assert_eq!(standing(&conclusion, "sender_drops_or_blocks"), "supported");
}

#[test]
fn repeats_on_the_same_data_agree() {
    let one = explain(losers(CROWD));
    assert_eq!(one, explain(losers(CROWD)));
    let all = [&one.supported, &one.ruled_out, &one.undecided];
    assert_eq!(all.iter().map(|lines| lines.len()).sum::<usize>(), 9);
}

#[test]
fn an_explanation_cut_short_still_concludes() {
    let mut experiment = UdpExplain::new(asked(&[0, 1]));
    let (conducted, _) = run(&mut experiment, |spec| losers(CROWD)(who(spec)));
    for made in 0..16 {
        experiment.conclude(&conducted.trials[..made]);
    }
}

#[test]
fn a_single_sender_that_falls_behind_once_is_left_out() {
    let blocks = std::cell::Cell::new(0);
    let world = |late: u32| {
        blocks.set(0);
        explain(|who| {
            blocks.set(blocks.get() + u32::from(who == Who::Poisson));
            TrialBehaviour {
                falls_behind: who == Who::Poisson && blocks.get() <= late,
                ..losers(CROWD)(who)
            }
        })
    };
    let poisson = |conclusion: &UdpConclusion| {
        let is_it = |e: &&EffectRow| e.change.contains("Poisson");
        conclusion.effects.iter().find(is_it).map(|e| e.pairs)
    };
    let once = world(1);
    assert_eq!(standing(&once, "poisson_variance"), "ruled_out");
    assert_eq!(poisson(&once), Some(2), "of three");
    let always = world(3);
    assert_eq!(poisson(&always), None);
    let undecided = always.undecided.iter().any(|line| {
        line.starts_with("poisson_variance:")
            && line.ends_with("no single sender kept its schedule at this rate")
    });
    assert!(undecided, "{always:#?}");
}
