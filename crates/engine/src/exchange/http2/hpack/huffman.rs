//! The Huffman code of strings (RFC 7541 §5.2 and Appendix B).
//!
//! The code is canonical: of equally long codes, that of the smaller symbol is smaller, and each
//! length continues where the one before it ended. So the lengths say everything.

use super::Error;

/// The length of each symbol's code in bits; the last one is EOS.
const BITS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

const EOS: u16 = 256;
const BITS_MAX: usize = 30;

/// Length of codes that are looked up in one step, in bits. Nearly all text has such codes.
const QUICK_BITS: u32 = 8;

struct Code {
    /// The code of each symbol, in its lowest bits.
    codes: [u32; 257],
    /// For each value of the next [`QUICK_BITS`] bits: symbol << 4 | length, 0 where the code is
    /// longer.
    quick: [u16; 1 << QUICK_BITS],
    /// The symbols in the order of their codes.
    symbols: [u16; 257],
    /// For each length, the first code beyond those of this length or shorter ones, in the highest
    /// of 32 bits.
    beyond: [u64; BITS_MAX + 1],
    /// For each length, the number of symbols with shorter codes less the first code of the length.
    offset: [i64; BITS_MAX + 1],
}

static CODE: Code = code();

const fn code() -> Code {
    let mut made = Code {
        codes: [0; 257],
        quick: [0; 1 << QUICK_BITS],
        symbols: [0; 257],
        beyond: [0; BITS_MAX + 1],
        offset: [0; BITS_MAX + 1],
    };
    let (mut bits, mut next, mut count) = (1, 0_u32, 0);
    while bits <= BITS_MAX {
        next <<= 1;
        made.offset[bits] = count as i64 - next as i64;
        let mut symbol = 0;
        while symbol < 257 {
            if BITS[symbol] as usize == bits {
                made.codes[symbol] = next;
                made.symbols[count] = symbol as u16;
                if bits <= QUICK_BITS as usize {
                    let free = QUICK_BITS as usize - bits;
                    let mut low = 0;
                    while low < 1 << free {
                        made.quick[(next as usize) << free | low] = (symbol << 4 | bits) as u16;
                        low += 1;
                    }
                }
                next += 1;
                count += 1;
            }
            symbol += 1;
        }
        made.beyond[bits] = (next as u64) << (32 - bits);
        bits += 1;
    }
    made
}

/// Appends what `bytes` stand for to `out`.
pub(super) fn decode(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    // A code has at least 5 bits.
    out.reserve(bytes.len() * 8 / 5);
    // The next bits lie highest; below the `held` real ones are ones, which continue no code that
    // is not EOS.
    let (mut window, mut held) = (u64::MAX, 0_u32);
    let mut rest = bytes;
    loop {
        while held <= 56
            && let Some((&byte, after)) = rest.split_first()
        {
            let at = 56 - held;
            window &= !(0xff << at) | u64::from(byte) << at;
            held += 8;
            rest = after;
        }
        let (symbol, bits) = next_symbol(window);
        if bits > held {
            return check_padding(window, held);
        }
        if symbol == EOS {
            return Err(Error::HuffmanEos);
        }
        out.push(symbol as u8);
        window = window << bits | ((1 << bits) - 1);
        held -= bits;
    }
}

#[inline]
fn next_symbol(window: u64) -> (u16, u32) {
    let quick = CODE.quick[(window >> (64 - QUICK_BITS)) as usize];
    if quick != 0 {
        return (quick >> 4, u32::from(quick & 15));
    }
    let top = window >> 32;
    let mut bits = QUICK_BITS as usize + 1;
    while bits < BITS_MAX && top >= CODE.beyond[bits] {
        bits += 1;
    }
    let index = (top >> (32 - bits)) as i64 + CODE.offset[bits];
    // All prefixes of 30 bits that are no shorter code lie in the range.
    (CODE.symbols[index as usize], bits as u32)
}

/// What is left must be fewer than 8 bits, all ones (RFC 7541 §5.2).
fn check_padding(window: u64, held: u32) -> Result<(), Error> {
    match held {
        0 => Ok(()),
        1..8 if window >> (64 - held) == (1 << held) - 1 => Ok(()),
        _ => Err(Error::HuffmanPadding),
    }
}

/// How many bytes [`encode`] appends for `text`.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&b| usize::from(BITS[usize::from(b)])).sum();
    bits.div_ceil(8)
}

