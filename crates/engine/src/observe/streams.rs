//! Times of the bytes of followed connections, both ways. A thread follows a share of the
//! connections to a port of this host.

use super::data::{self, StreamSegment};
use super::watch::{self, BUFFER, capture_error};
use crate::kernel::timestamps::Timestamps;
use crate::sys::packet::{PacketBatch, PacketSocket};
use crate::threads::StoppableThread;
use knee_load::both_ends::{ObservedConnection, ObservedStreams, StreamTimesBuilder};
use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Segments whose times are kept, 16 bytes each.
const MARKS_MAX: usize = 400_000;

/// Connections followed.
const CONNECTIONS_MAX: usize = 50_000;

/// Connections that are followed, as their segments come by.
#[derive(Debug, Default)]
struct FollowedStreams {
    connections: Vec<FollowedConnection>,
    /// The latest connection of each client's address and port.
    latest: HashMap<(Ipv6Addr, u16), usize>,
    budget: MarkBudget,
}

/// Number of segments kept, and of those left out for want of room.
#[derive(Debug, Default)]
struct MarkBudget {
    marks: usize,
    left_out: u64,
}

impl MarkBudget {
    /// Adds a segment to a stream while there is room. `add` gets the sequence number of its first
    /// byte.
    fn note(
        &mut self,
        builder: &mut StreamTimesBuilder,
        segment: &StreamSegment,
        add: impl FnOnce(&mut StreamTimesBuilder, u32),
    ) {
        if self.marks >= MARKS_MAX {
            self.left_out += u64::from(segment.length > 0);
            return;
        }
        let before = builder.marks();
        add(builder, segment.sequence.wrapping_add(segment.is_syn.into()));
        self.marks += builder.marks() - before;
    }
}

#[derive(Debug)]
struct FollowedConnection {
    port: u16,
    /// The sequence number of the client's SYN.
    syn: u32,
    requests: StreamTimesBuilder,
    /// Whether bytes of the client came.
    has_carried: bool,
    /// From the server's SYN on, with its sequence number.
    responses: Option<(u32, StreamTimesBuilder)>,
}

impl FollowedStreams {
    /// Notes a segment that came from a client at `at_ns`. Connections whose SYN was not seen are
    /// ignored.
    pub(super) fn on_received(&mut self, segment: &StreamSegment, at_ns: u64) {
        let client = (segment.from, segment.from_port);
        if segment.is_syn {
            self.begin(client, segment.sequence);
        }
        let Some(&at) = self.latest.get(&client) else {
            return;
        };
        let followed = &mut self.connections[at];
        followed.has_carried |= segment.length > 0;
        self.budget.note(&mut followed.requests, segment, |builder, first| {
            builder.pass(first, segment.length, at_ns);
        });
    }

    /// Notes a segment that was sent to a client at `at_ns`.
    pub(super) fn on_sent(&mut self, segment: &StreamSegment, at_ns: u64) {
        let client = (segment.to, segment.to_port);
        let Some(&at) = self.latest.get(&client) else {
            return;
        };
        let followed = &mut self.connections[at];
        let is_begun = |&(syn, _): &(u32, StreamTimesBuilder)| syn == segment.sequence;
        if segment.is_syn && !followed.responses.as_ref().is_some_and(is_begun) {
            let responses = StreamTimesBuilder::new(segment.sequence);
            followed.responses = Some((segment.sequence, responses));
        }
        let Some((_, responses)) = &mut followed.responses else {
            return;
        };
        self.budget.note(responses, segment, |builder, first| {
            builder.send(first, segment.length, at_ns);
        });
    }

    /// Notes a new connection, unless the SYN is repeated: then its sequence number is the same.
    fn begin(&mut self, client: (Ipv6Addr, u16), syn: u32) {
        let latest = self.latest.get(&client);
        if latest.is_some_and(|&at| self.connections[at].syn == syn) {
            return;
        }
        if self.connections.len() >= CONNECTIONS_MAX {
            self.latest.remove(&client);
            self.budget.left_out += 1;
            return;
        }
        self.latest.insert(client, self.connections.len());
        self.connections.push(FollowedConnection {
            port: client.1,
            syn,
            requests: StreamTimesBuilder::new(syn),
            has_carried: false,
            responses: None,
        });
    }

    /// Returns what was seen. `lost`: segments that the capture lost.
    pub(super) fn finish(self, lost: u64) -> ObservedStreams {
        // The client counts only connections over which it sent something. One that timed out
        // before the server's SYN carried nothing.
        let carried = self.connections.into_iter().filter(|c| c.has_carried);
        let connections = carried.filter_map(|followed| {
            let (_, responses) = followed.responses?;
            Some(ObservedConnection {
                port: followed.port,
                requests: followed.requests.finish(),
                responses: responses.finish(),
            })
        });
        ObservedStreams {
            connections: connections.collect(),
            lost,
            left_out: self.budget.left_out,
            because: None,
        }
    }
}

/// Interval of reading packets: the thread is not woken by each. What comes in between fits into a
/// buffer of 400 KB at 100,000 packets a second.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Connections that are being followed, until it is finished or dropped.
#[derive(Debug)]
pub struct StreamCapture(Result<StoppableThread<ObservedStreams>, String>);

