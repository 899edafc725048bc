//! The content codings of bodies (RFC 9110 §8.4), undone as their bytes come, for whoever reads
//! them. Nothing of a body is kept but the window of its coding.

use super::{FlightId, list};
use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use std::collections::HashMap;
use std::fmt::{self, Display};
use zstd::stream::raw::{DParameter, Decoder, Operation};

/// Content codings of one body, most: as many as curl undoes.
const CODINGS_MAX: usize = 5;

/// Decoded bytes that a body may always have.
const DECODED_BYTES_FREE: u64 = 16 << 20;

/// Decoded bytes for each byte on the wire, most, beyond [`DECODED_BYTES_FREE`]. Text seldom shrinks
/// to less than a thirtieth; a bomb of gzip to a thousandth, one of the others to far less.
const DECODED_RATIO_MAX: u64 = 100;

/// Window of a zstd body, most, as a power of two (RFC 9659 §3).
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Window of gzip and deflate, as a power of two (RFC 1951 §2).
const DEFLATE_WINDOW_LOG: u8 = 15;

/// Decoded bytes that are handed on at once.
const PIECE_BYTES: usize = 8 << 10;

/// A content coding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentCoding {
    /// None.
    #[default]
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 1950, or RFC 1951 alone, as some servers send it.
    Deflate,
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
    /// One that is not read, or several where one was expected.
    Other,
}

impl ContentCoding {
    /// Empty elements of a list mean nothing (RFC 9110 §5.6.1).
    const NAMES: [(&'static str, ContentCoding); 7] = [
        ("gzip", ContentCoding::Gzip),
        ("x-gzip", ContentCoding::Gzip),
        ("deflate", ContentCoding::Deflate),
        ("br", ContentCoding::Brotli),
        ("zstd", ContentCoding::Zstd),
        ("identity", ContentCoding::Identity),
        ("", ContentCoding::Identity),
    ];

    fn named(name: &[u8]) -> ContentCoding {
        let known =
            ContentCoding::NAMES.iter().find(|known| name.eq_ignore_ascii_case(known.0.as_bytes()));
        known.map_or(ContentCoding::Other, |known| known.1)
    }

    fn name(self) -> &'static str {
        let known = ContentCoding::NAMES.iter().find(|known| known.1 == self);
        known.map_or("", |known| known.0)
    }

    /// The only coding of a body, as far as a further line of Content-Encoding says.
    pub(super) fn and(self, value: &[u8]) -> ContentCoding {
        list(value).map(ContentCoding::named).fold(self, |one, other| match (one, other) {
            (one, ContentCoding::Identity) => one,
            (ContentCoding::Identity, other) => other,
            _ => ContentCoding::Other,
        })
    }
}

/// Decoders of the bodies that are compressed, by operation.
#[derive(Debug, Default)]
pub struct BodyDecoders {
    decoders: HashMap<FlightId, BodyDecoder>,
}

impl BodyDecoders {
    /// Takes a line of Content-Encoding of an operation's final response.
    pub fn announce(&mut self, op: FlightId, value: &[u8]) {
        for name in list(value) {
            match ContentCoding::named(name) {
                ContentCoding::Identity => {}
                coding => self.decoders.entry(op).or_default().add(coding, name),
            }
        }
    }

    /// The body of an operation has this coding.
    pub(super) fn begin(&mut self, op: FlightId, coding: ContentCoding) {
        if coding != ContentCoding::Identity {
            self.decoders.entry(op).or_default().add(coding, b"");
        }
    }

    /// The decoder of an operation's body; `None` where that is not compressed.
    #[inline]
    pub fn get(&mut self, op: FlightId) -> Option<&mut BodyDecoder> {
        if self.decoders.is_empty() { None } else { self.decoders.get_mut(&op) }
    }

    /// Ends an operation: why its body was not decoded, in words.
    #[inline]
    pub fn end(&mut self, op: FlightId) -> Option<String> {
        if self.decoders.is_empty() { None } else { self.decoders.remove(&op)?.fault }
    }
}

/// Undoes the codings of one body.
#[derive(Debug, Default)]
pub struct BodyDecoder {
    /// In the order in which they were applied.
    codings: Vec<ContentCoding>,
    /// Why they cannot be undone, in words.
    unread: Option<String>,
    /// In the order in which they are undone, once the body has begun.
    stages: Vec<CodingStage>,
    /// Bytes of the body on the wire.
    bytes: u64,
    fault: Option<String>,
}

impl BodyDecoder {
    fn add(&mut self, coding: ContentCoding, name: &[u8]) {
        if coding == ContentCoding::Other {
            let name: String = name.escape_ascii().take(NAME_SHOWN).map(char::from).collect();
            self.unread = Some(format!("knee does not read the content coding '{name}'"));
        } else if self.codings.len() == CODINGS_MAX {
            self.unread = Some(format!("it has more than {CODINGS_MAX} content codings"));
        } else {
            self.codings.push(coding);
        }
    }

    /// Takes the next bytes of the body; `each` is given what they decode to.
    pub fn feed(&mut self, bytes: &[u8], each: &mut dyn FnMut(&[u8])) {
        if bytes.is_empty() || self.fault.is_some() {
            return;
        }
        if self.bytes == 0 {
            self.stages =
                self.codings.iter().rev().map(|coding| CodingStage::new(*coding)).collect();
            self.fault = self.unread.take();
        }
        self.bytes += bytes.len() as u64;
        let bytes_max = DECODED_BYTES_FREE.max(self.bytes.saturating_mul(DECODED_RATIO_MAX));
        if self.fault.is_none() {
            self.fault = decode(&mut self.stages, bytes, bytes_max, each).err();
        }
        if self.fault.is_some() {
            self.stages = Vec::new();
        }
    }

