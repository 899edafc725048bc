//! The loop of a service that one client has at a time: accept, hello, requests, limits, end.

use super::greeting::Hello;
use super::service_clients::ServiceClients;
use crate::sys::clock;
use knee_load::time::Nanos;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest time between two passes. Bounds how late a deadline is noticed.
const TICK: Nanos = Nanos::from_millis(250);

/// A service over control connections. One client holds it at a time; others
/// are refused as it is busy.
pub(crate) trait Service {
    /// What clients send.
    type Request: DeserializeOwned;
    /// Properties of the service, sent with the welcome.
    type Facts: Serialize;

    /// Refusal of a line that is no request.
    const NO_REQUEST: &'static str = "this is no line of a knee client";
    /// Refusal of a request before hello.
    const NO_HELLO: &'static str = "hello has to come first";

    fn clients(&mut self) -> &mut ServiceClients<Self::Facts>;

    /// The hello, or else the request itself.
    fn hello(request: Self::Request) -> Result<Hello, Self::Request>;

    /// Answers a request of the client that holds the service.
    ///
    /// # Errors
    /// Why it is refused, in one line. The connection ends.
    fn answer(&mut self, id: u64, request: Self::Request) -> Result<(), String>;

    /// Longest silence of the client that holds the service.
    fn holder_patience_ns(&self) -> u64;

    /// Ends what runs for a client whose connection is gone.
    fn abandon(&mut self);

    /// Answers a client that says hello.
    fn greet(&mut self, id: u64, hello: &Hello, _now_ns: u64) {
        self.clients().greet(id, hello);
    }

    /// Answers a request before hello. Errors as in [`Service::answer`].
    fn admit(&mut self, _id: u64, _request: Self::Request) -> Result<(), String> {
        Err(Self::NO_HELLO.to_owned())
    }

    /// Connections that are expected beside those of clients.
    fn expected(&self) -> usize {
        0
    }

    /// Time until the service has to act without an event.
    fn patience(&self) -> Nanos {
        Nanos::MAX
    }

    /// Runs first after each wait, before any line is read.
    fn on_wake(&mut self) {}

    /// Runs in each pass, once all requests are answered.
    fn advance(&mut self) {}

    /// Notes connections that were closed to make room for others.
    fn on_dismissed(&mut self, _count: u64) {}

    /// Notes a refused request. `holds`: of the client that held the service.
    fn on_refused(&mut self, _holds: bool) {}

    /// Serves until `stop` is set.
    fn serve(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let patience = self.patience().min(TICK);
            self.clients().wait(patience);
            self.on_wake();
            let now_ns = clock::monotonic_ns();
            // A client that leaves is handled before one that comes, which would find it busy.
            self.receive(now_ns);
            let expected = self.expected();
            let dismissed = self.clients().accept(expected, now_ns);
            self.on_dismissed(dismissed);
            self.receive(now_ns);
            self.advance();
            self.clients().flush(now_ns);
            self.close_ended(now_ns);
        }
    }

    fn receive(&mut self, now_ns: u64) {
        self.clients().read();
        self.close_ended(now_ns);
        while let Some((id, request)) = self.clients().next_request() {
            let holds = self.clients().holds(id);
            if let Err(reason) = self.dispatch(id, request, holds, now_ns) {
                if let Some(connection) = self.clients().get(id) {
                    connection.refuse(&reason);
                }
                self.on_refused(holds);
            }
        }
        self.close_ended(now_ns);
    }

    /// `request` is `None` where the line was none.
    fn dispatch(
        &mut self,
        id: u64,
        request: Option<Self::Request>,
        holds: bool,
        now_ns: u64,
    ) -> Result<(), String> {
        let request = request.ok_or(Self::NO_REQUEST)?;
        if let Some(connection) = self.clients().get(id) {
            connection.touch(now_ns);
        }
        match Self::hello(request) {
            Ok(_) if holds => Err("hello was said already".to_owned()),
            Ok(hello) => {
                self.greet(id, &hello, now_ns);
                Ok(())
            }
            Err(request) if holds => self.answer(id, request),
            Err(request) => self.admit(id, request),
        }
    }

    /// Closes connections that are over. The session of the holder ends with its connection.
    fn close_ended(&mut self, now_ns: u64) {
        let patience_ns = self.holder_patience_ns();
        if self.clients().close_ended(now_ns, patience_ns) {
            self.abandon();
        }
    }
}
