//! Decides which client sends next and when, where one thread sends for many.

use knee_load::experiment::udp::{ClientWait, UdpTrialSpec};
use knee_load::law::Law;
use knee_load::rng::{self, Rng};
use knee_load::spec::Share;
use knee_load::throttle::{Throttle, Turn};
use knee_load::time::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a sender does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextSend {
    /// Send a datagram of this client, intended for this time.
    Send(usize, Nanos),
    /// Nothing before this time.
    WaitUntil(Nanos),
    /// Nothing any more.
    Done,
}

/// Send times of the clients of one sender.
pub(super) enum SendSource {
    /// One schedule, whose times go to each client in turn.
    Schedule { throttle: Throttle, clients: usize, next: usize },
    /// Each client's own times, which follow from the end of its last send.
    Clients(PausingClients),
}

impl SendSource {
    /// Returns what to do at `now`.
    #[inline]
    pub(super) fn poll(&mut self, now: Nanos) -> NextSend {
        match self {
            SendSource::Schedule { throttle, clients, next } => match throttle.poll(now) {
                Turn::Operate { intended } => {
                    let client = *next;
                    *next = if client + 1 < *clients { client + 1 } else { 0 };
                    NextSend::Send(client, intended)
                }
                Turn::WaitUntil(moment) => NextSend::WaitUntil(moment),
                Turn::Done => NextSend::Done,
            },
            SendSource::Clients(clients) => clients.poll(now),
        }
    }

    /// Notes that what was given out since the last call was sent at `ended`.
    #[inline]
    pub(super) fn sent(&mut self, ended: Nanos) {
        if let SendSource::Clients(clients) = self {
            clients.sent(ended);
        }
    }

    /// Whether its times are a schedule, so that a datagram can be late.
    pub(super) fn is_schedule(&self) -> bool {
        matches!(self, SendSource::Schedule { .. })
    }

    /// Uses up the times of a schedule that are left before `end`, and returns their number.
    pub(super) fn left_before(&mut self, end: Nanos) -> u64 {
        let SendSource::Schedule { throttle, .. } = self else {
            return 0;
        };
        let last = end - Nanos(1);
        let is_due = |turn| matches!(turn, Turn::Operate { intended } if intended < end);
        let mut left = 0;
        while end > Nanos::ZERO && is_due(throttle.poll(last)) {
            left += 1;
        }
        left
    }
}

/// Clients that wait after each datagram, as if each was a thread that wakes exactly on time.
pub(super) struct PausingClients {
    /// Time of each client's next send, the soonest first.
    waiting: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Those whose datagrams were given out.
    sending: Vec<usize>,
    pause: ClientPause,
    /// How many datagrams they may still send.
    left: u64,
}

/// Time from a send of a client to its next one.
pub(super) enum ClientPause {
    /// After a length of time by a law, with a stream of randomness for each client.
    For(Law, Vec<Rng>),
    /// At the second tick from then. `origins`: the run's origin by each client's clock.
    Tick { period: u64, origins: Vec<u64> },
}

/// Time of each client's first send. Clients begin together, or, where they are unsynchronised,
/// each at a random time within its first cycle.
pub(super) fn first_sends(spec: &UdpTrialSpec, share: Share) -> Vec<Nanos> {
    let cycle = spec.wait.cycle().filter(|_| spec.unsynchronised).unwrap_or(Nanos::ZERO);
    let first = |client| {
        let mut rng = rng::stream(spec.seed, rng::PHASES + client);
        Nanos((rng::unit(&mut rng) * cycle.0 as f64) as u64)
    };
    numbers(spec, share).map(first).collect()
}

/// Numbers of the clients of a share among all clients.
fn numbers(spec: &UdpTrialSpec, share: Share) -> impl Iterator<Item = u64> + use<> {
    let of = u64::from(share.of);
    (0..share.part(spec.clients.into())).map(move |local| u64::from(share.index) + local * of)
}

impl ClientPause {
    /// Pause of the clients of a share; `None` where they do not sleep after each datagram.
    pub(super) fn of(spec: &UdpTrialSpec, share: Share, origin: u64) -> Option<ClientPause> {
        let stream = |client| rng::stream(spec.seed, rng::PAUSES + client);
        match spec.wait {
            ClientWait::Sleep(law) => {
                Some(ClientPause::For(law, numbers(spec, share).map(stream).collect()))
            }
            ClientWait::Tick(period) => {
                let period = period.0.max(1);
                // The clock of an unsynchronised client ticks as it begins.
                let of_client = |first: Nanos| {
                    if spec.unsynchronised { 2 * period - first.0 } else { origin }
                };
                let origins = first_sends(spec, share).into_iter().map(of_client).collect();
                Some(ClientPause::Tick { period, origins })
            }
            _ => None,
        }
    }

    /// Time of the next send of a client that had sent at `ended`.
    #[inline]
    pub(super) fn after(&mut self, client: usize, ended: Nanos) -> Nanos {
        match self {
            ClientPause::For(law, streams) => ended + law.sample(&mut streams[client]),
            ClientPause::Tick { period, origins } => {
                let origin = &origins[client];
                let ticks = origin.saturating_add(ended.0) / *period + 2;
                Nanos(ticks.saturating_mul(*period).saturating_sub(*origin))
            }
        }
    }
}

impl PausingClients {
    /// Clients that begin at these times; `left` datagrams in all.
    pub(super) fn new(first: &[Nanos], pause: ClientPause, left: u64) -> PausingClients {
        PausingClients {
            waiting: first.iter().enumerate().map(|(client, &t)| Reverse((t, client))).collect(),
            sending: Vec::with_capacity(first.len()),
            pause,
            left,
        }
    }

