//! A simulated path: a link of a fixed rate behind a queue in each direction, which flows of TCP
//! fill and pings wait in.

use knee_load::experiment::latency::settling::{PingsSoFar, Settling};
use knee_load::experiment::latency::{
    FlowMeasured, LatencyServiceFacts, LatencyTrial, LatencyTrialSpec, Probe, ProbeBack,
    ProbesMeasured, ScenarioEnd, ScenarioEnded, TcpSample,
};
use knee_load::measure::Direction;
use knee_load::measure::{GeneratorUse, Histogram};
use knee_load::time::Nanos;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A path, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Rate of the bottleneck in bytes per second, at least 1.
    pub bytes_per_s: u64,
    /// A segment that would have to wait for longer than this is dropped.
    pub queue: Nanos,
    /// Time from end to end, without queueing.
    pub delay: Nanos,
}

/// Payload of a segment.
const SEGMENT_BYTES: u64 = 1_448;
/// Initial window in segments (RFC 6928).
const WINDOW: f64 = 10.0;
/// After a loss a window shrinks to this share (cubic's, RFC 9438).
const SHRINK: f64 = 0.7;

/// One scenario on this path, in virtual time. Flows double their window until the first loss, then
/// add a segment per round trip and shrink it at a loss. Pings wait in the queues but take no room
/// in them, and are never lost.
pub fn simulate_flows(spec: &LatencyTrialSpec, path: &Path) -> LatencyTrial {
    let mut run = Run::new(spec, *path);
    let (ended, elapsed) = run.run();
    run.finish(ended, elapsed)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A segment arrives at the receiver of this flow. With the time at which it was sent.
    Deliver(usize, Nanos),
    /// The sender of this flow learns that a segment arrived or was dropped.
    Learn {
        flow: usize,
        came: bool,
    },
    /// The next ping is due.
    Ping,
    /// This ping arrives at the service.
    Turn(usize),
    /// This ping is back.
    Back(usize),
    Window,
    Sample,
}

struct Sender {
    measured: FlowMeasured,
    window: f64,
    threshold: f64,
    in_flight: u64,
    /// Time until which losses belong to the same window.
    recovering: Nanos,
    last_received: Nanos,
}

struct Run<'a> {
    spec: &'a LatencyTrialSpec,
    path: Path,
    /// Time at which the bottleneck of each direction becomes free.
    free: [Nanos; 2],
    senders: Vec<Sender>,
    pings: Vec<Probe>,
    /// Time at which the service received each ping that is on its way back.
    turned: BTreeMap<usize, Nanos>,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    added: u64,
    settling: Option<(Settling, Nanos)>,
}

impl<'a> Run<'a> {
    fn new(spec: &'a LatencyTrialSpec, path: Path) -> Run<'a> {
        let ups = (0..spec.up).map(|number| (Direction::Up, number));
        let downs = (0..spec.down).map(|number| (Direction::Down, number));
        Run {
            spec,
            path,
            free: [Nanos::ZERO; 2],
            senders: ups.chain(downs).map(|(d, n)| Sender::new(d, n)).collect(),
            pings: Vec::new(),
            turned: BTreeMap::new(),
            events: BinaryHeap::new(),
            added: 0,
            settling: match spec.end {
                ScenarioEnd::Settled { settle, .. } => Some((Settling::new(settle), settle.window)),
                ScenarioEnd::After(_) => None,
            },
        }
    }

    fn add(&mut self, at: Nanos, event: Event) {
        self.events.push(Reverse((at, self.added, event)));
        self.added += 1;
    }

    fn run(&mut self) -> (ScenarioEnded, Nanos) {
        let (ScenarioEnd::Settled { limit, .. } | ScenarioEnd::After(limit)) = self.spec.end;
        self.add(Nanos::ZERO, Event::Ping);
        self.add(self.spec.interval, Event::Sample);
        if let Some((_, window)) = self.settling {
            self.add(window, Event::Window);
        }
        (0..self.senders.len()).for_each(|flow| self.send(flow, Nanos::ZERO));
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            if now >= limit {
                break;
            }
            if self.handle(event, now) {
                return (ScenarioEnded::Settled, now);
            }
        }
        (ScenarioEnded::Forced, limit)
    }