impl StreamCapture {
    /// Follows one of `one_of` new connections to `port`, chosen by the client's port. If that is
    /// not permitted, [`StreamCapture::finish`] returns the reason.
    pub fn begin(port: u16, one_of: u16) -> StreamCapture {
        let filter = data::filter(port, one_of);
        let begun = PacketSocket::open(&filter, BUFFER, true).and_then(|tap| {
            // A packet without a timestamp has the time of the read that finds it.
            let timestamps = Timestamps::keep_on_and_wait();
            StoppableThread::start("follow", None, move |stop| {
                let _timestamps = timestamps;
                follow(&tap, stop)
            })
        });
        StreamCapture(begun.map_err(|e| capture_error(&e)))
    }

    /// Ends it and returns what was seen.
    pub fn finish(self) -> ObservedStreams {
        match self.0 {
            Ok(thread) => thread.stop(),
            Err(because) => {
                ObservedStreams { because: Some(because), ..ObservedStreams::default() }
            }
        }
    }
}

fn follow(tap: &PacketSocket, stop: &AtomicBool) -> ObservedStreams {
    let (mut streams, mut batch) = (FollowedStreams::default(), PacketBatch::for_packets());
    loop {
        thread::park_timeout(LOOK_EVERY);
        let is_over = stop.load(Ordering::Relaxed);
        read_packets(tap, &mut batch, &mut streams);
        if is_over {
            // If the kernel does not report lost segments, most show as holes.
            return streams.finish(tap.take_lost().unwrap_or(0));
        }
    }
}

fn read_packets(tap: &PacketSocket, batch: &mut PacketBatch, streams: &mut FollowedStreams) {
    watch::read_packets(tap, batch, |packet, came_ns| {
        // A packet without a timestamp is left out; its bytes show as missing.
        let (Some(segment), Some(at_ns)) = (data::parse(packet.bytes), came_ns) else {
            return;
        };
        if packet.is_outgoing {
            streams.on_sent(&segment, at_ns);
        } else {
            streams.on_received(&segment, at_ns);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: u16 = 40_000;

    fn segment(is_syn: bool, sequence: u32, length: u32) -> StreamSegment {
        StreamSegment {
            from: Ipv6Addr::LOCALHOST,
            from_port: CLIENT,
            to: Ipv6Addr::LOCALHOST,
            to_port: 80,
            sequence,
            is_syn,
            length,
        }
    }

    /// The same from the server.
    fn back(is_syn: bool, sequence: u32, length: u32) -> StreamSegment {
        StreamSegment { from_port: 80, to_port: CLIENT, ..segment(is_syn, sequence, length) }
    }

    #[test]
    fn a_connection_is_followed_from_its_syns_on() {
        let mut streams = FollowedStreams::default();
        streams.on_received(&segment(false, 5, 10), 1);
        streams.on_sent(&back(false, 5, 10), 1);
        streams.on_received(&segment(true, 100, 0), 2);
        streams.on_received(&segment(true, 100, 0), 3);
        streams.on_sent(&back(true, 900, 0), 3);
        streams.on_sent(&back(true, 900, 0), 4);
        streams.on_received(&segment(false, 101, 50), 5);
        streams.on_sent(&back(false, 901, 200), 6);
        streams.on_sent(&back(false, 901, 300), 7);
        let seen = streams.finish(2);
        assert_eq!((seen.connections.len(), seen.lost, seen.left_out), (1, 2, 0));
        let connection = &seen.connections[0];
        assert_eq!(connection.port, CLIENT);
        assert_eq!(connection.requests.marks, [(50, 5)]);
        assert_eq!(connection.responses.marks, [(200, 6), (300, 7)]);
        assert_eq!(connection.responses.resent, 1);
    }

    #[test]
    fn a_port_that_is_used_again_is_another_connection() {
        let mut streams = FollowedStreams::default();
        for (syn, at) in [(100, 1), (5_000, 11)] {
            streams.on_received(&segment(true, syn, 3), at);
            streams.on_sent(&back(true, syn + 7, 0), at + 1);
            streams.on_sent(&back(false, syn + 8, 20), at + 2);
        }
        let seen = streams.finish(0);
        let marks: Vec<_> = seen.connections.iter().map(|c| &c.requests.marks[..]).collect();
        assert_eq!(marks, [[(3, 1)], [(3, 11)]], "bytes in the SYN count too");
        assert_eq!(seen.connections[1].responses.marks, [(20, 13)]);
    }

    #[test]
    fn a_connection_that_is_refused_is_none() {
        let mut streams = FollowedStreams::default();
        streams.on_received(&segment(true, 100, 0), 1);
        assert_eq!(streams.finish(0), ObservedStreams::default());
    }

    #[test]
    fn abandoned_connection_is_left_out_and_the_next_is_kept() {
        let mut streams = FollowedStreams::default();
        streams.on_received(&segment(true, 100, 0), 1);
        streams.on_sent(&back(true, 900, 0), 2);
        streams.on_received(&segment(true, 7_000, 0), 11);
        streams.on_sent(&back(true, 8_000, 0), 12);
        streams.on_received(&segment(false, 7_001, 5), 13);
        let observed = streams.finish(0);
        let marks = observed.connections.iter().map(|c| &c.requests.marks[..]);
        assert_eq!(marks.collect::<Vec<_>>(), [[(5, 13)]]);
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let mut streams = FollowedStreams {
            budget: MarkBudget { marks: MARKS_MAX - 1, ..MarkBudget::default() },
            ..FollowedStreams::default()
        };
        streams.on_received(&segment(true, 100, 0), 1);
        streams.on_sent(&back(true, 900, 0), 1);
        streams.on_received(&segment(false, 101, 10), 2);
        streams.on_received(&segment(false, 111, 10), 3);
        let seen = streams.finish(0);
        assert_eq!(seen.left_out, 1);
        assert_eq!(seen.connections[0].requests.passed(20), None);
    }
}