    fn poll(&mut self, now: Nanos) -> NextSend {
        let waiting = self.waiting.peek().filter(|_| self.left > 0);
        let Some(&Reverse((moment, client))) = waiting else {
            return NextSend::Done;
        };
        if moment > now {
            return NextSend::WaitUntil(moment);
        }
        self.waiting.pop();
        self.sending.push(client);
        self.left -= 1;
        NextSend::Send(client, moment)
    }

    fn sent(&mut self, ended: Nanos) {
        for client in self.sending.drain(..) {
            let next = self.pause.after(client, ended);
            self.waiting.push(Reverse((next, client)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan_to;
    use super::*;
    use knee_load::arrival::Arrivals;
    use knee_load::experiment::udp::ClientsAs;
    use knee_load::spec::{ArrivalLaw, Rate};
    use knee_load::throttle::CatchUp;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn schedule(clients: usize) -> SendSource {
        let rate = Rate::per_second(1_000).unwrap();
        let arrivals = Arrivals::of(rate, &ArrivalLaw::Constant, Share::WHOLE, 1);
        SendSource::Schedule {
            throttle: Throttle::new(arrivals, CatchUp::ALL, Nanos::ZERO),
            clients,
            next: 0,
        }
    }

    #[test]
    fn a_schedule_goes_round_its_clients_and_its_rest_is_known() {
        let mut source = schedule(2);
        let now = Nanos::from_millis(2);
        for (client, moment) in [(0, 0), (1, MS), (0, 2 * MS)] {
            assert_eq!(source.poll(now), NextSend::Send(client, Nanos(moment)));
        }
        assert_eq!(source.poll(now), NextSend::WaitUntil(Nanos(3 * MS)));
        // 3, 4, … 9 ms; 10 ms is not before the end.
        assert_eq!(source.left_before(Nanos::from_millis(10)), 7);
        assert_eq!(schedule(1).left_before(Nanos::ZERO), 0);
    }

    #[test]
    fn a_client_waits_from_the_end_of_its_own_send() {
        let law = Law::Fixed(Nanos(100));
        let streams = (0..2).map(|client| rng::stream(1, client)).collect();
        let mut source = SendSource::Clients(PausingClients::new(
            &[Nanos(0); 2],
            ClientPause::For(law, streams),
            5,
        ));
        assert_eq!(source.poll(Nanos(7)), NextSend::Send(0, Nanos(0)));
        source.sent(Nanos(8));
        assert_eq!(source.poll(Nanos(9)), NextSend::Send(1, Nanos(0)));
        assert_eq!(source.poll(Nanos(9)), NextSend::WaitUntil(Nanos(108)));
        source.sent(Nanos(10));
        // Both are due by now: the one that waits longer is first.
        assert_eq!(source.poll(Nanos(200)), NextSend::Send(0, Nanos(108)));
        assert_eq!(source.poll(Nanos(200)), NextSend::Send(1, Nanos(110)));
        source.sent(Nanos(201));
        assert_eq!(source.poll(Nanos(301)), NextSend::Send(0, Nanos(301)));
        assert_eq!(source.poll(Nanos(301)), NextSend::Done, "five are sent");
        assert_eq!(source.left_before(Nanos::MAX), 0, "there is no schedule");
    }

    #[test]
    fn unsynchronised_clients_keep_apart() {
        let wait = ClientWait::Tick(Nanos(10 * MS));
        let plan = plan_to("127.0.0.1:9".parse().unwrap(), wait, ClientsAs::Multiplexed);
        let spec = UdpTrialSpec { clients: 100, unsynchronised: true, ..plan.spec };
        let first = first_sends(&spec, Share::WHOLE);
        let second_half = first.iter().filter(|t| t.0 >= 10 * MS).count();
        assert!((30..70).contains(&second_half), "{first:?}");
        let pause = ClientPause::of(&spec, Share::WHOLE, 123).expect("they pause");
        let mut source = SendSource::Clients(PausingClients::new(&first, pause, 200));
        let mut now = Nanos::ZERO;
        let mut times = Vec::new();
        loop {
            match source.poll(now) {
                NextSend::Send(client, at) => times.push((client, at)),
                NextSend::WaitUntil(at) => {
                    source.sent(now);
                    now = now.max(at);
                }
                NextSend::Done => break,
            }
        }
        for (client, &first) in first.iter().enumerate() {
            let of_client = times.iter().filter(|(c, _)| *c == client).map(|(_, t)| *t);
            assert_eq!(of_client.collect::<Vec<_>>(), [first, first + Nanos(20 * MS)]);
        }
        let part = first_sends(&spec, Share { index: 1, of: 4 });
        assert_eq!(part, first.iter().skip(1).step_by(4).copied().collect::<Vec<_>>());
        let together = UdpTrialSpec { unsynchronised: false, ..spec };
        assert_eq!(first_sends(&together, Share::WHOLE), [Nanos::ZERO; 100]);
    }

    proptest! {
        /// All clients wake at the same times, whenever they had sent and whenever the run began.
        #[test]
        fn ticks_are_those_of_the_machine(
            period in 1_u64..20 * MS, origin in 0..1_000_000 * MS, ended in 0..60_000 * MS,
        ) {
            let next = ClientPause::Tick { period, origins: vec![origin] }.after(0, Nanos(ended));
            prop_assert_eq!((origin + next.0) % period, 0);
            prop_assert!(next.0 > ended + period && next.0 <= ended + 2 * period);
        }
    }
}
