//! How long an explanation takes.

use super::super::{EXPLAIN_LIMIT, ExplainSpec, UdpExplain};
use super::{asked, losers, who};
use crate::experiment::conduct;
use crate::experiment::udp::AssessedUdpTrial;
use crate::experiment::udp::tests::fake::tried;
use knee_load::experiment::udp::{ClientsAs, UdpTrialSpec};
use knee_load::law::Law;
use knee_load::time::Nanos;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// How long all its trials take in virtual time.
fn takes(spec: ExplainSpec) -> Nanos {
    let mut total = Nanos::ZERO;
    let conducted = conduct(&mut UdpExplain::new(spec), |spec: &UdpTrialSpec| {
        total += spec.duration + spec.around();
        let trial: AssessedUdpTrial = tried(spec, losers(super::CROWD)(who(spec)));
        Ok::<_, Infallible>(ControlFlow::Continue(trial))
    });
    assert!(conducted.is_ok());
    total
}

fn with(clients: u32, carried_as: ClientsAs, work: Nanos) -> ExplainSpec {
    let mut spec = ExplainSpec { realtime: true, ..asked(&[0, 1]) };
    for clients_spec in [&mut spec.first, &mut spec.second] {
        clients_spec.clients = clients;
        clients_spec.carried_as = carried_as;
        clients_spec.setup.work = Some(Law::Fixed(work)).filter(|_| work > Nanos::ZERO);
    }
    spec
}

/// Whatever is asked for together, unless even the least does not fit.
#[test]
fn an_explanation_takes_a_minute_at_most() {
    let ms = Nanos::from_millis;
    let carriers = [ClientsAs::Multiplexed, ClientsAs::Threads, ClientsAs::Processes];
    let (mut fitting, mut refused) = (0, 0);
    for carried_as in carriers {
        for clients in [1, 64, 128, 400, 5_000] {
            for work in [Nanos::ZERO, Nanos::from_micros(100), ms(1), ms(50)] {
                for duration in [None, Some(ms(1)), Some(ms(300)), Some(Nanos::from_secs(3_600))] {
                    for repeats in [None, Some(3), Some(7), Some(4_000_000)] {
                        let spec = with(clients, carried_as, work);
                        let Ok(spec) = spec.fit(duration, repeats) else {
                            refused += 1;
                            continue;
                        };
                        fitting += 1;
                        assert!(spec.length() <= EXPLAIN_LIMIT, "{duration:?}, {repeats:?}");
                        if fitting % 16 == 1 {
                            let total = takes(spec.clone());
                            assert!(total <= spec.length(), "{total}, not {}", spec.length());
                        }
                    }
                }
            }
        }
    }
    // Too many processes, or seconds of work on a full buffer.
    assert!(fitting > 2 * refused && refused > 0, "{fitting}, {refused}");
}

#[test]
fn what_was_cut_is_said_and_only_that() {
    let fit = |duration, repeats| {
        let spec = with(128, ClientsAs::Processes, Nanos::ZERO);
        spec.fit(duration, repeats).expect("fits")
    };
    let usual = fit(None, None);
    assert_eq!((usual.cut.as_deref(), usual.left_out), (None, 0));
    assert!(usual.repeats >= 3 && usual.first.duration >= Nanos::from_millis(250));
    let long = fit(Some(Nanos::from_secs(2)), Some(10));
    let cut = long.cut.expect("it is too much");
    assert!(
        cut.starts_with("an explanation takes at most 60 s: 3 repeats instead of 10 and trials of")
            && cut.ends_with("instead of 2 s"),
        "{cut}"
    );
    let short = fit(Some(Nanos::from_millis(100)), Some(3));
    assert_eq!((short.cut, short.first.duration), (None, Nanos::from_millis(100)));
}
