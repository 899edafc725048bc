//! The chunked transfer coding (RFC 9112 §7.1): where it ends, the data left aside.

use super::Violation;

/// Where in a chunked body the stream is. Nothing of it is kept, so nothing of it needs a limit.
///
/// Lines of the framing must end in CRLF; trailer lines, as header lines, may end in LF alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Chunked {
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
    /// In the data, of which so many bytes are left.
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
    /// How many of `bytes` belong to the body if it ends in them. `data` is given the data.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        mut data: impl FnMut(&[u8]),
    ) -> Result<Option<usize>, Violation> {
        let mut at = 0;
        while at < bytes.len() {
            if let Chunked::Data(left) = *self {
                let here = left.min((bytes.len() - at) as u64);
                data(&bytes[at..at + here as usize]);
                at += here as usize;
                *self = match left - here {
                    0 => Chunked::DataCr,
                    left => Chunked::Data(left),
                };
                continue;
            }
            let byte = bytes[at];
            at += 1;
            match self.step(byte)? {
                Some(next) => *self = next,
                None => return Ok(Some(at)),
            }
        }
        Ok(None)
    }

    /// What one byte of framing leads to; `None` at the end of the body.
    fn step(self, byte: u8) -> Result<Option<Chunked>, Violation> {
        let next = match (self, byte) {
            (Chunked::SizeStart, _) => Chunked::Size(digit(0, byte)?),
            (Chunked::Size(n), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                Chunked::Size(digit(n, byte)?)
            }
            (Chunked::Size(n) | Chunked::SizePadding(n), b' ' | b'\t') => Chunked::SizePadding(n),
            (Chunked::Size(n) | Chunked::SizePadding(n), b';') => Chunked::Extension(n),
            (Chunked::Size(n) | Chunked::SizePadding(n) | Chunked::Extension(n), b'\r') => {
                Chunked::SizeLf(n)
            }
            (Chunked::Size(_) | Chunked::SizePadding(_), b'\n') => return Err(Violation::ChunkEnd),
            (Chunked::Size(_) | Chunked::SizePadding(_), _) => return Err(Violation::ChunkSize),
            (Chunked::Extension(n), _) if is_text(byte) => Chunked::Extension(n),
            (Chunked::SizeLf(0), b'\n') => Chunked::TrailerStart,
            (Chunked::SizeLf(n), b'\n') => Chunked::Data(n),
            (Chunked::DataCr, b'\r') => Chunked::DataLf,
            (Chunked::DataLf, b'\n') => Chunked::SizeStart,
            (Chunked::TrailerStart | Chunked::TrailerNext, b'\r') => Chunked::EndLf,
            (Chunked::TrailerStart | Chunked::TrailerNext | Chunked::EndLf, b'\n') => {
                return Ok(None);
            }
            (Chunked::TrailerNext, b' ' | b'\t') => Chunked::TrailerValue,
            (Chunked::TrailerStart | Chunked::TrailerNext, _) if is_token(byte) => {
                Chunked::TrailerName
            }
            (Chunked::TrailerName, b':') => Chunked::TrailerValue,
            (Chunked::TrailerName, _) if is_token(byte) => Chunked::TrailerName,
            (Chunked::TrailerValue, b'\r') => Chunked::TrailerLf,
            (Chunked::TrailerValue | Chunked::TrailerLf, b'\n') => Chunked::TrailerNext,
            (Chunked::TrailerValue, _) if is_text(byte) => Chunked::TrailerValue,
            (
                Chunked::TrailerStart
                | Chunked::TrailerNext
                | Chunked::TrailerName
                | Chunked::TrailerValue
                | Chunked::TrailerLf
                | Chunked::EndLf,
                _,
            ) => return Err(Violation::Trailer),
            _ => return Err(Violation::ChunkEnd),
        };
        Ok(Some(next))
    }
}

/// `size` with one more hexadecimal digit; 64 bits must hold it.
fn digit(size: u64, byte: u8) -> Result<u64, Violation> {
    let digit = (byte as char).to_digit(16).ok_or(Violation::ChunkSize)?;
    if size >> 60 != 0 {
        return Err(Violation::ChunkSize);
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