    /// The body has ended. Returns whether all of it was decoded.
    pub fn end(&mut self) -> bool {
        if let Some(cut) = self.stages.iter().find(|stage| !stage.is_ended) {
            self.fault = Some(format!("the {} body is cut off", cut.coding.name()));
        }
        self.fault.is_none()
    }
}

/// Bytes of the name of an unknown coding that are shown.
const NAME_SHOWN: usize = 40;

/// Has all stages decode some bytes.
fn decode(
    stages: &mut [CodingStage],
    mut bytes: &[u8],
    bytes_max: u64,
    each: &mut dyn FnMut(&[u8]),
) -> Result<(), String> {
    let Some((stage, further)) = stages.split_first_mut() else {
        each(bytes);
        return Ok(());
    };
    let mut piece = [0; PIECE_BYTES];
    loop {
        let (taken, made) = stage.step(bytes, &mut piece)?;
        bytes = &bytes[taken..];
        stage.made += made as u64;
        if stage.made > bytes_max {
            return Err(format!(
                "the {} body decodes to more than {} MiB and {DECODED_RATIO_MAX} times its size",
                stage.coding.name(),
                DECODED_BYTES_FREE >> 20
            ));
        }
        if made > 0 {
            decode(further, &piece[..made], bytes_max, each)?;
        }
        if bytes.is_empty() && made < piece.len() {
            return Ok(());
        }
        if taken + made == 0 {
            return Err(stage.unreadable("it does not go on"));
        }
    }
}

/// Undoes one coding.
struct CodingStage {
    coding: ContentCoding,
    /// `None` before the first byte, or before that of a further member of gzip.
    codec: Option<Codec>,
    /// What came so far may be all.
    is_ended: bool,
    /// Decoded bytes so far.
    made: u64,
}

enum Codec {
    Inflate(Decompress),
    Brotli(Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>),
    Zstd(Decoder<'static>),
}

impl fmt::Debug for CodingStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodingStage").field("coding", &self.coding).finish_non_exhaustive()
    }
}

impl Codec {
    /// Of a body that begins with this byte. Of deflate that tells whether the head of RFC 1950
    /// comes first.
    fn new(coding: ContentCoding, first: u8) -> Result<Codec, String> {
        Ok(match coding {
            ContentCoding::Gzip => Codec::Inflate(Decompress::new_gzip(DEFLATE_WINDOW_LOG)),
            ContentCoding::Brotli => {
                let alloc = StandardAlloc::default;
                Codec::Brotli(Box::new(BrotliState::new_strict(alloc(), alloc(), alloc())))
            }
            ContentCoding::Zstd => {
                let mut decoder = Decoder::new().map_err(|error| error.to_string())?;
                let window = DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX);
                decoder.set_parameter(window).map_err(|error| error.to_string())?;
                Codec::Zstd(decoder)
            }
            _ => Codec::Inflate(Decompress::new(first & 0x8f == 8)),
        })
    }

    /// Decodes some bytes into `piece`: how many were taken and made, and whether the end came.
    fn step(&mut self, bytes: &[u8], piece: &mut [u8]) -> Result<(usize, usize, bool), String> {
        match self {
            Codec::Inflate(stream) => {
                let (before_in, before_out) = (stream.total_in(), stream.total_out());
                let status = stream.decompress(bytes, piece, FlushDecompress::Sync);
                let is_ended = status.map_err(|error| error.to_string())? == Status::StreamEnd;
                let taken = (stream.total_in() - before_in) as usize;
                Ok((taken, (stream.total_out() - before_out) as usize, is_ended))
            }
            Codec::Brotli(state) => {
                let (mut left, mut taken, mut total) = (bytes.len(), 0, 0);
                let (mut room, mut made) = (piece.len(), 0);
                match BrotliDecompressStream(
                    &mut left, &mut taken, bytes, &mut room, &mut made, piece, &mut total, state,
                ) {
                    BrotliResult::ResultFailure => Err(format!("{:?}", state.error_code)),
                    result => Ok((taken, made, matches!(result, BrotliResult::ResultSuccess))),
                }
            }
            Codec::Zstd(decoder) => {
                let status = decoder.run_on_buffers(bytes, piece);
                let status = status.map_err(|error| error.to_string())?;
                Ok((status.bytes_read, status.bytes_written, status.remaining == 0))
            }
        }
    }
}

impl CodingStage {
    fn new(coding: ContentCoding) -> CodingStage {
        CodingStage { coding, codec: None, is_ended: false, made: 0 }
    }

    fn unreadable(&self, why: impl Display) -> String {
        format!("the body is no {}: {why}", self.coding.name())
    }

    /// Decodes some bytes into `piece`: how many were taken and made.
    fn step(&mut self, bytes: &[u8], piece: &mut [u8]) -> Result<(usize, usize), String> {
        if self.is_ended {
            // Members of gzip and frames of zstd follow each other (RFC 1952 §2.2, RFC 8878 §3).
            match (bytes, self.coding) {
                ([], _) => return Ok((0, 0)),
                (_, ContentCoding::Gzip) => self.codec = None,
                (_, ContentCoding::Zstd) => {}
                _ => return Err(self.unreadable("bytes follow its end")),
            }
        }
        if let ([first, ..], None) = (bytes, &self.codec) {
            let codec = Codec::new(self.coding, *first).map_err(|error| self.unreadable(error))?;
            self.codec = Some(codec);
        }
        let Some(codec) = &mut self.codec else {
            return Ok((0, 0));
        };
        match codec.step(bytes, piece) {
            Ok((taken, made, is_ended)) => {
                self.is_ended = is_ended;
                Ok((taken, made))
            }
            Err(error) => Err(self.unreadable(error)),
        }
    }
}

#[cfg(test)]
mod tests;
