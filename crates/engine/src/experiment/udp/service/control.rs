//! The control thread: clients and sessions. Datagrams are another thread's.

use super::data_thread::{DataCommand, DataReply};
use crate::control::{IDLE_NS, Service, ServiceClients};
use crate::experiment::udp::wire::{Hello, UdpReply, UdpRequest, UdpSessionSpec};
use crate::sys::clock;
use crate::sys::eventfd::EventFd;
use knee_load::experiment::udp::ServiceFacts;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

/// Interval of the signs of life to the client of a running session.
const ALIVE_NS: u64 = 1_000_000_000;

/// State of the session of the client that holds the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionStage {
    /// No session.
    Idle,
    /// Between begin and ready.
    Preparing,
    Ready,
    /// Between start and end.
    Running,
    /// Between end and record.
    Draining,
}

/// The state of the control thread.
pub(super) struct UdpService {
    clients: ServiceClients<ServiceFacts>,
    commands: mpsc::Sender<DataCommand>,
    replies: mpsc::Receiver<(u64, DataReply)>,
    /// Wakes the thread of datagrams.
    data: Arc<EventFd>,
    /// Makes that thread leave its work.
    hurry: Arc<AtomicBool>,
    stage: SessionStage,
    /// Number of the session begun last.
    serial: u64,
    alive_ns: u64,
}

impl Service for UdpService {
    type Request = UdpRequest;
    type Facts = ServiceFacts;

    fn clients(&mut self) -> &mut ServiceClients<ServiceFacts> {
        &mut self.clients
    }

    fn hello(request: UdpRequest) -> Result<Hello, UdpRequest> {
        match request {
            UdpRequest::Hello(hello) => Ok(hello),
            other => Err(other),
        }
    }

    fn answer(&mut self, id: u64, request: UdpRequest) -> Result<(), String> {
        match (request, self.stage) {
            (UdpRequest::Ping { n }, _) => {
                let at_ns = clock::monotonic_ns();
                self.clients.send_to_holder(&UdpReply::Pong { n, at_ns });
            }
            (UdpRequest::Begin(begin), SessionStage::Idle) => self.begin(id, begin)?,
            (UdpRequest::Start { origin_ns }, SessionStage::Ready) => {
                self.stage = SessionStage::Running;
                self.command(DataCommand::Start(origin_ns));
            }
            (UdpRequest::End { sent }, SessionStage::Running) => {
                self.stage = SessionStage::Draining;
                self.command(DataCommand::End(sent));
            }
            _ => return Err("this is not the time for that".to_owned()),
        }
        Ok(())
    }

    fn holder_patience_ns(&self) -> u64 {
        match self.stage {
            SessionStage::Idle => IDLE_NS,
            _ => u64::MAX,
        }
    }

    fn abandon(&mut self) {
        if self.stage != SessionStage::Idle {
            self.stage = SessionStage::Idle;
            self.hurry.store(true, Ordering::Relaxed);
            self.command(DataCommand::Abandon);
        }
    }

    fn advance(&mut self) {
        self.pass_on_replies();
        let now_ns = clock::monotonic_ns();
        if self.stage != SessionStage::Idle && now_ns.saturating_sub(self.alive_ns) > ALIVE_NS {
            self.alive_ns = now_ns;
            self.clients.send_to_holder(&UdpReply::Alive);
        }
    }
}

impl UdpService {
    pub(super) fn new(
        clients: ServiceClients<ServiceFacts>,
        commands: mpsc::Sender<DataCommand>,
        replies: mpsc::Receiver<(u64, DataReply)>,
        data: Arc<EventFd>,
        hurry: Arc<AtomicBool>,
    ) -> UdpService {
        UdpService {
            clients,
            commands,
            replies,
            data,
            hurry,
            stage: SessionStage::Idle,
            serial: 0,
            alive_ns: 0,
        }
    }

    /// Serves until it is stopped.
    pub(super) fn run(mut self, stop: &AtomicBool) {
        self.serve(stop);
    }

    fn command(&self, command: DataCommand) {
        // The thread of datagrams is gone only where the service ends.
        let _ = self.commands.send(command);
        self.data.notify();
    }

    fn begin(&mut self, id: u64, begin: UdpSessionSpec) -> Result<(), String> {
        begin.check()?;
        if let Some(connection) = self.clients.get(id) {
            let peer = connection.peer;
            self.stage = SessionStage::Preparing;
            self.serial += 1;
            self.command(DataCommand::Begin(self.serial, begin.into(), peer));
        }
        Ok(())
    }

    /// Passes on replies of the thread of datagrams. Those for a client that is gone are dropped.
    fn pass_on_replies(&mut self) {
        while let Ok((serial, reply)) = self.replies.try_recv() {
            if serial != self.serial {
                continue;
            }
            let (stage, say) = match (reply, self.stage) {
                (DataReply::Ready(facts), SessionStage::Preparing) => {
                    (SessionStage::Ready, UdpReply::Ready { facts })
                }
                (DataReply::Refused(reason), SessionStage::Preparing) => {
                    (SessionStage::Idle, UdpReply::Refused { reason })
                }
                (DataReply::Started, SessionStage::Running) => {
                    (SessionStage::Running, UdpReply::Started)
                }
                (DataReply::Record(record), SessionStage::Draining) => {
                    (SessionStage::Idle, UdpReply::Record(record))
                }
                _ => continue,
            };
            self.stage = stage;
            self.clients.send_to_holder(&say);
        }
    }
}
