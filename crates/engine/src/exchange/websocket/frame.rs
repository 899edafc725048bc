//! Frames and the messages that they carry (RFC 6455 §5).

use super::WebSocketViolation;
use super::deflate::MessageInflater;

/// Kinds of frames (RFC 6455 §5.2).
pub mod opcode {
    /// A further fragment of a message.
    pub const CONTINUATION: u8 = 0;
    /// A text message, or its first fragment.
    pub const TEXT: u8 = 1;
    /// A binary message, or its first fragment.
    pub const BINARY: u8 = 2;
    /// The close of the connection.
    pub const CLOSE: u8 = 8;
    /// A ping.
    pub const PING: u8 = 9;
    /// The answer to a ping.
    pub const PONG: u8 = 10;
}

/// Codes of close frames (RFC 6455 §7.4.1).
pub mod close_code {
    /// The purpose of the connection is fulfilled.
    pub const NORMAL: u16 = 1000;
    /// A rule was broken.
    pub const PROTOCOL_ERROR: u16 = 1002;
    /// A close frame without a code. Never sent.
    pub const NONE: u16 = 1005;
    /// The connection ended without a close frame. Never sent.
    pub const ABNORMAL: u16 = 1006;
    /// A text is not UTF-8.
    pub const NOT_UTF8: u16 = 1007;
    /// A limit of this side was exceeded.
    pub const POLICY: u16 = 1008;
    /// A message is too long.
    pub const TOO_LONG: u16 = 1009;
}

/// The bit of the first byte that marks a compressed message (RFC 7692 §6).
pub const COMPRESSED: u8 = 0x40;

/// Most bytes of a control frame's payload (RFC 6455 §5.5).
const CONTROL_MAX: usize = 125;

/// Most bytes before a payload.
const HEAD_MAX: usize = 14;

/// Room for a message that a connection keeps; more is given back.
const KEPT_BYTES: usize = 4096;

