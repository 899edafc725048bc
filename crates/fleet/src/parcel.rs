//! Values that are larger than a message: compressed JSON in pieces.

use bytes::Bytes;
use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use knee_load::spec::{Body, TrialSpec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read};
use std::sync::Arc;

/// Size of a piece. The default limit of NATS is 1 MiB per message.
pub(crate) const PIECE_BYTES: usize = 512 * 1024;

/// Limit of an unpacked parcel, as protection against malformed input.
const UNPACKED_MAX: u64 = 4 << 30;

/// Packs a value into pieces, at least one.
///
/// # Errors
/// The value cannot be written as JSON.
pub(crate) fn pack(value: &impl Serialize) -> io::Result<Vec<Bytes>> {
    let json = serde_json::to_vec(value)?;
    let mut packed = Vec::new();
    ZlibEncoder::new(&json[..], Compression::fast()).read_to_end(&mut packed)?;
    let packed = Bytes::from(packed);
    let piece = |from| packed.slice(from..packed.len().min(from + PIECE_BYTES));
    Ok((0..packed.len()).step_by(PIECE_BYTES).map(piece).collect())
}

/// Unpacks a value from its pieces, in order.
///
/// # Errors
/// The pieces do not contain such a value.
pub(crate) fn unpack<T: DeserializeOwned>(pieces: &[Bytes]) -> io::Result<T> {
    let packed = pieces.concat();
    let mut json = Vec::new();
    let mut unpacked = ZlibDecoder::new(&packed[..]).take(UNPACKED_MAX);
    unpacked.read_to_end(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}

/// Formats the header of a piece: its number from 0 and the number of pieces, such as `2/7`.
pub(crate) fn piece_words(piece: usize, count: usize) -> String {
    format!("{piece}/{count}")
}

/// Reads [`piece_words`].
pub(crate) fn parse_piece(words: &str) -> Option<(usize, usize)> {
    let (piece, count) = words.split_once('/')?;
    let (piece, count) = (piece.parse().ok()?, count.parse().ok()?);
    (piece < count && count <= 1 << 16).then_some((piece, count))
}

/// Pieces that come in any order, some of them twice.
#[derive(Debug, Default)]
pub(crate) struct ParcelPieces {
    held: Vec<Option<Bytes>>,
}

impl ParcelPieces {
    /// Adds a piece.
    pub(crate) fn put(&mut self, (piece, count): (usize, usize), bytes: Bytes) {
        if self.held.len() != count {
            self.held = vec![None; count];
        }
        self.held[piece] = Some(bytes);
    }

    /// Takes all pieces, if they are complete.
    pub(crate) fn take(&mut self) -> Option<Vec<Bytes>> {
        let is_complete = !self.held.is_empty() && self.held.iter().all(Option::is_some);
        is_complete.then(|| self.held.drain(..).flatten().collect())
    }
}

/// The spec without headers, bodies, queries, data and values of templates: they may be secrets,
/// and no figure depends on them.
pub(crate) fn outline(spec: &TrialSpec) -> TrialSpec {
    let mut spec = spec.clone();
    for request in &mut spec.target.requests {
        request.headers.clear();
        request.holes.clear();
        request.body = Body::default();
        if let Some(query) = request.path.find('?') {
            request.path.truncate(query);
        }
    }
    if let Some(plan) = &mut spec.target.sessions {
        let plan = Arc::make_mut(plan);
        plan.data.clear();
        for step in &mut plan.requests {
            step.fills.clear();
            step.expect.clear();
            step.extract.clear();
        }
        for kind in &mut plan.kinds {
            kind.data.clear();
            kind.program.clear();
            kind.repetitions.clear();
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked_in_any_order() {
        let mut state = 1_u64;
        let value: Vec<u64> = (0..400_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state
            })
            .collect();
        let packed = pack(&value).unwrap();
        assert!(packed.len() > 3 && packed.iter().all(|p| p.len() <= PIECE_BYTES));
        let mut pieces = ParcelPieces::default();
        for n in [1, 1].into_iter().chain((0..packed.len()).rev()) {
            assert_eq!(pieces.take(), None);
            let words = parse_piece(&piece_words(n, packed.len())).unwrap();
            pieces.put(words, packed[n].clone());
        }
        let unpacked: Vec<u64> = unpack(&pieces.take().unwrap()).unwrap();
        assert_eq!(unpacked, value);
    }

    #[test]
    fn rubbish_is_no_parcel() {
        assert!(unpack::<u64>(&[Bytes::from_static(b"rubbish")]).is_err());
        for words in ["", "1", "1/1", "/2", "0/0", "0/99999999", "-1/2"] {
            assert_eq!(parse_piece(words), None, "{words}");
        }
    }
}
