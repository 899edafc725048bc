//! Connections through the tunnel of a proxy, until they are there.

use super::{HttpClient, Policy, State};
use crate::exchange::Conversation;
use crate::link::{Link, Tunnel};
use crate::reactor::{Backend, EventTime, Payload};
use knee_load::measure::Outcome;
use knee_load::time::Nanos;
use std::collections::HashMap;

/// The tunnels that connections wait for.
pub(super) struct Tunnels {
    tunnel: Tunnel,
    /// What was received of the proxy's answers, by slot.
    answers: HashMap<u32, Vec<u8>>,
    /// How the proxy refused first.
    pub(super) refused_because: Option<String>,
}

impl Tunnels {
    pub(super) fn new(tunnel: Tunnel) -> Tunnels {
        Tunnels { tunnel, answers: HashMap::new(), refused_because: None }
    }
}

impl<L: Link, X: Conversation, P: Policy> HttpClient<L, X, P> {
    /// Asks the proxy at the other end of a new connection for a tunnel, if it has to make one.
    pub(super) fn asks_for_tunnel(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) -> bool {
        let Some(tunnels) = &mut self.tunnels else {
            return false;
        };
        self.connections[slot as usize].state = State::Tunnelling;
        tunnels.answers.insert(slot, Vec::new());
        if let Err(error) = io.send(slot, Payload::Owned(tunnels.tunnel.request())) {
            self.on_failure(io, slot, &error, now);
        }
        true
    }

    /// Reads the proxy's answer, if a tunnel is awaited. What follows it is the target's.
    #[cold]
    pub(super) fn on_tunnel_bytes(
        &mut self,
        io: &mut dyn Backend,
        slot: u32,
        bytes: &[u8],
        time: EventTime,
    ) {
        let is_awaited = self.connections[slot as usize].state == State::Tunnelling;
        let Some(tunnels) = self.tunnels.as_mut().filter(|_| is_awaited) else {
            return;
        };
        let answer = tunnels.answers.entry(slot).or_default();
        let before = answer.len();
        answer.extend_from_slice(bytes);
        match tunnels.tunnel.read(answer) {
            Ok(None) => {}
            Ok(Some(length)) => {
                tunnels.answers.remove(&slot);
                self.on_reached(io, slot, time.seen);
                let rest = &bytes[length.saturating_sub(before).min(bytes.len())..];
                if !rest.is_empty() {
                    self.on_bytes(io, slot, rest, time);
                }
            }
            Err(why) => self.on_tunnel_refused(io, slot, why, time.seen),
        }
    }

    /// The proxy closed the connection before it had answered.
    pub(super) fn on_tunnel_end(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        let why = self.tunnels.as_ref().map(|of| of.tunnel.failed(crate::link::PROXY_HUNG_UP));
        self.on_tunnel_refused(io, slot, why.unwrap_or_default(), now);
    }

    fn on_tunnel_refused(&mut self, io: &mut dyn Backend, slot: u32, why: String, now: Nanos) {
        if let Some(tunnels) = &mut self.tunnels {
            tunnels.answers.remove(&slot);
            tunnels.refused_because.get_or_insert(why);
        }
        self.fail(io, slot, Outcome::ProxyRefused, now);
    }
}
