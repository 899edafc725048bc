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
use std::io;
use std::io::ErrorKind::{self, Interrupted, TimedOut, WouldBlock};
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
    Datagrams(ChorePeer),
}

/// A connected UDP socket that the chore sends datagrams over.
struct ChorePeer {
    socket: UdpSocket,
    address: SocketAddr,
    /// Whether it is a quote of the day service, whose answers are awaited.
    is_service: bool,
    /// Whether a late answer may still arrive.
    is_owed: bool,
}

impl OpenChore {
    /// Opens what the chore needs and tries the chore once.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: the name is unknown, or nothing answers.
    fn open(chore: &Chore) -> Result<OpenChore, RunError> {
        let (to, is_service) = match chore {
            Chore::None => return Ok(OpenChore::None),
            Chore::Busy(time) => return Ok(OpenChore::Busy(*time)),
            Chore::Udp(to) => (to, false),
            Chore::Qotd(to) => (to, true),
        };
        let addresses = lookup_text(to).map_err(|unknown| {
            let reason = unknown.reason();
            RunError::Unreachable(format!(
                "cannot resolve '{to}': {reason}; give HOST:PORT such as 127.0.0.1:17"
            ))
        })?;
        let mut tried = Vec::new();
        for address in addresses {
            match ChorePeer::reach(address, is_service) {
                Ok(peer) => return Ok(OpenChore::Datagrams(peer)),
                Err(line) => tried.push(line),
            }
        }
        if tried.is_empty() {
            tried.push(format!("'{to}' has no address"));
        }
        Err(RunError::Unreachable(tried.join("; ")))
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
            OpenChore::None => {}
            OpenChore::Busy(time) => spin_until(clock, clock.now() + *time),
            OpenChore::Datagrams(peer) => {
                peer.exchange().map_err(|e| {
                    let (address, reason) = (peer.address, reason(&e));
                    RunError::Unreachable(format!("{address} answered before, and now: {reason}"))
                })?;
            }
        }
        Ok(())
    }
}

impl ChorePeer {
    /// Connects and tries the chore. A service has to answer one of [`PINGS`]. A sink need not
    /// answer: only a refusal shows that there is none.
    fn reach(address: SocketAddr, is_service: bool) -> Result<ChorePeer, String> {
        let refused = |e: io::Error| {
            let reason = reason(&e);
            if is_service {
                format!(
                    "no quote of the day service at UDP {address}: {reason} (`knee serve qotd` is \
                     one)"
                )
            } else {
                format!("nobody receives UDP datagrams at {address}: {reason}")
            }
        };
        let socket = udp::connected(address).map_err(refused)?;
        let patience = if is_service { QUOTE_PATIENCE } else { REFUSAL_PATIENCE };
        socket.set_read_timeout(Some(patience)).map_err(refused)?;
        let mut peer = ChorePeer { socket, address, is_service, is_owed: false };
        if !is_service {
            peer.exchange().map_err(refused)?;
            return match peer.socket.recv(&mut [0; 64]) {
                Err(e) if e.kind() == ErrorKind::ConnectionRefused => Err(refused(e)),
                _ => Ok(peer),
            };
        }
        for _ in 0..PINGS {
            if peer.exchange().map_err(refused)? {
                return Ok(peer);
            }
        }
        Err(format!(
            "UDP {address} sent no quote of the day in {PINGS} times {} ms",
            QUOTE_PATIENCE.as_millis()
        ))
    }

    /// Sends a datagram and, to a service, waits for the answer. Returns whether one came in time.
    fn exchange(&mut self) -> io::Result<bool> {
        let mut quote = [0; 1024];
        if self.is_owed {
            self.socket.set_nonblocking(true)?;
            while self.socket.recv(&mut quote).is_ok() {}
            self.socket.set_nonblocking(false)?;
            self.is_owed = false;
        }
        self.socket.send(&PAYLOAD)?;
        if !self.is_service {
            return Ok(false);
        }
        match self.socket.recv(&mut quote) {
            Ok(_) => Ok(true),
            Err(e) if matches!(e.kind(), WouldBlock | TimedOut | Interrupted) => {
                self.is_owed = true;
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }
}