/// Appends the code of `text` to `out`.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut window, mut held) = (0_u64, 0);
    for &byte in text {
        let bits = u32::from(BITS[usize::from(byte)]);
        window = window << bits | u64::from(CODE.codes[usize::from(byte)]);
        held += bits;
        while held >= 8 {
            held -= 8;
            out.push((window >> held) as u8);
        }
    }
    if held > 0 {
        out.push((window << (8 - held)) as u8 | 0xff >> held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        decode(bytes, &mut out).map(|()| out)
    }

    /// Codes of Appendix B, of every length, as the RFC prints them.
    #[test]
    fn codes_are_those_of_the_rfc() {
        for (symbol, bits, code) in [
            (b'0', 5, 0x0),
            (b't', 5, 0x9),
            (b' ', 6, 0x14),
            (b'u', 6, 0x2d),
            (b':', 7, 0x5c),
            (b'z', 7, 0x7b),
            (b'&', 8, 0xf8),
            (b'Z', 8, 0xfd),
            (b'!', 10, 0x3f8),
            (b'?', 10, 0x3fc),
            (b'\'', 11, 0x7fa),
            (b'|', 11, 0x7fc),
            (b'#', 12, 0xffa),
            (b'>', 12, 0xffb),
            (0, 13, 0x1ff8),
            (b'~', 13, 0x1ffd),
            (b'^', 14, 0x3ffc),
            (b'<', 15, 0x7ffc),
            (b'\\', 19, 0x7fff0),
            (128, 20, 0xfffe6),
            (153, 21, 0x1fffdc),
            (129, 22, 0x3fffd2),
            (1, 23, 0x7fffd8),
            (9, 24, 0xffffea),
            (199, 25, 0x1ffffec),
            (192, 26, 0x3ffffe0),
            (203, 27, 0x7ffffde),
            (249, 28, 0xffffffe),
            (10, 30, 0x3ffffffc),
            (22, 30, 0x3ffffffe),
        ] {
            assert_eq!(BITS[usize::from(symbol)], bits, "{symbol}");
            assert_eq!(CODE.codes[usize::from(symbol)], code, "{symbol}");
        }
        assert_eq!(CODE.codes[usize::from(EOS)], 0x3fff_ffff);
    }

    #[test]
    fn strings_of_the_rfc() {
        for (text, code) in [
            ("www.example.com", &b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..]),
            ("no-cache", b"\xa8\xeb\x10\x64\x9c\xbf"),
            ("307", b"\x64\x0e\xff"),
            ("", b""),
        ] {
            let mut out = Vec::new();
            encode(text.as_bytes(), &mut out);
            assert_eq!(out, code, "{text}");
            assert_eq!(encoded_len(text.as_bytes()), code.len(), "{text}");
            assert_eq!(decoded(code).as_deref(), Ok(text.as_bytes()));
        }
    }

    #[test]
    fn padding_is_fewer_than_8_ones() {
        let padding = Err(Error::HuffmanPadding);
        // '0' is five zeros.
        for (name, bytes, want) in [
            ("three ones", &[0x07][..], Ok(b"0".to_vec())),
            ("none", b"", Ok(Vec::new())),
            ("a zero among them", &[0x06], padding.clone()),
            ("zeros", &[0x00], padding.clone()),
            ("eight ones", &[0x07, 0xff], padding.clone()),
            ("eight ones alone", &[0xff], padding.clone()),
            ("30 ones: EOS", &[0xff; 4], Err(Error::HuffmanEos)),
            ("EOS after a symbol", &[0x07, 0xff, 0xff, 0xff, 0xff], Err(Error::HuffmanEos)),
            ("27 ones", &[0x07, 0xff, 0xff, 0xff], padding),
        ] {
            assert_eq!(decoded(bytes), want, "{name}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes(text: Vec<u8>) {
            let mut out = Vec::new();
            encode(&text, &mut out);
            prop_assert_eq!(out.len(), encoded_len(&text));
            prop_assert_eq!(decoded(&out), Ok(text));
        }

        /// The code is complete, so that any bytes that decode are those that encoding gives.
        #[test]
        fn nothing_else_decodes(bytes in proptest::collection::vec(0u8.., 0..12)) {
            if let Ok(text) = decoded(&bytes) {
                let mut out = Vec::new();
                encode(&text, &mut out);
                prop_assert_eq!(out, bytes);
            }
        }
    }
}
