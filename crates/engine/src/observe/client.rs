//! The client of an observer on another host, and the choice of where to observe from.

use super::control::{
    Came, Hello, LineReader, REPLY_MAX, Reply, Request, SERVICE, line, parse_reply,
};
use super::follow::Following;
use super::watch::{Armed, Watch};
use crate::control::ServiceClock;
use crate::error::RunError;
use crate::error::reason;
use crate::names::lookup_text;
use crate::sys::clock::monotonic_ns;
use knee_core::both_ends::Seen;
use knee_core::measure::{Observed, SynSource};
use knee_core::time::Nanos;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// How long an observer may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A `knee observe` that watches for us.
#[derive(Debug)]
pub struct RemoteWatch {
    at: String,
    stream: TcpStream,
    lines: LineReader,
    port: u16,
    source: SynSource,
    round_trip: Nanos,
    /// As read when it was armed.
    clock: ServiceClock,
}

impl RemoteWatch {
    /// Connects to the observer at `at` (`host:port`).
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: nobody answers there, or is no observer, or it refuses (busy, a
    /// wrong token).
    pub fn connect(at: &str, token: Option<&str>) -> Result<RemoteWatch, RunError> {
        let unreachable =
            |why: String| RunError::Unreachable(format!("the observer at {at}: {why}"));
        let stream = connect(at).map_err(unreachable)?;
        let set = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
        set.map_err(|e| unreachable(reason(&e)))?;
        let mut watch = RemoteWatch {
            at: at.to_owned(),
            stream,
            lines: LineReader::default(),
            port: 0,
            source: SynSource::Attempts,
            round_trip: Nanos::ZERO,
            clock: ServiceClock::default(),
        };
        let hello = Request::Hello(Hello::new(SERVICE, token.unwrap_or_default()));
        let asked = monotonic_ns();
        let Reply::Ready { port, source } = watch.ask(&hello)? else {
            return Err(watch.confused());
        };
        watch.round_trip = Nanos(monotonic_ns() - asked);
        (watch.port, watch.source) = (port, source);
        Ok(watch)
    }

    /// The port that it watches.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What counts the SYNs there.
    pub fn source(&self) -> SynSource {
        self.source
    }

    /// What it takes to ask it something.
    pub fn round_trip(&self) -> Nanos {
        self.round_trip
    }

    /// Lets the observer keep what comes from now on, and learns how its clock differs from this
    /// host's: from the quickest of several answers.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: it is gone.
    pub fn arm(&mut self) -> Result<(), RunError> {
        let (clock, round_ns) =
            ServiceClock::quickest(CLOCK_READINGS, || match self.ask(&Request::Arm)? {
                Reply::Armed { clock_ns } => Ok(clock_ns),
                _ => Err(self.confused()),
            })?;
        (self.clock, self.round_trip) = (clock, Nanos(round_ns));
        Ok(())
    }

    /// Watches a window that begins at `origin_ns` of this host's CLOCK_MONOTONIC; to be called
    /// once it is armed. The window begins there up to a [`RemoteWatch::round_trip`] early, as the
    /// way there and the way back may differ, and never late.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: it is gone.
    pub fn begin(
        &mut self,
        origin_ns: u64,
        interval: Nanos,
        duration: Nanos,
    ) -> Result<(), RunError> {
        let at_ns = origin_ns.wrapping_add(self.clock.ahead_ns);
        let begin = Request::Begin {
            at_ns: at_ns.wrapping_sub(self.round_trip.0.div_ceil(2)),
            interval_ns: interval.0,
            duration_ns: duration.0,
        };
        match self.ask(&begin)? {
            Reply::Begun => Ok(()),
            _ => Err(self.confused()),
        }
    }

    /// Ends the watch and says what was seen there.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: it is gone.
    pub fn finish(&mut self) -> Result<Observed, RunError> {
        match self.ask(&Request::Finish)? {
            Reply::Observed(observed) => Ok(*observed),
            _ => Err(self.confused()),
        }
    }

    /// Follows one of `one_of` connections from now on.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: it is gone.
    pub fn follow(&mut self, one_of: u16) -> Result<(), RunError> {
        match self.ask(&Request::Follow { one_of })? {
            Reply::Following => Ok(()),
            _ => Err(self.confused()),
        }
    }

    /// Ends following and says what was seen there.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: it is gone.
    pub fn seen(&mut self) -> Result<Seen, RunError> {
        match self.ask(&Request::Seen)? {
            Reply::Seen(seen) => Ok(*seen),
            _ => Err(self.confused()),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, RunError> {
        let gone = |why: &str| {
            let at = &self.at;
            RunError::Unreachable(format!("the observer at {at} does not answer: {why}"))
        };
        let asked = Instant::now();
        let written = self.stream.write_all(&line(request));
        // One that refuses may close before it has read; why is then still to be read.
        loop {
            match self.lines.next(&mut self.stream, REPLY_MAX) {
                Ok(Came::Line(line)) => {
                    return match parse_reply(&line) {
                        Ok(Reply::Refused(why)) => Err(RunError::Unreachable(format!(
                            "the observer at {} refuses: {why}",
                            self.at
                        ))),
                        Ok(reply) => Ok(reply),
                        Err(why) => Err(gone(&why)),
                    };
                }
                Ok(Came::Part) if asked.elapsed() < 2 * PATIENCE => {}
                Ok(Came::Part) => return Err(gone("its answer has no end")),
                Ok(Came::End) => return Err(gone("it closed the connection")),
                Err(e) => return Err(gone(&reason(&written.err().unwrap_or(e)))),
            }
        }
    }

    fn confused(&self) -> RunError {
        let at = &self.at;
        RunError::Unreachable(format!("the observer at {at} answers something else"))
    }
}

fn connect(at: &str) -> Result<TcpStream, String> {
    let addresses = lookup_text(at).map_err(|unknown| {
        let why = unknown.reason();
        format!("its name cannot be resolved: {why}")
    })?;
    let mut why = "it has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(e) => why = reason(&e),
        }
    }
    Err(why)
}

/// Where the SYNs of trials are watched from, one window after another.
#[derive(Debug)]
pub enum Vantage {
    /// This host is the target's.
    Here {
        /// The target's port.
        port: u16,
        /// What keeps all that comes, until its window is told.
        armed: Option<Armed>,
        /// The window being watched.
        watch: Option<Watch>,
        /// The connections being followed.
        following: Option<Following>,
    },
    /// An observer on the target's host.
    There {
        /// The observer.
        watch: Box<RemoteWatch>,
        /// Why it could not be armed or told to begin.
        failed: Option<String>,
    },
}

/// The best place to observe `target` from: the observer that was named, this host where the
/// target's address is its own, or none, where only the generator's attempts can be counted.
///
/// # Errors
/// [`RunError::Unreachable`]: the observer does not answer, refuses, or watches another port.
pub fn watch_for(
    target: SocketAddr,
    observer: Option<&str>,
    token: Option<&str>,
) -> Result<Option<Vantage>, RunError> {
    let Some(at) = observer else {
        let port = target.port();
        let here = Vantage::Here {
            port,
            armed: None,
            watch: None,
            following: None,
        };
        return Ok(is_own(target.ip()).then_some(here));
    };
    let watch = RemoteWatch::connect(at, token)?;
    if watch.port() != target.port() {
        let (watched, wanted) = (watch.port(), target.port());
        return Err(RunError::Unreachable(format!(
            "the observer at {at} watches port {watched}, but the target's is {wanted}: start it \
             with --port {wanted}"
        )));
    }
    let (watch, failed) = (Box::new(watch), None);
    Ok(Some(Vantage::There { watch, failed }))
}

/// Whether an address is one of this host: whether something can be bound to it.
fn is_own(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback() || (!ip.is_unspecified() && UdpSocket::bind((ip, 0)).is_ok())
}

impl Vantage {
    /// How long before a window begins it should be told, so that what stands then can be read
    /// then.
    pub fn lead(&self) -> Nanos {
        match self {
            Vantage::Here { .. } => Nanos::from_millis(5),
            Vantage::There { watch, .. } => watch.round_trip() + watch.round_trip() + LEAD_THERE,
        }
    }

