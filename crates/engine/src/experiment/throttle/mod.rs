//! The throttle experiment: how this machine waits, and how well it holds a rate.
//!
//! [`wait`] measures one way of waiting, [`hold`] one way of holding a rate. Each is a row of a
//! table, measured on a thread of its own. The throttle itself is [`knee_load::throttle`]; this
//! module gives it a clock and something to wait with.

mod hold;
pub mod service;
#[cfg(test)]
mod tests;
mod wait;

use crate::error::{RunError, reason};
use crate::names::lookup_text;
use crate::reactor::{COVERED, margin_within_bounds};
use crate::sys::clock::{self, MonotonicClock};
use crate::sys::{thread as sys_thread, udp};
use crate::threads;
use knee_load::experiment::throttle::{
    Chore, HoldSpec, HoldStats, WaitMethod, WaitSpec, WaitStats,
};
use knee_load::spec::Margins;
use knee_load::time::{Clock, Nanos};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::panic::resume_unwind;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;
use wait::spin_until;

/// The timer slack that a thread has unless it asks for another (prctl(2), PR_SET_TIMERSLACK).
const SLACK_DEFAULT_NS: u32 = 50_000;

/// The least timer slack: 0 would mean the default.
const SLACK_LEAST_NS: u32 = 1;

/// Measures one row of the table of waits. Setting `stop` ends it after the wait under way.
///
/// # Errors
/// The method is not permitted here, or nobody answers where the chore is to be done.
pub fn wait(spec: &WaitSpec, stop: &AtomicBool) -> Result<WaitStats, RunError> {
    on_own_thread(wait::slack_ns(spec.method), || wait::wait(spec, stop))?
}

/// Measures one row of the table of rates. Setting `stop` ends it within 0.2 s.
///
/// # Errors
/// Nobody answers where the operation is to be done.
pub fn hold(spec: &HoldSpec, stop: &AtomicBool) -> Result<HoldStats, RunError> {
    on_own_thread(hold::slack_ns(spec.method), || hold::hold(spec, stop))?
}

/// Whether this machine permits a way of waiting.
///
/// # Errors
/// It does not: one line with the reason.
pub fn is_permitted(method: WaitMethod) -> Result<(), RunError> {
    wait::OpenWait::open(method, &Margins::UNKNOWN).map(drop)
}

/// Measures how late sleeps of every length end on this machine, in about `budget`. 150 ms are
/// enough for sleeps up to some 10 ms; margins of longer ones are extrapolated. Margins never
/// decrease with the length.
///
/// # Errors
/// The system refuses a thread.
pub fn measure_margins(budget: Nanos) -> Result<Margins, RunError> {
    on_own_thread(SLACK_LEAST_NS, || margins_within(budget))
}

