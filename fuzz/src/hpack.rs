//! Any header blocks lead to the same fields whatever else is known, or to the same fault. What was
//! read can be written and reads back. Nothing panics.

use knee_engine::exchange::http2::hpack::{Decoder, Encoder, Error};

const LIST_BYTES_MAX: usize = 64 << 10;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// The first byte says how large the table may be. Of the rest, each block follows its
/// length.
pub fn check(data: &[u8]) {
    let Some((&choice, mut rest)) = data.split_first() else {
        return;
    };
    let (mut decoder, mut again) = (Decoder::default(), Decoder::default());
    let (mut encoder, mut back) = (Encoder::default(), Decoder::default());
    if choice & 1 == 1 {
        let limit = usize::from(choice) * 16;
        encoder.set_limit(limit);
        back.set_limit(limit);
    }
    while let Some((&length, after)) = rest.split_first() {
        let (block, next) = after.split_at(after.len().min(usize::from(length)));
        rest = next;
        let fields = fields(&mut decoder, block);
        assert_eq!(self::fields(&mut again, block), fields);
        let Ok(fields) = fields else {
            return;
        };
        let mut written = Vec::new();
        for (name, value) in &fields {
            encoder.encode(name, value, &mut written);
        }
        if !fields.is_empty() {
            assert_eq!(self::fields(&mut back, &written), Ok(fields));
        }
    }
}

fn fields(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, Error> {
    let mut fields = Vec::new();
    let mut each = |name: &[u8], value: &[u8]| fields.push((name.to_vec(), value.to_vec()));
    decoder.decode(block, LIST_BYTES_MAX, &mut each)?;
    Ok(fields)
}
