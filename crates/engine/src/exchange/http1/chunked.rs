//! The chunked transfer coding (RFC 9112 §7.1): where it ends, the data left aside.

use super::{Http1Violation, ResponseSink};

/// Bytes of the line with a chunk's size, its extensions included, at most: the limit of Go's
/// reader.
const SIZE_LINE_BYTES_MAX: u32 = 4096;

/// Bytes of all trailer lines together, at most: as many as a head may have.
const TRAILER_BYTES_MAX: u32 = super::HEAD_BYTES_MAX as u32;

/// A chunked body as it comes in. Nothing of it is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chunked {
    place: Place,
    /// Bytes of framing since the last data: of the line with a size, or of the trailer.
    framing_bytes: u32,
}

/// Where in a chunked body the stream is.
///
/// Lines of the framing must end in CRLF; trailer lines, as header lines, may end in LF alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before the first digit of a chunk's size.
    #[default]
    SizeStart,
    /// In the digits.
    Size(u64),
    /// In the blanks after them, which some servers pad with.
    SizePadding(u64),
    /// In a chunk extension, which is ignored.
    Extension(u64),
    /// Before the LF that ends the line with the size.
    SizeLf(u64),
    /// In the data; bytes of it that are left.
    Data(u64),
    /// Before the CRLF after the data.
    DataCr,
    /// Before its LF.
    DataLf,
    /// At the beginning of the line after the last chunk.
    TrailerStart,
    /// At the beginning of a line after a trailer, which may be folded into it.
    TrailerNext,
    /// In the name of a trailer.
    TrailerName,
    /// In its value.
    TrailerValue,
    /// Before the LF after it.
    TrailerLf,
    /// Before the LF that ends the body.
    EndLf,
}

impl Chunked {
    /// How many of `bytes` belong to the body if it ends in them. `sink` is given the data.
    pub(super) fn feed<S: ResponseSink>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<Option<usize>, Http1Violation> {
        let mut at = 0;
        while at < bytes.len() {
            if let Place::Data(left) = self.place {
                let here = left.min((bytes.len() - at) as u64);
                sink.body(&bytes[at..at + here as usize]);
                at += here as usize;
                self.framing_bytes = 0;
                self.place = match left - here {
                    0 => {
                        sink.border();
                        Place::DataCr
                    }
                    left => Place::Data(left),
                };
                continue;
            }
            let byte = bytes[at];
            at += 1;
            match self.place.step(byte)? {
                Some(next) => self.place = next,
                None => return Ok(Some(at)),
            }
            self.framing_bytes += 1;
            if self.framing_bytes > SIZE_LINE_BYTES_MAX {
                self.check_framing()?;
            }
        }
        Ok(None)
    }

    /// Whether the framing has become too long, which never happens to a server that means well.
    #[cold]
    fn check_framing(&self) -> Result<(), Http1Violation> {
        if !self.place.is_in_trailer() {
            Err(Http1Violation::ChunkLineTooLarge)
        } else if self.framing_bytes > TRAILER_BYTES_MAX {
            Err(Http1Violation::TrailerTooLarge)
        } else {
            Ok(())
        }
    }
}

impl Place {
    /// Whether the last chunk has come.
    fn is_in_trailer(self) -> bool {
        matches!(
            self,
            Place::TrailerStart
                | Place::TrailerNext
                | Place::TrailerName
                | Place::TrailerValue
                | Place::TrailerLf
                | Place::EndLf
        )
    }

    /// What one byte of framing leads to; `None` at the end of the body.
    fn step(self, byte: u8) -> Result<Option<Place>, Http1Violation> {
        let next = match (self, byte) {
            (Place::SizeStart, _) => Place::Size(digit(0, byte)?),
            (Place::Size(n), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                Place::Size(digit(n, byte)?)
            }
            (Place::Size(n) | Place::SizePadding(n), b' ' | b'\t') => Place::SizePadding(n),
            (Place::Size(n) | Place::SizePadding(n), b';') => Place::Extension(n),
            (Place::Size(n) | Place::SizePadding(n) | Place::Extension(n), b'\r') => {
                Place::SizeLf(n)
            }
            (Place::Size(_) | Place::SizePadding(_), b'\n') => {
                return Err(Http1Violation::ChunkEnd);
            }
            (Place::Size(_) | Place::SizePadding(_), _) => return Err(Http1Violation::ChunkSize),
            (Place::Extension(n), _) if is_text(byte) => Place::Extension(n),
            (Place::SizeLf(0), b'\n') => Place::TrailerStart,
            (Place::SizeLf(n), b'\n') => Place::Data(n),
            (Place::DataCr, b'\r') => Place::DataLf,
            (Place::DataLf, b'\n') => Place::SizeStart,
            (Place::TrailerStart | Place::TrailerNext, b'\r') => Place::EndLf,
            (Place::TrailerStart | Place::TrailerNext | Place::EndLf, b'\n') => {
                return Ok(None);
            }
            (Place::TrailerNext, b' ' | b'\t') => Place::TrailerValue,
            (Place::TrailerStart | Place::TrailerNext, _) if is_token(byte) => Place::TrailerName,
            (Place::TrailerName, b':') => Place::TrailerValue,
            (Place::TrailerName, _) if is_token(byte) => Place::TrailerName,
            (Place::TrailerValue, b'\r') => Place::TrailerLf,
            (Place::TrailerValue | Place::TrailerLf, b'\n') => Place::TrailerNext,
            (Place::TrailerValue, _) if is_text(byte) => Place::TrailerValue,
            (place, _) if place.is_in_trailer() => return Err(Http1Violation::Trailer),
            _ => return Err(Http1Violation::ChunkEnd),
        };
        Ok(Some(next))
    }
}

/// `size` with one more hexadecimal digit; 64 bits must hold it.
fn digit(size: u64, byte: u8) -> Result<u64, Http1Violation> {
    let digit = (byte as char).to_digit(16).ok_or(Http1Violation::ChunkSize)?;
    if size >> 60 != 0 {
        return Err(Http1Violation::ChunkSize);
    }
    Ok(size << 4 | u64::from(digit))
}

/// A byte of a field value: visible, blank, tab or above ASCII (RFC 9110 §5.5).
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// A byte of a token (RFC 9110 §5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
