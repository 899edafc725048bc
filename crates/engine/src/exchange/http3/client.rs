//! The client's side of a connection.

mod response;
#[cfg(test)]
mod tests;

use super::frame::{FrameReader, FrameStream};
use super::quic::{HandshakeFault, Quic, QuicShared, STREAM_WINDOW};
use super::requests::Http3Requests;
use super::{CriticalStreams, Http3Code, Http3Violation, Role, qpack::SectionDecoder};
use crate::exchange::http2::fields::ResponseSection;
use crate::exchange::{
    AfterCancel, CallContext, Capacity, ConnectionState, Conversation, FlightId, OpEvent, Received,
    RequestRef, SocketKind, StreamEnd, TargetConversation, WorkerSetup,
};
use crate::reactor::WireRequest;
use knee_load::measure::{Handshakes, Outcome, PacketsMeasured};
use knee_load::spec::{HttpSettings, Target};
use knee_load::time::Nanos;
use quinn_proto::{
    ConnectionError, Dir, Event, ReadError, StreamEvent, StreamId, TransportErrorCode, VarInt,
    WriteError,
};
use response::ResponseProgress;
use rustls::AlertDescription;
use std::collections::HashMap;

/// Most bytes of a peer's reason that are read.
const REASON_BYTES_MAX: usize = 200;

/// Codes of QUIC for alerts of TLS (RFC 9001 §4.8).
const CRYPTO_ERROR: u64 = 0x100;

/// State shared by all HTTP/3 connections of one thread.
#[derive(Debug)]
pub struct Http3Shared {
    requests: Http3Requests,
    /// Most requests under way on a connection, by configuration.
    streams_max: u32,
    quic: QuicShared,
    /// Packets of closed connections, and responses during which some were lost.
    packets: PacketsMeasured,
    /// Scratch space for the frames before the content of a request.
    head: Vec<u8>,
}

/// One HTTP/3 connection, from the client's side.
#[derive(Debug)]
pub struct Http3 {
    /// `None` where no handshake could begin.
    quic: Option<Box<Quic>>,
    state: ConnectionState,
    is_secured: bool,
    streams: HashMap<StreamId, RequestStream>,
    /// The stream of the next request, once the server permits one.
    next: Option<StreamId>,
    streams_max: u32,
    critical: CriticalStreams,
    sections: SectionDecoder<ResponseSection>,
    early: Early,
    /// Its packets are among those of closed connections.
    is_counted: bool,
}

/// A request that leaves before the end of the handshake (0-RTT, RFC 9001 §4.6).
#[derive(Debug)]
enum Early {
    /// None may.
    No,
    /// An earlier session permits one.
    Permitted,
    /// It has left. Kept to be sent again.
    Left(Box<Upload>),
    /// The server took it.
    Taken,
    /// The server did not: it was sent again.
    Refused,
}

/// One stream, from its request to the end of its response.
#[derive(Debug)]
struct RequestStream {
    op: FlightId,
    began: Nanos,
    /// Packets of the connection that were lost before.
    lost_before: u64,
    reader: FrameReader,
    response: ResponseProgress,
    /// What is not written yet; `None`: the whole request is.
    upload: Option<Box<Upload>>,
}

/// The rest of a request.
#[derive(Debug)]
struct Upload {
    request: usize,
    /// Frames before the content.
    head: Vec<u8>,
    /// A body with filled holes.
    filled: Option<Vec<u8>>,
    /// Bytes of head and body that are written.
    written: usize,
}

impl Http3Shared {
    /// Encodes the requests of a target, whose connections are secured as `worker` says.
    fn new(worker: &WorkerSetup<'_>) -> Http3Shared {
        let limits = worker.target.protocol.http().http2;
        let tls = worker.tls.as_ref().map(|tls| (&tls.config, &tls.name));
        Http3Shared {
            requests: Http3Requests::new(worker.target),
            streams_max: limits.streams().min(worker.streams_max).max(1),
            quic: QuicShared::new(tls, limits.window_bytes.unwrap_or(STREAM_WINDOW)),
            packets: PacketsMeasured::default(),
            head: Vec::new(),
        }
    }
}