/// Appends a frame. A client gives a mask, a server none (RFC 6455 §5.1).
pub fn put(out: &mut Vec<u8>, opcode: u8, is_final: bool, mask: Option<[u8; 4]>, payload: &[u8]) {
    let masked = if mask.is_some() { 0x80 } else { 0 };
    out.push(opcode | if is_final { 0x80 } else { 0 });
    match payload.len() {
        length @ 0..=125 => out.push(masked | length as u8),
        length @ 126..=0xFFFF => {
            out.push(masked | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(masked | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    let Some(mask) = mask else {
        return out.extend_from_slice(payload);
    };
    out.extend_from_slice(&mask);
    let from = out.len();
    out.extend_from_slice(payload);
    apply_mask(&mut out[from..], mask, 0);
}

/// Appends a close frame; [`close_code::NONE`] has no payload.
pub fn put_close(out: &mut Vec<u8>, code: u16, mask: Option<[u8; 4]>) {
    let payload = code.to_be_bytes();
    let payload = if code == close_code::NONE { &[][..] } else { &payload };
    put(out, opcode::CLOSE, true, mask, payload);
}

/// Applies a mask to bytes of a payload from `at` on (RFC 6455 §5.3).
fn apply_mask(bytes: &mut [u8], mut mask: [u8; 4], at: usize) {
    mask.rotate_left(at % 4);
    let mut chunks = bytes.chunks_exact_mut(4);
    for chunk in &mut chunks {
        for (byte, key) in chunk.iter_mut().zip(mask) {
            *byte ^= key;
        }
    }
    for (byte, key) in chunks.into_remainder().iter_mut().zip(mask) {
        *byte ^= key;
    }
}

/// Who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderSide {
    /// A client, to whom frames come without masks.
    Client,
    /// A server, to whom they come with masks.
    Server,
}

/// What has been read whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageItem {
    /// A message of text or of bytes; [`MessageReader::payload`] has it.
    Message {
        /// Whether it is text.
        is_text: bool,
    },
    /// A ping; [`MessageReader::control`] has its payload.
    Ping,
    /// A pong.
    Pong,
    /// A close frame with its code; [`close_code::NONE`] if it has none.
    Close(u16),
}

/// Reads messages off a connection, wherever its bytes are cut.
#[derive(Debug)]
pub struct MessageReader {
    side: ReaderSide,
    /// Most bytes of a message.
    bytes_max: usize,
    /// Begin of a frame whose length is not known yet.
    head: [u8; HEAD_MAX],
    head_bytes: u8,
    frame: Option<Frame>,
    /// Opcode of the message under way.
    message: Option<u8>,
    /// It is compressed.
    is_compressed: bool,
    /// Reads compressed messages, where both sides agreed on them.
    inflater: Option<Box<MessageInflater>>,
    /// Payload of the message under way, or of the last one.
    payload: Vec<u8>,
    /// `payload` is of a message that has been returned.
    is_returned: bool,
    /// Payload of the control frame under way, or of the last one.
    control: Vec<u8>,
    is_closed: bool,
}

/// A frame whose payload is coming.
#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: u8,
    is_final: bool,
    mask: [u8; 4],
    /// Bytes that have come.
    at: usize,
    length: usize,
}

impl MessageReader {
    /// Reads as this side, messages of up to `bytes_max` bytes.
    pub fn new(side: ReaderSide, bytes_max: usize) -> MessageReader {
        MessageReader {
            side,
            bytes_max,
            head: [0; HEAD_MAX],
            head_bytes: 0,
            frame: None,
            message: None,
            is_compressed: false,
            inflater: None,
            payload: Vec::new(),
            is_returned: false,
            control: Vec::new(),
            is_closed: false,
        }
    }

    /// Permits compressed messages.
    pub fn inflate_with(&mut self, inflater: MessageInflater) {
        self.inflater = Some(Box::new(inflater));
    }

    /// Payload of the last message.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Payload of the last ping, pong or close frame.
    pub fn control(&self) -> &[u8] {
        &self.control
    }

    /// Reads up to the end of the next item; `None` once all of `input` is read.
    ///
    /// # Errors
    /// The rule that the peer broke. Nothing can be read after it.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<MessageItem>, WebSocketViolation> {
        if self.is_returned {
            self.payload.clear();
            self.payload.shrink_to(KEPT_BYTES);
            self.is_returned = false;
        }
        while !input.is_empty() {
            let frame = match self.frame {
                Some(frame) => frame,
                None => match self.read_head(input)? {
                    Some(frame) => frame,
                    None => return Ok(None),
                },
            };
            if let Some(item) = self.read_payload(frame, input)? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// Reads the head of a frame; `None` if it goes on.
    fn read_head(&mut self, input: &mut &[u8]) -> Result<Option<Frame>, WebSocketViolation> {
        let mut held = usize::from(self.head_bytes);
        loop {
            let needed = head_length(&self.head[..held]);
            let here = input.len().min(needed - held);
            self.head[held..held + here].copy_from_slice(&input[..here]);
            *input = &input[here..];
            held += here;
            if held >= 1 {
                self.check_first(self.head[0])?;
            }
            if held >= 2 {
                self.check_second(self.head[0], self.head[1])?;
            }
            if held < needed {
                self.head_bytes = held as u8;
                return Ok(None);
            }
            if head_length(&self.head[..held]) == held {
                break;
            }
        }
        self.head_bytes = 0;
        self.begin_frame(held).map(Some)
    }

    fn check_first(&self, first: u8) -> Result<(), WebSocketViolation> {
        let opcode = first & 0x0F;
        if self.is_closed {
            return Err(WebSocketViolation::AfterClose);
        }
        if first & 0x70 != 0 && !self.marks_compressed(first) {
            return Err(WebSocketViolation::ReservedBits);
        }
        match opcode {
            opcode::CONTINUATION if self.message.is_none() => {
                Err(WebSocketViolation::ContinuationAlone)
            }
            opcode::TEXT | opcode::BINARY if self.message.is_some() => {
                Err(WebSocketViolation::Interleaved)
            }
            opcode::CONTINUATION | opcode::TEXT | opcode::BINARY => Ok(()),
            opcode::CLOSE | opcode::PING | opcode::PONG if first & 0x80 != 0 => Ok(()),
            opcode::CLOSE | opcode::PING | opcode::PONG => {
                Err(WebSocketViolation::ControlFragmented)
            }
            _ => Err(WebSocketViolation::Opcode(opcode)),
        }
    }

    /// Whether the reserved bits mark a compressed message (RFC 7692 §6).
    fn marks_compressed(&self, first: u8) -> bool {
        let begins = matches!(first & 0x0F, opcode::TEXT | opcode::BINARY);
        self.inflater.is_some() && begins && first & 0x70 == COMPRESSED
    }

    fn check_second(&self, first: u8, second: u8) -> Result<(), WebSocketViolation> {
        match (self.side, second & 0x80 != 0) {
            (ReaderSide::Client, true) => return Err(WebSocketViolation::Masked),
            (ReaderSide::Server, false) => return Err(WebSocketViolation::Unmasked),
            _ => {}
        }
        if first & 0x08 != 0 && second & 0x7F > CONTROL_MAX as u8 {
            return Err(WebSocketViolation::ControlLong);
        }
        Ok(())
    }

    /// Begins the frame whose whole head is here.
    fn begin_frame(&mut self, held: usize) -> Result<Frame, WebSocketViolation> {
        let head = &self.head[..held];
        let (length, least) = match head[1] & 0x7F {
            126 => (u64::from(u16::from_be_bytes([head[2], head[3]])), 126),
            127 => {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&head[2..10]);
                (u64::from_be_bytes(bytes), 0x1_0000)
            }
            short => (u64::from(short), 0),
        };
        if length >> 63 != 0 {
            return Err(WebSocketViolation::LengthTooLarge);
        }
        if length < least {
            return Err(WebSocketViolation::LengthNotMinimal);
        }
        let opcode = head[0] & 0x0F;
        let is_control = opcode & 0x08 != 0;
        let before = if is_control { 0 } else { self.payload.len() };
        if length > (self.bytes_max - before) as u64 && !is_control {
            return Err(WebSocketViolation::MessageTooLong(self.bytes_max));
        }
        let mut mask = [0; 4];
        if self.side == ReaderSide::Server {
            mask.copy_from_slice(&head[held - 4..]);
        }
        if is_control {
            self.control.clear();
        } else if opcode != opcode::CONTINUATION {
            self.message = Some(opcode);
            self.is_compressed = head[0] & COMPRESSED != 0;
        }
        let is_final = head[0] & 0x80 != 0;
        Ok(Frame { opcode, is_final, mask, at: 0, length: length as usize })
    }

    /// Reads payload of a frame; the item that ends with it, if any.
    fn read_payload(
        &mut self,
        mut frame: Frame,
        input: &mut &[u8],
    ) -> Result<Option<MessageItem>, WebSocketViolation> {
        let (here, rest) = input.split_at(input.len().min(frame.length - frame.at));
        *input = rest;
        let is_control = frame.opcode & 0x08 != 0;
        let into = if is_control { &mut self.control } else { &mut self.payload };
        let from = into.len();
        into.extend_from_slice(here);
        if self.side == ReaderSide::Server {
            apply_mask(&mut into[from..], frame.mask, frame.at);
        }
        frame.at += here.len();
        if frame.at < frame.length {
            self.frame = Some(frame);
            return Ok(None);
        }
        self.frame = None;
        match frame.opcode {
            opcode::PING => Ok(Some(MessageItem::Ping)),
            opcode::PONG => Ok(Some(MessageItem::Pong)),
            opcode::CLOSE => self.end_close().map(Some),
            _ if frame.is_final => self.end_message().map(Some),
            _ => Ok(None),
        }
    }

    fn end_message(&mut self) -> Result<MessageItem, WebSocketViolation> {
        let is_text = self.message.take() == Some(opcode::TEXT);
        if let (true, Some(inflater)) = (self.is_compressed, &mut self.inflater) {
            inflater.inflate(&mut self.payload, self.bytes_max)?;
        }
        if is_text && std::str::from_utf8(&self.payload).is_err() {
            return Err(WebSocketViolation::NotUtf8);
        }
        self.is_returned = true;
        Ok(MessageItem::Message { is_text })
    }

    fn end_close(&mut self) -> Result<MessageItem, WebSocketViolation> {
        self.is_closed = true;
        let code = match self.control[..] {
            [] => return Ok(MessageItem::Close(close_code::NONE)),
            [_] => return Err(WebSocketViolation::CloseCut),
            [high, low, ..] => u16::from_be_bytes([high, low]),
        };
        if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
            return Err(WebSocketViolation::CloseCode(code));
        }
        if std::str::from_utf8(&self.control[2..]).is_err() {
            return Err(WebSocketViolation::CloseReason);
        }
        Ok(MessageItem::Close(code))
    }
}

/// Length of the head of a frame, as far as its first bytes tell: at least 2.
fn head_length(head: &[u8]) -> usize {
    let [_, second, ..] = *head else {
        return 2;
    };
    let extended = match second & 0x7F {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mask = if second & 0x80 != 0 { 4 } else { 0 };
    2 + extended + mask
}

#[cfg(test)]
mod tests;
