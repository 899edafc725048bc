//! Frames of the client, one function per type, and the header section of a request, as far as it
//! matters for its response.

use super::super::app_request::AppRequest;
use super::super::context::Context;
use super::super::response::ResponseKind;
use super::super::stats::Trouble;
use super::stream::ServerStream;
use super::{Http2ServerConnection, Phase};
use knee_engine::exchange::decimal;
use knee_engine::exchange::http2::fields::{Section, check_name, is_of_connection};
use knee_engine::exchange::http2::frame::{self, FrameHead, PREFACE, flag, kind};
use knee_engine::exchange::http2::{ErrorCode, Violation, connection};

impl Http2ServerConnection {
    /// Processes all whole frames. Returns their length in bytes.
    ///
    /// # Errors
    /// A broken rule that ends the connection.
    pub(super) fn take_frames(
        &mut self,
        input: &[u8],
        context: &mut Context,
    ) -> Result<usize, Violation> {
        let mut rest = input;
        if !self.is_greeted {
            if !PREFACE.starts_with(&rest[..rest.len().min(PREFACE.len())]) {
                return Err(Violation::Preface);
            }
            let Some(after) = rest.strip_prefix(PREFACE) else {
                // It is cut: what another version has read of it is no longer apart.
                return Ok(0);
            };
            (self.is_greeted, rest) = (true, after);
        }
        while let Some((head, after)) = FrameHead::read(rest) {
            self.core.check(head)?;
            let Some((payload, next)) = after.split_at_checked(head.length as usize) else {
                break;
            };
            self.on_frame(head, payload, context)?;
            rest = next;
            if self.phase != Phase::Open {
                return Ok(input.len());
            }
        }
        Ok(input.len() - rest.len())
    }

    fn on_frame(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        context: &mut Context,
    ) -> Result<(), Violation> {
        match head.kind {
            kind::DATA => self.on_data(head, payload, context),
            kind::HEADERS => self.on_headers(head, payload, context),
            kind::CONTINUATION => self.on_continuation(head, payload, context),
            kind::PRIORITY => {
                self.check_stream(head, false)?;
                match payload.len() {
                    5 => Ok(()),
                    _ => Err(Violation::FrameLength),
                }
            }
            kind::RST_STREAM => {
                self.check_stream(head, true)?;
                frame::read_number(payload)?;
                if self.streams.find(head.stream).is_some() {
                    context.tally.http2.reset_by_clients += 1;
                    self.forget(head.stream, context);
                }
                Ok(())
            }
            kind::SETTINGS => self.on_settings(head, payload),
            kind::PUSH_PROMISE => Err(Violation::PushPromise),
            kind::PING => {
                if frame::wants_pong(head, payload)? {
                    frame::put(&mut self.out.bytes, kind::PING, flag::ACK, 0, payload);
                }
                Ok(())
            }
            kind::GOAWAY => frame::read_goaway(head, payload).map(|_| ()),
            kind::WINDOW_UPDATE => self.on_window_update(head, payload, context),
            // What is not known is passed over (RFC 9113 4.1).
            _ => Ok(()),
        }
    }

    /// Checks the stream that a frame names: one of the client's numbers; one opened before if
    /// `has_begun`.
    fn check_stream(&self, head: FrameHead, has_begun: bool) -> Result<(), Violation> {
        match head.stream {
            0 => Err(Violation::OnStreamZero),
            stream if stream % 2 == 0 => Err(Violation::ServerStream),
            stream if has_begun && stream > self.last_stream => Err(Violation::IdleStream),
            _ => Ok(()),
        }
    }