impl TargetConversation for Http3 {
    type Settings = HttpSettings;

    fn shared(_: &HttpSettings, worker: &WorkerSetup<'_>) -> Http3Shared {
        Http3Shared::new(worker)
    }

    fn wire_requests(_: &HttpSettings, target: &Target) -> Vec<WireRequest> {
        Http3Requests::new(target).wire()
    }

    /// The handshake is confirmed (RFC 9001 §4.1.2): the server has taken the client's certificate
    /// too. It need not have sent SETTINGS yet (RFC 9114 §7.2.4.2).
    fn is_open(&self) -> bool {
        self.quic.as_ref().is_some_and(|quic| quic.is_confirmed())
    }
}

impl Conversation for Http3 {
    type Shared = Http3Shared;

    const LEAVES_AT_ONCE: bool = false;

    const HAS_HANDSHAKE: bool = true;

    #[inline]
    fn socket(_: &Http3Shared) -> SocketKind {
        SocketKind::CoalescedDatagrams
    }

    fn established(cx: &mut CallContext<'_, Http3Shared>) -> Http3 {
        let quic = match Quic::connect(&cx.shared.quic, cx.now) {
            Ok(quic) => Some(Box::new(quic)),
            Err(fault) => {
                cx.events.push(OpEvent::NotSecured(fault));
                None
            }
        };
        let mut http3 = Http3 {
            quic,
            state: ConnectionState::Open,
            is_secured: false,
            streams: HashMap::new(),
            next: None,
            streams_max: cx.shared.streams_max,
            critical: CriticalStreams::new(Role::Server),
            sections: SectionDecoder::default(),
            early: Early::No,
            is_counted: false,
        };
        if http3.quic.as_mut().is_some_and(|quic| quic.connection().has_0rtt()) {
            http3.open_streams();
            http3.early = Early::Permitted;
        }
        http3
    }

    #[inline]
    fn capacity(&self, _: &Http3Shared) -> Capacity {
        let has_room = (self.streams.len() as u32) < self.streams_max;
        let is_open = self.is_secured && self.state == ConnectionState::Open;
        Capacity {
            operations: u32::from(is_open && has_room && self.next.is_some()),
            is_targets_limit: has_room && self.next.is_none(),
        }
    }

    fn start(
        &mut self,
        op: FlightId,
        request: RequestRef<'_>,
        cx: &mut CallContext<'_, Http3Shared>,
    ) {
        let (Some(quic), Some(id)) = (&mut self.quic, self.next.take()) else {
            return cx.events.push(OpEvent::Failed { op, outcome: Outcome::OtherError });
        };
        let shared = &mut *cx.shared;
        let filled = shared.requests.filled_body(request);
        let body = filled.as_deref().unwrap_or_else(|| shared.requests.body(request.number));
        shared.head.clear();
        shared.requests.put_head(request, body.len(), &mut shared.head);
        let mut sender = quic.connection().send_stream(id);
        let mut written = sender.write(&shared.head).unwrap_or(0);
        let is_head_written = written == shared.head.len();
        if is_head_written && !body.is_empty() {
            written += sender.write(body).unwrap_or(0);
        }
        let is_whole = written == shared.head.len() + body.len();
        if is_whole {
            let _ = sender.finish();
            cx.events.push(OpEvent::Written(op));
        }
        let rest = |written| {
            let head = shared.head.clone();
            Box::new(Upload { request: request.number, head, filled: filled.clone(), written })
        };
        if !self.is_secured {
            self.early = Early::Left(rest(0));
        }
        let upload = (!is_whole).then(|| rest(written));
        let stream = RequestStream {
            op,
            began: cx.now,
            lost_before: quic.lost(),
            reader: FrameReader::new(FrameStream::Response),
            response: ResponseProgress::new(shared.requests.is_head(request)),
            upload,
        };
        self.streams.insert(id, stream);
        self.next = quic.connection().streams().open(Dir::Bi);
        // Writes what fits, and learns when there is room for more.
        self.continue_upload(id, cx);
    }

