//! A stream of HTTP/3 has the same frames wherever it is cut. A field section reads twice the same,
//! and what was read can be written and reads back. Nothing panics.

use knee_engine::exchange::http2::fields::Section;
use knee_engine::exchange::http3::Http3Violation;
use knee_engine::exchange::http3::frame::{self, FramePiece, FrameReader, FrameStream, kind};
use knee_engine::exchange::http3::qpack::{self, PREFIX, QpackError, SectionDecoder};

/// Says nothing of its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Nothing;

impl Section for Nothing {
    fn take(&mut self, _: &[u8], _: &[u8]) {}
}

/// Whole frames, content, and the fault at the end, if any.
type Read = (Vec<(u64, Vec<u8>)>, Vec<u8>, Option<Http3Violation>);

/// The first byte says what the rest is: a request, a control stream, a field section or
/// instructions of QPACK; and the length of the pieces of a stream.
pub fn check(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else {
        return;
    };
    let piece = usize::from(choice >> 2) + 1;
    match choice & 3 {
        0 => check_frames(FrameStream::Request, rest, piece),
        1 => check_frames(FrameStream::Control, rest, piece),
        2 => check_section(rest),
        _ => check_instructions(rest, piece),
    }
}

fn check_frames(on: FrameStream, stream: &[u8], piece: usize) {
    let whole = read(on, stream, stream.len().max(1));
    assert_eq!(read(on, stream, piece), whole);
    for (frame_kind, payload) in &whole.0 {
        if *frame_kind == kind::SETTINGS {
            let _ = frame::read_settings(payload, &mut |_, _| {});
        }
        let _ = frame::only_varint(payload);
    }
}

fn read(on: FrameStream, stream: &[u8], piece: usize) -> Read {
    let mut reader = FrameReader::new(on);
    let (mut frames, mut content) = (Vec::new(), Vec::new());
    for mut bytes in stream.chunks(piece) {
        loop {
            match reader.next(&mut bytes) {
                Ok(Some(FramePiece::Whole { kind, payload })) => {
                    frames.push((kind, payload.to_vec()));
                }
                Ok(Some(FramePiece::Data { bytes, .. })) => content.extend_from_slice(bytes),
                Ok(None) => break,
                Err(violation) => return (frames, content, Some(violation)),
            }
        }
    }
    (frames, content, None)
}

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn fields(decoder: &mut SectionDecoder<Nothing>, section: &[u8]) -> Result<Fields, QpackError> {
    let mut fields = Vec::new();
    decoder.read_into(section, &mut |_, name, value| {
        fields.push((name.to_vec(), value.to_vec()));
    })?;
    Ok(fields)
}

fn check_section(section: &[u8]) {
    let mut decoder = SectionDecoder::default();
    let first = fields(&mut decoder, section);
    assert_eq!(decoder.read(section).err(), first.as_ref().err().copied());
    assert_eq!(fields(&mut decoder, section), first);
    if let Ok(read) = first {
        let mut written = PREFIX.to_vec();
        for (name, value) in &read {
            qpack::put_field(&mut written, name, value);
        }
        assert_eq!(fields(&mut decoder, &written), Ok(read));
    }
}

fn check_instructions(bytes: &[u8], piece: usize) {
    let whole = qpack::read_decoder(bytes, &mut false);
    let mut is_within = false;
    let cut: Result<(), _> =
        bytes.chunks(piece).try_for_each(|bytes| qpack::read_decoder(bytes, &mut is_within));
    assert_eq!(cut, whole);
    let cut: Result<(), _> = bytes.chunks(piece).try_for_each(qpack::read_encoder);
    assert_eq!(cut, qpack::read_encoder(bytes));
}