    fn on_data(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        context: &mut Context,
    ) -> Result<(), Violation> {
        self.check_stream(head, true)?;
        if !self.core.receive_window.take(head.length) {
            return Err(Violation::WindowExceeded);
        }
        if let Some(increment) = self.core.receive_window.due() {
            frame::put_window_update(&mut self.out.bytes, 0, increment);
        }
        let content = frame::content(head, payload)?;
        let id = head.stream;
        let Some(stream) = self.streams.find(id) else {
            // It was reset; the client did not know yet.
            return Ok(());
        };
        if stream.is_received {
            context.tally.on_trouble(Trouble::Malformed);
            self.reset(id, ErrorCode::STREAM_CLOSED, context);
            return Ok(());
        }
        if !stream.receive_window.take(head.length) {
            context.tally.on_trouble(Trouble::Malformed);
            self.reset(id, ErrorCode::FLOW_CONTROL_ERROR, context);
            return Ok(());
        }
        stream.received += content.len() as u64;
        if let Some(request) = &mut stream.app_request {
            request.add_body(content);
        }
        let ends = head.has(flag::END_STREAM);
        if let Some(increment) = stream.receive_window.due().filter(|_| !ends) {
            frame::put_window_update(&mut self.out.bytes, id, increment);
        }
        if stream.call.is_some() {
            self.feed_call(id, content, context);
        }
        if ends {
            self.end_request(id, context);
        }
        Ok(())
    }

    fn on_headers(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        context: &mut Context,
    ) -> Result<(), Violation> {
        self.check_stream(head, false)?;
        let fragment = frame::content(head, payload)?;
        if head.has(flag::END_HEADERS) {
            let ends_stream = head.has(flag::END_STREAM);
            return self.on_section(head.stream, ends_stream, fragment, context);
        }
        self.core.begin_block(head, fragment);
        Ok(())
    }

    fn on_continuation(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        context: &mut Context,
    ) -> Result<(), Violation> {
        match self.core.continue_block(head, payload)? {
            Some(block) => self.on_section(block.stream, block.ends_stream, &block.bytes, context),
            None => Ok(()),
        }
    }

    /// Handles a whole header section: a request, or its trailers.
    fn on_section(
        &mut self,
        id: u32,
        ends: bool,
        block: &[u8],
        context: &mut Context,
    ) -> Result<(), Violation> {
        // Whatever becomes of it, the tables of both sides stay the same.
        let mut app_request = context.keeps_app_requests().then(Box::<AppRequest>::default);
        let section = match &mut app_request {
            None => self.sections.read(block)?,
            Some(app_request) => {
                let mut add =
                    |_: &_, name: &[u8], value: &[u8]| app_request.add_header(name, value);
                self.sections.read_into(block, &mut add)?
            }
        };
        if id <= self.last_stream {
            return self.on_trailers(id, ends, section.is_trailers(), context);
        }
        self.last_stream = id;
        context.tally.http2.streams += 1;
        if self.streams.len() >= context.streams_max as usize {
            context.tally.http2.refused += 1;
            frame::put_reset(&mut self.out.bytes, id, ErrorCode::REFUSED_STREAM);
            return Ok(());
        }
        let Some(request) = section.request() else {
            context.tally.on_trouble(Trouble::Malformed);
            frame::put_reset(&mut self.out.bytes, id, ErrorCode::PROTOCOL_ERROR);
            return Ok(());
        };
        let mut stream =
            ServerStream::new(request.head_only, request.length, self.core.peer.window);
        stream.call = context.grpc_call(app_request.as_deref());
        stream.app_request = app_request.filter(|_| stream.call.is_none());
        self.streams.insert(id, stream);
        let most = &mut context.tally.http2.streams_max;
        *most = (*most).max(self.streams.len() as u64);
        if ends {
            self.end_request(id, context);
        } else if request.expects_continue {
            let block = &context.responses.of(ResponseKind::Continue).block;
            self.out.put_head(id, false, block, self.core.peer.frame_bytes);
        }
        Ok(())
    }