    /// Handles an event. Returns whether the scenario has settled.
    fn handle(&mut self, event: Event, now: Nanos) -> bool {
        match event {
            Event::Deliver(flow, sent) => self.deliver(flow, sent, now),
            Event::Learn { flow, came } => {
                self.learn(flow, came, now);
                self.send(flow, now);
            }
            Event::Ping => {
                self.add(now + self.wait(Direction::Up, now) + self.path.delay, {
                    Event::Turn(self.pings.len())
                });
                self.add(now + self.spec.probes.every.max(Nanos(1)), Event::Ping);
                self.pings.push(Probe {
                    intended: now,
                    sent: now,
                    back: None,
                    waited: Nanos::ZERO,
                });
            }
            Event::Turn(ping) => {
                let down = self.wait(Direction::Down, now) + self.path.delay;
                self.turned.insert(ping, now);
                self.add(now + down, Event::Back(ping));
            }
            Event::Back(ping) => {
                let sent = self.pings[ping].sent;
                let turned = self.turned.remove(&ping).unwrap_or(sent);
                self.pings[ping].back = Some(ProbeBack {
                    round_trip: now - sent,
                    up: turned - sent,
                    down: now - turned,
                });
            }
            Event::Sample => {
                self.senders.iter_mut().for_each(|s| s.sample(now));
                self.add(now + self.spec.interval.max(Nanos(1)), Event::Sample);
            }
            Event::Window => return self.end_window(now),
        }
        false
    }

    fn end_window(&mut self, now: Nanos) -> bool {
        let received: Vec<u64> = self.senders.iter().map(|s| s.measured.received_bytes).collect();
        let mut pings = PingsSoFar::default();
        let back = self.pings.iter().filter_map(|ping| ping.back);
        back.for_each(|back| pings.add(back.round_trip));
        pings.longest = self.longest(now);
        let Some((settling, window)) = &mut self.settling else {
            return false;
        };
        let next = now + *window;
        let settled = settling.on_window(&received, now, pings);
        self.add(next, Event::Window);
        settled
    }

    /// Wait for the bottleneck of a segment that arrives now.
    fn wait(&self, direction: Direction, now: Nanos) -> Nanos {
        self.free[direction as usize] - now
    }

    /// Sends the segments that the window of this flow permits.
    fn send(&mut self, flow: usize, now: Nanos) {
        let direction = self.senders[flow].measured.direction;
        let on_wire = Nanos(SEGMENT_BYTES * 1_000_000_000 / self.path.bytes_per_s.max(1));
        while self.senders[flow].in_flight < self.senders[flow].window as u64 {
            self.senders[flow].in_flight += 1;
            let wait = self.wait(direction, now);
            if wait > self.path.queue {
                let learnt = now + wait + self.path.delay + self.path.delay;
                self.add(learnt, Event::Learn { flow, came: false });
                continue;
            }
            let sent = now + wait + on_wire;
            self.free[direction as usize] = sent;
            self.add(sent + self.path.delay, Event::Deliver(flow, now));
        }
    }

    fn deliver(&mut self, flow: usize, sent: Nanos, now: Nanos) {
        let back = match self.senders[flow].measured.direction {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        };
        let learnt = now + self.wait(back, now) + self.path.delay;
        self.add(learnt, Event::Learn { flow, came: true });
        let index = (now.0 / self.spec.interval.0.max(1)) as usize;
        self.senders[flow].receive(sent, now, index);
    }