    /// Keeps what comes from now on: what comes in a window that begins later is not missed,
    /// however late [`Vantage::begin`] tells of it.
    pub fn arm(&mut self) {
        match self {
            Vantage::Here {
                port, armed, watch, ..
            } => {
                *watch = None;
                *armed = Some(Armed::new(*port));
            }
            Vantage::There { watch, failed } => {
                *failed = watch.arm().err().map(|e| e.to_string());
            }
        }
    }

    /// Watches a window, once armed; see [`Armed::begin`]. What goes wrong is told by
    /// [`Vantage::finish`].
    pub fn begin(&mut self, origin_ns: u64, interval: Nanos, duration: Nanos) {
        match self {
            Vantage::Here { armed, watch, .. } => {
                *watch = armed
                    .take()
                    .map(|armed| armed.begin(origin_ns, interval, duration));
            }
            Vantage::There { watch, failed } => {
                if failed.is_none() {
                    let begun = watch.begin(origin_ns, interval, duration);
                    *failed = begun.err().map(|e| e.to_string());
                }
            }
        }
    }

    /// Ends the watch and says what was seen: nothing, and why, where the observer is gone.
    pub fn finish(&mut self) -> Observed {
        let nothing = |because: String| Observed {
            because: Some(because),
            ..Observed::default()
        };
        match self {
            Vantage::Here { watch, .. } => match watch.take() {
                Some(watch) => watch.finish(),
                None => nothing("nothing was watched".to_owned()),
            },
            Vantage::There { watch, failed } => match failed.take() {
                Some(because) => nothing(because),
                None => watch.finish().unwrap_or_else(|e| nothing(e.to_string())),
            },
        }
    }
}

/// Connections that are followed.
impl Vantage {
    /// Follows one of `one_of` connections that begin from now on. What goes wrong is told by
    /// [`Vantage::seen`].
    pub fn follow(&mut self, one_of: u16) {
        match self {
            Vantage::Here {
                port, following, ..
            } => {
                *following = None;
                *following = Some(Following::begin(*port, one_of));
            }
            Vantage::There { watch, failed } => {
                if failed.is_none() {
                    *failed = watch.follow(one_of).err().map(|e| e.to_string());
                }
            }
        }
    }

    /// Ends following, and says what was seen: nothing, and why, where the observer is gone. To be
    /// asked before [`Vantage::finish`], which tells the same reason.
    pub fn seen(&mut self) -> Seen {
        let nothing = |because: String| Seen {
            because: Some(because),
            ..Seen::default()
        };
        match self {
            Vantage::Here { following, .. } => match following.take() {
                Some(following) => following.finish(),
                None => nothing("nothing was followed".to_owned()),
            },
            Vantage::There { watch, failed } => match failed {
                Some(because) => nothing(because.clone()),
                None => watch.seen().unwrap_or_else(|e| nothing(e.to_string())),
            },
        }
    }
}

/// An answer that was not kept waiting is among so many.
const CLOCK_READINGS: u32 = 5;

const LEAD_THERE: Nanos = Nanos::from_millis(20);
