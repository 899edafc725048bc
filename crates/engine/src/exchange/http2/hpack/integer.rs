//! Integers with a prefix (RFC 7541 §5.1).

use super::Error;

/// The bits of continuation bytes that are read: no length or index needs more.
const SHIFT_MAX: u32 = 28;

/// The integer whose first byte has `prefix` bits of it, and what follows it.
#[inline]
pub(super) fn read(bytes: &[u8], prefix: u32) -> Result<(usize, &[u8]), Error> {
    let (&first, rest) = bytes.split_first().ok_or(Error::Cut)?;
    let max = (1 << prefix) - 1;
    let value = usize::from(first) & max;
    if value < max { Ok((value, rest)) } else { read_long(max, rest) }
}

#[cold]
fn read_long(mut value: usize, mut rest: &[u8]) -> Result<(usize, &[u8]), Error> {
    let mut shift = 0;
    loop {
        let (&byte, after) = rest.split_first().ok_or(Error::Cut)?;
        rest = after;
        // At most 35 bits and the prefix, which 64 bits hold.
        let here = u64::from(byte & 0x7f) << shift;
        let sum = here + value as u64;
        value = u32::try_from(sum).map_err(|_| Error::Integer)? as usize;
        if byte & 0x80 == 0 {
            return Ok((value, rest));
        }
        shift += 7;
        if shift > SHIFT_MAX {
            return Err(Error::Integer);
        }
    }
}

/// Appends `value` with `prefix` bits in the first byte, whose other bits are those of `first`.
#[inline]
pub(super) fn write(out: &mut Vec<u8>, first: u8, prefix: u32, value: usize) {
    let max = (1 << prefix) - 1;
    if value < max {
        out.push(first | value as u8);
        return;
    }
    out.push(first | max as u8);
    let mut left = value - max;
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn examples_of_the_rfc() {
        for (name, value, prefix, bytes) in [
            ("C.1.1", 10, 5, &[0b01010][..]),
            ("C.1.2", 1337, 5, &[0b11111, 154, 10]),
            ("C.1.3", 42, 8, &[42]),
        ] {
            let mut out = Vec::new();
            write(&mut out, 0, prefix, value);
            assert_eq!(out, bytes, "{name}");
            assert_eq!(read(bytes, prefix), Ok((value, &[][..])), "{name}");
        }
    }

    #[test]
    fn refused() {
        for (name, bytes, want) in [
            ("nothing", &[][..], Error::Cut),
            ("no end", &[31, 0x80], Error::Cut),
            ("beyond 32 bits", &[31, 255, 255, 255, 255, 127], Error::Integer),
            ("zeros without end", &[31, 128, 128, 128, 128, 128, 0], Error::Integer),
        ] {
            assert_eq!(read(bytes, 5), Err(want), "{name}");
        }
        let largest = [31, 0xe0, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(read(&largest, 5), Ok((u32::MAX as usize, &[][..])));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value: u32, prefix in 1u32..=8, after: [u8; 2]) {
            let mut out = Vec::new();
            write(&mut out, 0, prefix, value as usize);
            out.extend(after);
            prop_assert_eq!(read(&out, prefix), Ok((value as usize, &after[..])));
        }
    }
}