/// Runs `work` on a thread with this timer slack, which is a thread's own and inherited.
fn on_own_thread<T: Send>(slack_ns: u32, work: impl FnOnce() -> T + Send) -> Result<T, RunError> {
    thread::scope(|scope| {
        let thread = threads::spawn(scope, "throttle", || {
            let _ = sys_thread::set_timer_slack_ns(slack_ns);
            work()
        })?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Error: the machine does not permit a way of waiting.
fn broken(what: &str, error: &io::Error) -> RunError {
    RunError::NotPermitted(format!("{what}: this machine does not permit it ({error})"))
}

/// Sleeps of each length, at most: the covered share of them is then known to some 5 %.
const SLEEPS_MAX: usize = 40;

/// With fewer, a length is concluded from the shorter ones.
const SLEEPS_MIN: usize = 5;

/// Sleeps of one length take at most this part of the budget.
const PARTS: u64 = 6;

/// Measures sleeps of every length, from short to long, for about `budget`.
fn margins_within(budget: Nanos) -> Margins {
    let clock = MonotonicClock::start();
    let mut measured = Vec::new();
    for bucket in 0..Margins::COUNT {
        // The middle of what the bucket is for.
        let length = Nanos(Margins::length_min(bucket).0 / 2 * 3);
        let part = clock.now() + Nanos(budget.0 / PARTS);
        let late = late_wakeups(&clock, length, part.min(budget));
        if late.len() < SLEEPS_MIN {
            break;
        }
        measured.push(covering(late));
    }
    margins_from(&measured)
}

/// By how much sleeps of this length end late; none begins that would not be over by `end`.
fn late_wakeups(clock: &MonotonicClock, length: Nanos, end: Nanos) -> Vec<Nanos> {
    let mut late = Vec::with_capacity(SLEEPS_MAX);
    while late.len() < SLEEPS_MAX {
        let until = clock.now() + length;
        if until > end {
            break;
        }
        clock::sleep_until(clock.origin + until.0);
        late.push(clock.now() - until);
    }
    late
}

/// The least lateness that the covered share of sleeps does not exceed.
fn covering(mut late: Vec<Nanos>) -> Nanos {
    late.sort_unstable();
    let rank = (late.len() as f64 * COVERED).ceil() as usize;
    late[rank.clamp(1, late.len()) - 1]
}

/// Margins from those measured of the shortest lengths. None is less than that of a shorter length,
/// as a core that slept longer does not wake sooner. Beyond them they go on to grow by the average
/// growth from length to length.
fn margins_from(measured: &[Nanos]) -> Margins {
    let (Some(&first), Some(&last)) = (measured.first(), measured.iter().max()) else {
        return Margins::UNKNOWN;
    };
    let growth = (last - first).0 / (measured.len() as u64 - 1).max(1);
    let mut margin = Nanos::ZERO;
    let mut margins = [0; Margins::COUNT];
    for (bucket, ns) in margins.iter_mut().enumerate() {
        margin = match measured.get(bucket) {
            Some(&found) => margin.max(found),
            None => margin + Nanos(growth),
        };
        *ns = margin_within_bounds(margin).0;
    }
    Margins::from_buckets(margins)
}

/// A datagram of [`Chore::Udp`].
const PAYLOAD: [u8; 64] = [b'k'; 64];

/// Time limit of a quote.
const QUOTE_PATIENCE: Duration = Duration::from_millis(100);

/// Attempts before a service counts as silent.
const PINGS: u32 = 3;

/// Time in which the first datagram may be refused.
const REFUSAL_PATIENCE: Duration = Duration::from_millis(20);

/// A chore with what it needs.
enum OpenChore {
    None,
    Busy(Nanos),
    Send(ConnectedPeer),
    Ask(QuoteClient),
}

/// A connected UDP socket.
struct ConnectedPeer {
    socket: UdpSocket,
    address: SocketAddr,
}

/// Client of a quote of the day service.
struct QuoteClient {
    peer: ConnectedPeer,
    /// Whether a late answer may still arrive.
    is_owed: bool,
}

impl OpenChore {
    /// Opens what the chore needs and tries the chore once.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: the name is unknown, or nothing answers.
    fn open(chore: &Chore) -> Result<OpenChore, RunError> {
        match chore {
            Chore::None => Ok(OpenChore::None),
            Chore::Busy(time) => Ok(OpenChore::Busy(*time)),
            Chore::Udp(to) => first_of(to, reach_sink).map(OpenChore::Send),
            Chore::Qotd(to) => first_of(to, reach_service).map(OpenChore::Ask),
        }
    }

    /// Whether the chore does anything.
    fn is_any(&self) -> bool {
        !matches!(self, OpenChore::None)
    }

    /// Does the chore once.
    ///
    /// # Errors
    /// The peer is gone. A quote that does not come in time is no error: it took the time that was
    /// waited.
    #[inline]
    fn perform(&mut self, clock: &MonotonicClock) -> Result<(), RunError> {
        match self {
            OpenChore::None => Ok(()),
            OpenChore::Busy(time) => {
                spin_until(clock, clock.now() + *time);
                Ok(())
            }
            OpenChore::Send(peer) => peer.send().map_err(|e| peer.lost(&e)),
            OpenChore::Ask(asker) => asker.ask().map(drop).map_err(|e| asker.peer.lost(&e)),
        }
    }
}

impl ConnectedPeer {
    fn connect(address: SocketAddr) -> io::Result<ConnectedPeer> {
        let socket = udp::connected(address)?;
        Ok(ConnectedPeer { socket, address })
    }

    fn send(&self) -> io::Result<()> {
        self.socket.send(&PAYLOAD).map(drop)
    }

    fn lost(&self, error: &io::Error) -> RunError {
        let (address, reason) = (self.address, reason(error));
        RunError::Unreachable(format!("{address} answered before, and now: {reason}"))
    }
}

impl QuoteClient {
    /// Asks for a quote. Returns whether one came in time.
    fn ask(&mut self) -> io::Result<bool> {
        let socket = &self.peer.socket;
        let mut quote = [0; 1024];
        if self.is_owed {
            socket.set_nonblocking(true)?;
            while socket.recv(&mut quote).is_ok() {}
            socket.set_nonblocking(false)?;
            self.is_owed = false;
        }
        self.peer.send()?;
        match socket.recv(&mut quote) {
            Ok(_) => Ok(true),
            Err(e) if is_no_answer(&e) => {
                self.is_owed = true;
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }
}

fn is_no_answer(error: &io::Error) -> bool {
    use ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// The first of the addresses that `reach` succeeds with.
fn first_of<T>(to: &str, reach: impl Fn(SocketAddr) -> Result<T, String>) -> Result<T, RunError> {
    let addresses = lookup_text(to).map_err(|unknown| {
        let reason = unknown.reason();
        RunError::Unreachable(format!(
            "cannot resolve '{to}': {reason}; give HOST:PORT such as 127.0.0.1:17"
        ))
    })?;
    let mut tried = Vec::new();
    for address in addresses {
        match reach(address) {
            Ok(reached) => return Ok(reached),
            Err(line) => tried.push(line),
        }
    }
    if tried.is_empty() {
        tried.push(format!("'{to}' has no address"));
    }
    Err(RunError::Unreachable(tried.join("; ")))
}

/// A sink need not answer: only a refusal shows that there is none.
fn reach_sink(address: SocketAddr) -> Result<ConnectedPeer, String> {
    let refused = |e: io::Error| {
        let reason = reason(&e);
        format!("nobody receives UDP datagrams at {address}: {reason}")
    };
    let peer = ConnectedPeer::connect(address).map_err(refused)?;
    peer.send().map_err(refused)?;
    peer.socket.set_read_timeout(Some(REFUSAL_PATIENCE)).map_err(refused)?;
    match peer.socket.recv(&mut [0; 64]) {
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => Err(refused(e)),
        _ => Ok(peer),
    }
}

fn reach_service(address: SocketAddr) -> Result<QuoteClient, String> {
    let refused = |e: io::Error| {
        let reason = reason(&e);
        format!("no quote of the day service at UDP {address}: {reason} (`knee serve qotd` is one)")
    };
    let peer = ConnectedPeer::connect(address).map_err(refused)?;
    peer.socket.set_read_timeout(Some(QUOTE_PATIENCE)).map_err(refused)?;
    let mut asker = QuoteClient { peer, is_owed: false };
    for _ in 0..PINGS {
        if asker.ask().map_err(refused)? {
            return Ok(asker);
        }
    }
    Err(format!(
        "UDP {address} sent no quote of the day in {PINGS} times {} ms",
        QUOTE_PATIENCE.as_millis()
    ))
}