    fn on_trailers(
        &mut self,
        id: u32,
        ends: bool,
        is_trailers: bool,
        context: &mut Context,
    ) -> Result<(), Violation> {
        let Some(stream) = self.streams.find(id) else {
            // It was reset, or answered: the client did not know yet, or breaks the order.
            return Ok(());
        };
        if stream.is_received {
            return Err(Violation::ClosedStream);
        }
        if !ends || !is_trailers {
            context.tally.on_trouble(Trouble::Malformed);
            self.reset(id, ErrorCode::PROTOCOL_ERROR, context);
        } else {
            self.end_request(id, context);
        }
        Ok(())
    }

    /// Handles the end of a request.
    fn end_request(&mut self, id: u32, context: &mut Context) {
        let Some(stream) = self.streams.find(id) else {
            return;
        };
        stream.is_received = true;
        if stream.length.is_some_and(|length| length != stream.received) {
            context.tally.on_trouble(Trouble::Malformed);
            return self.reset(id, ErrorCode::PROTOCOL_ERROR, context);
        }
        self.serve(id, context);
    }

    fn on_settings(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Violation> {
        let Some(window_change) = self.core.apply_settings(head, payload)? else {
            return Ok(());
        };
        if window_change != 0 && !self.streams.grow_windows(window_change) {
            return Err(Violation::WindowBySettings);
        }
        connection::put_settings_ack(&mut self.out.bytes);
        Ok(())
    }

    fn on_window_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        context: &mut Context,
    ) -> Result<(), Violation> {
        let Some(increment) = self.core.window_update(head, payload)? else {
            return Ok(());
        };
        self.check_stream(head, true)?;
        let Some(stream) = self.streams.find(head.stream) else {
            return Ok(());
        };
        match stream.send_window.update(increment) {
            Ok(()) => self.streams.resume(head.stream),
            Err(violation) => {
                context.tally.on_trouble(Trouble::Malformed);
                self.reset(head.stream, violation.code(), context);
            }
        }
        Ok(())
    }
}

/// What of a request matters for its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::http) struct Http2RequestHead {
    /// It asks for the head of the response alone.
    pub(in crate::http) head_only: bool,
    /// Announced length of its body, if any.
    pub(in crate::http) length: Option<u64>,
    /// The client waits for 100 before it sends the body.
    pub(in crate::http) expects_continue: bool,
}

/// What the fields of a section say.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::http) struct RequestSection {
    head: Http2RequestHead,
    methods: u32,
    is_connect: bool,
    schemes: u32,
    paths: u32,
    authorities: u32,
    has_host: bool,
    has_regular: bool,
    is_malformed: bool,
}

impl Section for RequestSection {
    fn take(&mut self, name: &[u8], value: &[u8]) {
        let is_fine = match name {
            [b':', ..] => self.take_pseudo(name, value),
            _ => self.take_regular(name, value),
        };
        self.is_malformed |= !is_fine;
    }
}

impl RequestSection {
    /// The request; `None` if it is malformed (RFC 9113 §8.1.1).
    pub(in crate::http) fn request(&self) -> Option<Http2RequestHead> {
        let (schemes, paths) = (self.schemes, self.paths);
        let is_request = if self.is_connect {
            (self.methods, schemes, paths, self.authorities) == (1, 0, 0, 1)
        } else {
            (self.methods, schemes, paths) == (1, 1, 1) && self.authorities <= 1
        };
        (is_request && !self.is_malformed).then_some(self.head)
    }

    /// Whether it names the server, which HTTP/3 asks for (RFC 9114 §4.3.1).
    pub(in crate::http) fn has_authority(&self) -> bool {
        self.authorities > 0 || self.has_host
    }

    /// Whether it can be trailers.
    pub(in crate::http) fn is_trailers(&self) -> bool {
        self.methods + self.schemes + self.paths + self.authorities == 0 && !self.is_malformed
    }

    /// RFC 9113 8.3.1.
    fn take_pseudo(&mut self, name: &[u8], value: &[u8]) -> bool {
        match name {
            b":method" => {
                self.methods += 1;
                self.head.head_only = value == b"HEAD";
                self.is_connect = value == b"CONNECT";
            }
            b":scheme" => self.schemes += 1,
            b":path" => {
                self.paths += 1;
                return !value.is_empty() && !self.has_regular;
            }
            b":authority" => self.authorities += 1,
            _ => return false,
        }
        !self.has_regular
    }