    fn learn(&mut self, flow: usize, came: bool, now: Nanos) {
        let round_trip = self.path.queue + self.path.delay + self.path.delay;
        let sender = &mut self.senders[flow];
        sender.in_flight -= 1;
        if came {
            sender.window +=
                if sender.window < sender.threshold { 1.0 } else { 1.0 / sender.window };
            return;
        }
        sender.measured.retransmitted += 1;
        if now >= sender.recovering {
            sender.window = (SHRINK * sender.window).max(2.0);
            sender.threshold = sender.window;
            sender.recovering = now + round_trip;
        }
    }

    /// Longest time of a ping, finished or pending.
    fn longest(&self, now: Nanos) -> Nanos {
        let times = self.pings.iter();
        let times = times.map(|p| p.back.map_or(now - p.sent, |back| back.round_trip));
        times.max().unwrap_or_default()
    }

    fn finish(mut self, ended: ScenarioEnded, elapsed: Nanos) -> LatencyTrial {
        let longest = self.longest(elapsed);
        for ping in self.pings.iter_mut().filter(|p| p.back.is_none()) {
            ping.waited = elapsed - ping.sent;
        }
        let mut pacing_error = Histogram::default();
        self.pings.iter().for_each(|_| pacing_error.record(Nanos::ZERO));
        let probes = ProbesMeasured {
            sent: self.pings.len() as u64,
            probes: self.pings,
            longest,
            pacing_error,
            held_back: 0,
            stall_max: Nanos::ZERO,
        };
        let flows = self.senders.into_iter().map(|s| s.finish(elapsed));
        LatencyTrial {
            spec: self.spec.clone(),
            flows: flows.collect(),
            udp: self.spec.probes.udp.then(|| probes.clone()),
            tcp: probes,
            elapsed,
            ended,
            service: LatencyServiceFacts::default(),
            kernel: BTreeMap::new(),
            generator: GeneratorUse::default(),
            service_cpu: None,
            interrupted: false,
        }
    }
}

impl Sender {
    fn new(direction: Direction, number: u32) -> Sender {
        Sender {
            measured: FlowMeasured {
                direction,
                number,
                begun: Nanos::ZERO,
                ended: Nanos::ZERO,
                received_bytes: 0,
                gap_max: Nanos::ZERO,
                gap_at: Nanos::ZERO,
                by_interval: Vec::new(),
                inside: Histogram::default(),
                inside_max_by_interval: Vec::new(),
                samples: Vec::new(),
                retransmitted: 0,
                congestion_control: "reno".to_owned(),
                ecn: false,
                lost: None,
            },
            window: WINDOW,
            threshold: f64::INFINITY,
            in_flight: 0,
            recovering: Nanos::ZERO,
            last_received: Nanos::ZERO,
        }
    }

    fn receive(&mut self, sent: Nanos, now: Nanos, interval: usize) {
        self.note_gap(now);
        self.last_received = now;
        let flow = &mut self.measured;
        flow.received_bytes += SEGMENT_BYTES;
        flow.inside.record(now - sent);
        if flow.by_interval.len() <= interval {
            flow.by_interval.resize(interval + 1, 0);
            flow.inside_max_by_interval.resize(interval + 1, Nanos::ZERO);
        }
        flow.by_interval[interval] += SEGMENT_BYTES;
        let longest = &mut flow.inside_max_by_interval[interval];
        *longest = (*longest).max(now - sent);
    }

    fn note_gap(&mut self, now: Nanos) {
        let gap = now - self.last_received;
        if gap > self.measured.gap_max {
            self.measured.gap_max = gap;
            self.measured.gap_at = self.last_received;
        }
    }

    fn sample(&mut self, now: Nanos) {
        self.measured.samples.push(TcpSample {
            at: now,
            rtt: self.measured.inside.quantile(0.5),
            window_bytes: self.window as u64 * SEGMENT_BYTES,
            retransmitted: self.measured.retransmitted,
            ..TcpSample::default()
        });
    }

    fn finish(mut self, end: Nanos) -> FlowMeasured {
        self.note_gap(end);
        self.measured.ended = end;
        self.measured
    }
}