    fn receive(&mut self, input: Received<'_>, cx: &mut CallContext<'_, Http3Shared>) {
        if self.state == ConnectionState::Broken {
            return;
        }
        if let Some(quic) = &mut self.quic {
            quic.receive(input.bytes, input.at, &mut cx.shared.quic);
        }
        self.handle_events(cx);
    }

    fn sent(&mut self, cx: &mut CallContext<'_, Http3Shared>) {
        self.flush(cx);
    }

    fn ended(&mut self, _: StreamEnd, _: &mut CallContext<'_, Http3Shared>) {}

    fn cancel(&mut self, op: FlightId, cx: &mut CallContext<'_, Http3Shared>) -> AfterCancel {
        let found = self.streams.iter().find(|(_, stream)| stream.op == op);
        let Some((&id, stream)) = found else {
            return AfterCancel::GoesOn;
        };
        // A peer that is there acknowledges a request at least.
        let received = self.quic.as_ref().map_or(Nanos::ZERO, |quic| quic.received());
        let is_silent = received < stream.began;
        self.give_up(id, Http3Code::REQUEST_CANCELLED);
        if is_silent {
            self.close(cx);
            self.state = ConnectionState::Broken;
        }
        match self.state {
            ConnectionState::Broken => AfterCancel::Broken,
            ConnectionState::Open | ConnectionState::Closing => AfterCancel::GoesOn,
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Nanos {
        self.quic.as_ref().map_or(Nanos::MAX, |quic| quic.wake())
    }

    fn handle_timeout(&mut self, cx: &mut CallContext<'_, Http3Shared>) {
        if let Some(quic) = &mut self.quic {
            quic.handle_timeout(cx.now, &cx.shared.quic);
        }
        self.handle_events(cx);
    }

    fn close(&mut self, cx: &mut CallContext<'_, Http3Shared>) {
        let Some(quic) = &mut self.quic else { return };
        if self.state != ConnectionState::Broken {
            quic.close(cx.now, &cx.shared.quic, Http3Code::NO_ERROR.0, "");
            self.state = ConnectionState::Broken;
        }
        if !self.is_counted {
            quic.count_packets(&mut cx.shared.packets);
            self.is_counted = true;
        }
    }

    #[inline]
    fn state(&self) -> ConnectionState {
        match self.state {
            // Nothing more comes over it, and no FIN would end it.
            ConnectionState::Closing if self.streams.is_empty() => ConnectionState::Broken,
            state => state,
        }
    }

    #[inline]
    fn has_output(&self) -> bool {
        self.quic.as_ref().is_some_and(|quic| quic.has_output())
    }

    #[inline]
    fn flush(&mut self, cx: &mut CallContext<'_, Http3Shared>) -> bool {
        match &mut self.quic {
            Some(quic) if quic.has_output() => {
                quic.put_out(cx.now, &mut cx.shared.quic, cx.out.bytes());
                true
            }
            _ => false,
        }
    }

    fn is_secured(&self) -> bool {
        self.is_secured
    }

    fn takes_early(&self) -> bool {
        matches!(self.early, Early::Permitted)
    }

    fn is_early_taken(&self) -> bool {
        matches!(self.early, Early::Taken)
    }

    fn note(&self, of: &mut Handshakes) {
        let Some(result) = self.quic.as_ref().and_then(|quic| quic.handshake()) else {
            return;
        };
        if result.is_resumed {
            of.resumed += 1;
        } else {
            of.full += 1;
        }
        match self.early {
            Early::Taken => of.early_data.taken += 1,
            Early::Refused => of.early_data.refused += 1,
            Early::No | Early::Permitted | Early::Left(_) => {}
        }
        of.generator += Nanos(u64::try_from(result.spent.as_nanos()).unwrap_or(u64::MAX));
        if of.agreed.is_none() {
            of.agreed = result.agreed;
        }
    }

    fn take_packets(shared: &mut Http3Shared) -> Option<PacketsMeasured> {
        Some(std::mem::take(&mut shared.packets))
    }
}

impl Http3 {
    /// Handles what the connection of QUIC reports.
    fn handle_events(&mut self, cx: &mut CallContext<'_, Http3Shared>) {
        while let Some(event) = self.quic.as_mut().and_then(|quic| quic.poll()) {
            match event {
                Event::Connected => self.on_connected(cx),
                Event::ConnectionLost { reason } => self.on_lost(reason, cx),
                Event::Stream(event) => {
                    if let Err(violation) = self.on_stream(event, cx) {
                        return self.break_off(violation, cx);
                    }
                }
                _ => {}
            }
        }
    }

    /// Opens the streams of the connection, and one for the next request.
    fn open_streams(&mut self) {
        if let Some(quic) = &mut self.quic {
            CriticalStreams::open(quic.connection());
            self.next = quic.connection().streams().open(Dir::Bi);
        }
    }

    fn on_connected(&mut self, cx: &mut CallContext<'_, Http3Shared>) {
        self.is_secured = true;
        let has_early = !matches!(self.early, Early::No);
        let is_taken = self.quic.as_mut().is_some_and(|quic| quic.connection().accepted_0rtt());
        if !has_early || !is_taken {
            // Those that were opened early are gone.
            self.open_streams();
        }
        match std::mem::replace(&mut self.early, Early::No) {
            Early::Left(_) if is_taken => self.early = Early::Taken,
            Early::Left(request) => {
                self.early = Early::Refused;
                self.send_again(request, cx);
            }
            _ => {}
        }
    }

    /// Sends the request that left early on a stream of its own.
    fn send_again(&mut self, request: Box<Upload>, cx: &mut CallContext<'_, Http3Shared>) {
        let before = self.streams.drain().next();
        if let (Some((_, stream)), Some(id)) = (before, self.next.take()) {
            self.streams.insert(id, RequestStream { upload: Some(request), ..stream });
            if let Some(quic) = &mut self.quic {
                self.next = quic.connection().streams().open(Dir::Bi);
            }
            self.continue_upload(id, cx);
        }
    }

    fn on_stream(
        &mut self,
        event: StreamEvent,
        cx: &mut CallContext<'_, Http3Shared>,
    ) -> Result<(), Http3Violation> {
        match event {
            StreamEvent::Readable { id } if id.dir() == Dir::Bi => self.read_response(id, cx),
            StreamEvent::Readable { id } => self.read_critical(id, cx),
            StreamEvent::Opened { dir: Dir::Uni } => {
                while let Some(id) =
                    self.quic.as_mut().and_then(|quic| quic.connection().streams().accept(Dir::Uni))
                {
                    self.read_critical(id, cx)?;
                }
                Ok(())
            }
            StreamEvent::Writable { id } => {
                self.continue_upload(id, cx);
                Ok(())
            }
            StreamEvent::Stopped { id, .. } => {
                // The response says why, or a reset of the stream does (RFC 9114 §4.1).
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.upload = None;
                }
                if let Some(quic) = &mut self.quic {
                    let code = VarInt::from_u64(Http3Code::REQUEST_CANCELLED.0).unwrap_or_default();
                    let _ = quic.connection().send_stream(id).reset(code);
                }
                Ok(())
            }
            StreamEvent::Available { dir: Dir::Bi } => {
                if let Some(quic) = self.quic.as_mut().filter(|_| self.next.is_none()) {
                    self.next = quic.connection().streams().open(Dir::Bi);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reads a stream that the server opened for the connection.
    fn read_critical(
        &mut self,
        id: StreamId,
        cx: &mut CallContext<'_, Http3Shared>,
    ) -> Result<(), Http3Violation> {
        let before = self.critical.goaway();
        if let Some(quic) = &mut self.quic {
            self.critical.read(id, quic.connection())?;
        }
        if let Some(first) = self.critical.goaway().filter(|_| self.critical.goaway() != before) {
            self.state = ConnectionState::Closing;
            let unprocessed =
                self.streams.keys().filter(|id| u64::from(VarInt::from(**id)) >= first);
            for id in unprocessed.copied().collect::<Vec<_>>() {
                if let Some(op) = self.give_up(id, Http3Code::REQUEST_CANCELLED) {
                    cx.events.push(OpEvent::Unprocessed(op));
                }
            }
        }
        Ok(())
    }

    /// Reads what has come of a response.
    fn read_response(
        &mut self,
        id: StreamId,
        cx: &mut CallContext<'_, Http3Shared>,
    ) -> Result<(), Http3Violation> {
        let Http3 { quic: Some(quic), streams, sections, .. } = self else {
            return Ok(());
        };
        let Some(stream) = streams.get_mut(&id) else {
            return Ok(());
        };
        let mut receiver = quic.connection().recv_stream(id);
        let Ok(mut chunks) = receiver.read(true) else {
            return Ok(());
        };
        let read = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    if let Err(violation) = stream.take(&chunk.bytes, sections, cx.events) {
                        break Err(violation);
                    }
                }
                Ok(None) => break Ok(Some(None)),
                Err(ReadError::Blocked) => break Ok(None),
                Err(ReadError::Reset(code)) => break Ok(Some(Some(Http3Code(code.into_inner())))),
            }
        };
        drop(chunks);
        match read {
            Ok(None) => Ok(()),
            Ok(Some(None)) => match stream.end() {
                Ok(status) => {
                    let (op, is_sending) = (stream.op, stream.upload.is_some());
                    cx.shared.packets.responses += 1;
                    if quic.lost() > stream.lost_before {
                        let took = quic.received() - stream.began;
                        cx.shared.packets.beside_loss.record(took);
                    }
                    if let Some(mut sink) = cx.events.sink(op) {
                        sink.end();
                    }
                    cx.events.push(OpEvent::Answered { op, status });
                    if is_sending {
                        // The rest of the request is of no use (RFC 9114 §4.1).
                        self.give_up(id, Http3Code::REQUEST_CANCELLED);
                    } else {
                        self.streams.remove(&id);
                    }
                    Ok(())
                }
                Err(violation) => self.refuse(id, violation, cx),
            },
            Ok(Some(Some(code))) => {
                self.on_reset(id, code, cx);
                Ok(())
            }
            Err(violation) => self.refuse(id, violation, cx),
        }
    }

    /// The server gave up a stream.
    fn on_reset(&mut self, id: StreamId, code: Http3Code, cx: &mut CallContext<'_, Http3Shared>) {
        let Some(op) = self.give_up(id, Http3Code::REQUEST_CANCELLED) else {
            return;
        };
        if code == Http3Code::REQUEST_REJECTED {
            let outcome = Outcome::RefusedStream;
            return cx.events.push(OpEvent::Failed { op, outcome });
        }
        cx.events.push(OpEvent::Failed { op, outcome: Outcome::StreamReset });
        cx.events.push(OpEvent::Reset(format!("RESET_STREAM with {code}")));
    }

    /// Fails a stream's operation as its response breaks a rule. A rule of the connection is passed
    /// on.
    #[cold]
    fn refuse(
        &mut self,
        id: StreamId,
        violation: Http3Violation,
        cx: &mut CallContext<'_, Http3Shared>,
    ) -> Result<(), Http3Violation> {
        if !violation.is_of_stream() {
            return Err(violation);
        }
        if let Some(op) = self.give_up(id, violation.code()) {
            cx.events.push(OpEvent::Failed { op, outcome: Outcome::Malformed });
            cx.events.push(OpEvent::Violated(violation.to_string()));
        }
        Ok(())
    }

    /// Ends the connection and all its operations, as the server breaks a rule.
    #[cold]
    fn break_off(&mut self, violation: Http3Violation, cx: &mut CallContext<'_, Http3Shared>) {
        let reason = violation.to_string();
        if let Some(quic) = &mut self.quic {
            quic.close(cx.now, &cx.shared.quic, violation.code().0, &reason);
        }
        self.fail_all(cx, |_| Outcome::Malformed);
        cx.events.push(OpEvent::Violated(reason));
        self.state = ConnectionState::Broken;
    }

    /// Fails every operation under way.
    fn fail_all(
        &mut self,
        cx: &mut CallContext<'_, Http3Shared>,
        outcome: impl Fn(&RequestStream) -> Outcome,
    ) {
        let mut all: Vec<(StreamId, RequestStream)> = self.streams.drain().collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        for (_, stream) in all {
            cx.events.push(OpEvent::Failed { op: stream.op, outcome: outcome(&stream) });
        }
    }

    /// Closes a stream in both directions. Returns its operation.
    fn give_up(&mut self, id: StreamId, code: Http3Code) -> Option<FlightId> {
        let stream = self.streams.remove(&id)?;
        let code = VarInt::from_u64(code.0).unwrap_or_default();
        if let Some(quic) = &mut self.quic {
            let _ = quic.connection().recv_stream(id).stop(code);
            if stream.upload.is_some() {
                let _ = quic.connection().send_stream(id).reset(code);
            }
        }
        Some(stream.op)
    }

    /// Writes more of a request, as far as windows permit.
    fn continue_upload(&mut self, id: StreamId, cx: &mut CallContext<'_, Http3Shared>) {
        let (Some(quic), Some(stream)) = (&mut self.quic, self.streams.get_mut(&id)) else {
            return;
        };
        let Some(upload) = &mut stream.upload else {
            return;
        };
        let body = match &upload.filled {
            Some(filled) => filled,
            None => cx.shared.requests.body(upload.request),
        };
        let mut sender = quic.connection().send_stream(id);
        loop {
            let rest = match upload.head.get(upload.written..) {
                Some(rest @ [_, ..]) => rest,
                _ => &body[upload.written - upload.head.len()..],
            };
            if rest.is_empty() {
                let _ = sender.finish();
                stream.upload = None;
                return cx.events.push(OpEvent::Written(stream.op));
            }
            match sender.write(rest) {
                Ok(written) => upload.written += written,
                Err(WriteError::Blocked) => return,
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    stream.upload = None;
                    return;
                }
            }
        }
    }

    /// The connection is over: closed by the server, by a limit of time, or by a fault.
    #[cold]
    fn on_lost(&mut self, reason: ConnectionError, cx: &mut CallContext<'_, Http3Shared>) {
        self.state = ConnectionState::Broken;
        if !self.is_secured {
            let fault = self.handshake_fault(reason);
            return cx.events.push(OpEvent::NotSecured(fault));
        }
        let closed = |stream: &RequestStream| {
            if stream.response.has_begun() { Outcome::Truncated } else { Outcome::Closed }
        };
        match reason {
            ConnectionError::LocallyClosed => self.fail_all(cx, closed),
            ConnectionError::TimedOut => {
                self.fail_all(cx, closed);
                let how = "the idle timeout of the connection was over (RFC 9000 §10.1)";
                cx.events.push(OpEvent::Reset(how.to_owned()));
            }
            ConnectionError::Reset => {
                self.fail_all(cx, |_| Outcome::Reset);
                cx.events.push(OpEvent::Reset("stateless reset".to_owned()));
            }
            ConnectionError::ApplicationClosed(close)
                if close.error_code.into_inner() == Http3Code::NO_ERROR.0 =>
            {
                self.fail_all(cx, closed);
            }
            ConnectionError::ConnectionClosed(close)
                if close.error_code == TransportErrorCode::NO_ERROR =>
            {
                self.fail_all(cx, closed);
            }
            ConnectionError::ApplicationClosed(close) => {
                let code = Http3Code(close.error_code.into_inner()).to_string();
                self.fail_all(cx, |_| Outcome::StreamReset);
                cx.events.push(OpEvent::Reset(close_words(&code, &close.reason)));
            }
            // No request has come of it: the server refuses the client.
            ConnectionError::ConnectionClosed(close)
                if self.streams.is_empty()
                    && let Some(alert) = alert_of(close.error_code.into()) =>
            {
                let fault = HandshakeFault::Tls(rustls::Error::AlertReceived(alert));
                cx.events.push(OpEvent::NotSecured(fault));
            }
            ConnectionError::ConnectionClosed(close) => {
                let code = match alert_of(close.error_code.into()) {
                    Some(alert) => format!("the TLS alert {alert:?}"),
                    None => format!("{:?} of QUIC", close.error_code),
                };
                self.fail_all(cx, |_| Outcome::StreamReset);
                cx.events.push(OpEvent::Reset(close_words(&code, &close.reason)));
            }
            reason @ (ConnectionError::TransportError(_)
            | ConnectionError::VersionMismatch
            | ConnectionError::CidsExhausted) => {
                self.fail_all(cx, |_| Outcome::Malformed);
                cx.events.push(OpEvent::Violated(format!("a fault of QUIC: {reason}")));
            }
        }
    }

    /// Why the handshake failed.
    fn handshake_fault(&self, reason: ConnectionError) -> HandshakeFault {
        let own = self.quic.as_ref().and_then(|quic| quic.handshake());
        if let Some(error) = own.and_then(|result| result.error) {
            return HandshakeFault::Tls(error);
        }
        HandshakeFault::Other(match reason {
            ConnectionError::VersionMismatch => {
                "it speaks no version of QUIC that was offered (version 1)".to_owned()
            }
            ConnectionError::ConnectionClosed(close) => {
                let code = u64::from(close.error_code);
                if let Some(alert) = alert_of(code) {
                    return HandshakeFault::Tls(rustls::Error::AlertReceived(alert));
                }
                match close.error_code {
                    TransportErrorCode::CONNECTION_REFUSED => {
                        "it refuses further connections of QUIC (CONNECTION_REFUSED)".to_owned()
                    }
                    TransportErrorCode::INVALID_TOKEN => {
                        "it does not take the token of its own Retry (INVALID_TOKEN)".to_owned()
                    }
                    code => close_words(&format!("{code:?} of QUIC"), &close.reason),
                }
            }
            ConnectionError::ApplicationClosed(close) => {
                close_words(&Http3Code(close.error_code.into_inner()).to_string(), &close.reason)
            }
            ConnectionError::TimedOut => "it does not answer in QUIC".to_owned(),
            ConnectionError::Reset => "it reset the connection during the handshake".to_owned(),
            other => format!("the handshake of QUIC failed: {other}"),
        })
    }
}

/// The alert of TLS that a code of QUIC stands for.
fn alert_of(code: u64) -> Option<AlertDescription> {
    let alert = code.checked_sub(CRYPTO_ERROR)?;
    u8::try_from(alert).ok().map(AlertDescription::from)
}

/// What a server says as it closes a connection; what it adds for people is not to be trusted.
#[cold]
fn close_words(code: &str, reason: &[u8]) -> String {
    let reason = String::from_utf8_lossy(&reason[..reason.len().min(REASON_BYTES_MAX)]);
    let reason: String = reason.chars().filter(|c| !c.is_control()).collect();
    match reason.trim() {
        "" => format!("CONNECTION_CLOSE with {code}"),
        reason => format!("CONNECTION_CLOSE with {code}: {reason}"),
    }
}