    /// RFC 9113 8.2.
    fn take_regular(&mut self, name: &[u8], value: &[u8]) -> bool {
        self.has_regular = true;
        let is_bad = |byte: &u8| matches!(byte, 0 | b'\r' | b'\n');
        if check_name(name).is_err() || value.iter().any(is_bad) {
            return false;
        }
        match name {
            b"content-length" => {
                let Some(length) = decimal(value) else {
                    return false;
                };
                let is_same = self.head.length.is_none_or(|other| other == length);
                self.head.length = Some(length);
                is_same
            }
            b"host" => {
                self.has_host = true;
                true
            }
            b"expect" => {
                self.head.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
                true
            }
            b"te" => value.eq_ignore_ascii_case(b"trailers"),
            _ => !is_of_connection(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_engine::exchange::http2::fields::SectionReader;
    use knee_engine::exchange::http2::hpack::Encoder;

    const GET: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a")];

    fn read(fields: &[(&str, &str)]) -> RequestSection {
        let (mut encoder, mut block) = (Encoder::default(), Vec::new());
        for (name, value) in fields {
            encoder.encode(name.as_bytes(), value.as_bytes(), &mut block);
        }
        let mut sections = SectionReader::<RequestSection>::default();
        sections.read(&block).unwrap()
    }

    #[test]
    fn requests_are_understood() {
        assert_eq!(read(&GET).request(), Some(Http2RequestHead::default()));
        let mut head = GET;
        head[0].1 = "HEAD";
        let more = [("content-length", "7"), ("expect", "100-Continue"), ("te", "trailers")];
        let told = Http2RequestHead { head_only: true, length: Some(7), expects_continue: true };
        assert_eq!(read(&[&head[..], &more].concat()).request(), Some(told));
        let connect = [(":method", "CONNECT"), (":authority", "a:1")];
        assert!(read(&connect).request().is_some());
        assert!(read(&[("x-checksum", "1")]).is_trailers());
        let by_host = [&GET[..3], &[("host", "a")]].concat();
        assert!(read(&GET).has_authority() && read(&by_host).has_authority());
        assert!(!read(&GET[..3]).has_authority());
    }

    #[test]
    fn malformed_ones_are_told() {
        for fields in [
            &GET[1..],
            &GET[..2],
            &[&GET[..], &[(":path", "/")]].concat(),
            &[&GET[..], &[(":status", "200")]].concat(),
            &[&[("x", "y")], &GET[..]].concat(),
            &[&GET[..], &[("Host", "a")]].concat(),
            &[&GET[..], &[("connection", "close")]].concat(),
            &[&GET[..], &[("te", "gzip")]].concat(),
            &[&GET[..], &[("x", "a\nb")]].concat(),
            &[&GET[..], &[("content-length", "+1")]].concat(),
            &[&GET[..], &[("content-length", "1"), ("content-length", "2")]].concat(),
        ] {
            let section = read(fields);
            assert_eq!(section.request(), None, "{fields:?}");
            assert!(!section.is_trailers(), "{fields:?}");
        }
    }

    #[test]
    fn equal_bytes_mean_the_same_only_while_the_table_is_the_same() {
        let (mut encoder, mut sections) =
            (Encoder::default(), SectionReader::<RequestSection>::default());
        let mut block = |length: &str| {
            let mut block = Vec::new();
            for (name, value) in GET.iter().chain(&[("content-length", length)]) {
                encoder.encode(name.as_bytes(), value.as_bytes(), &mut block);
            }
            sections.read(&block).unwrap().request().unwrap().length
        };
        let lengths = ["7", "7", "7", "8", "7", "8"].map(&mut block);
        assert_eq!(lengths, [7, 7, 7, 8, 7, 8].map(Some));
    }
}
