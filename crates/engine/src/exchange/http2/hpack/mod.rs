//! HPACK, the compression of header fields (RFC 7541): fields to header blocks and back. It knows
//! no direction: clients and servers use the same.

mod huffman;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use table::{DynamicTable, STATIC, find_static};
pub(crate) use table::{ENTRY_OVERHEAD, TABLE_BYTES_DEFAULT};

/// What makes a header block unreadable. The state of the table is lost with it, so the connection
/// must end (RFC 9113 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// It ends within a field.
    Cut,
    /// An integer beyond 32 bits.
    Integer,
    /// A string that decodes to EOS.
    HuffmanEos,
    /// A string whose last bits are not fewer than 8 ones.
    HuffmanPadding,
    /// An index that no entry has.
    Index,
    /// A table size above the limit that was set.
    TableSize,
    /// A change of the table size after the first field.
    TableSizeLate,
    /// A table size above a limit that was lowered, as no change was announced.
    TableSizeMissing,
    /// More fields than are taken.
    ListTooLarge,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Cut => "a header block ends within a field (RFC 7541 §3.1)",
            Error::Integer => "an integer of a header block exceeds 32 bits (RFC 7541 §5.1)",
            Error::HuffmanEos => "a Huffman-coded string contains EOS (RFC 7541 §5.2)",
            Error::HuffmanPadding => {
                "a Huffman-coded string is not padded with fewer than 8 one bits (RFC 7541 §5.2)"
            }
            Error::Index => "a header block refers to an index without an entry (RFC 7541 §2.3.3)",
            Error::TableSize => "a dynamic table size exceeds the limit (RFC 7541 §6.3)",
            Error::TableSizeLate => {
                "a dynamic table size update comes after the first field (RFC 7541 §4.2)"
            }
            Error::TableSizeMissing => {
                "no dynamic table size update follows a lowered limit (RFC 7541 §4.2)"
            }
            Error::ListTooLarge => "the header fields exceed 64 KiB (RFC 9113 §10.5.1)",
        })
    }
}

/// The bits of continuation bytes that are read: no length or index needs more.
const SHIFT_MAX: u32 = 28;

/// The integer whose first byte has `prefix` bits of it, and what follows it.
#[inline]
pub(crate) fn read_integer(bytes: &[u8], prefix: u32) -> Result<(usize, &[u8]), Error> {
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
pub(crate) fn write_integer(out: &mut Vec<u8>, first: u8, prefix: u32, value: usize) {
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

/// Whether the peer is to remember a field that is sent in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// It becomes the newest entry of the dynamic table (§6.2.1).
    Incremental,
    /// It does not (§6.2.2).
    Without,
}

/// Appends the field of an index (§6.1).
#[inline]
pub(crate) fn put_indexed(out: &mut Vec<u8>, index: usize) {
    write_integer(out, 0x80, 7, index);
}

/// Appends a field in the shortest form without the dynamic table. That is an index of the static
/// one, where it has the whole field, or the value in full.
pub fn put_field(out: &mut Vec<u8>, name: &[u8], value: &[u8], indexing: Indexing) {
    match find_static(name, value) {
        Some(Ok(index)) => put_indexed(out, index),
        Some(Err(index)) => put_literal(out, index, name, value, indexing),
        None => put_literal(out, 0, name, value, indexing),
    }
}

/// Appends a change of the dynamic table's size (§6.3).
pub fn put_table_size(out: &mut Vec<u8>, bytes: usize) {
    write_integer(out, 0x20, 5, bytes);
}

/// Appends a field in full, its name by an index unless that is 0.
fn put_literal(out: &mut Vec<u8>, index: usize, name: &[u8], value: &[u8], indexing: Indexing) {
    match indexing {
        Indexing::Incremental => write_integer(out, 0x40, 6, index),
        Indexing::Without => write_integer(out, 0, 4, index),
    }
    if index == 0 {
        put_string(out, name);
    }
    put_string(out, value);
}

/// Appends a string, coded where that is shorter.
fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_string_behind(out, 0, 7, text);
}

/// Appends a string, coded where that is shorter. Its length has `prefix` bits in the first byte,
/// the bit before them says whether it is coded, and the others are those of `first`.
pub(crate) fn put_string_behind(out: &mut Vec<u8>, first: u8, prefix: u32, text: &[u8]) {
    let coded = huffman::encoded_len(text);
    if coded < text.len() {
        write_integer(out, first | 1 << prefix, prefix, coded);
        huffman::encode(text, out);
    } else {
        write_integer(out, first, prefix, text.len());
        out.extend_from_slice(text);
    }
}

/// Writes header blocks for one direction of a connection, with every field in the dynamic table.
/// It looks for each field among all entries: for few fields, or where nothing is measured.
#[derive(Debug, Default)]
pub struct Encoder {
    table: DynamicTable,
    /// Sizes that the next block begins with.
    sizes: Vec<usize>,
}

impl Encoder {
    /// Follows the limit that the peer set for the table (RFC 9113 §4.3.1).
    pub fn set_limit(&mut self, bytes: usize) {
        // The least size in between has to be said too (§4.2).
        let least = self.sizes.iter().min().copied().unwrap_or(bytes).min(bytes);
        self.sizes.clear();
        if least < bytes {
            self.sizes.push(least);
        }
        self.sizes.push(bytes);
    }

    /// Appends a field.
    pub fn encode(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        for size in self.sizes.drain(..) {
            self.table.set_max(size);
            put_table_size(out, size);
        }
        let fixed = find_static(name, value);
        let dynamic = self.table.find(name, value);
        let index = match (fixed, dynamic) {
            (Some(Ok(index)), _) | (_, Some(Ok(index))) => return put_indexed(out, index),
            (Some(Err(index)), _) | (None, Some(Err(index))) => index,
            (None, None) => 0,
        };
        put_literal(out, index, name, value, Indexing::Incremental);
        self.table.insert(name, value);
    }
}

/// The room for decoded strings that is kept between header blocks; more is given back.
const SCRATCH_KEPT_BYTES: usize = 4096;

/// The entries that a block adds to the table, where its meaning does not depend on the table. It
/// refers to no entry of the table, and does not set its size.
#[derive(Clone, Debug, Default)]
pub struct Additions {
    texts: Vec<u8>,
    /// The lengths of each name and value.
    lengths: Vec<(u32, u32)>,
}

impl Additions {
    fn clear(&mut self) {
        self.texts.clear();
        self.lengths.clear();
    }

    fn push(&mut self, name: &[u8], value: &[u8]) {
        self.texts.extend_from_slice(name);
        self.texts.extend_from_slice(value);
        self.lengths.push((name.len() as u32, value.len() as u32));
    }
}

/// Reads the header blocks of one direction of a connection, in their order.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// The most that the peer may set the table's size to.
    limit: usize,
    /// The limit was lowered below the table's size, which the next block has to lower too.
    must_shrink: bool,
    name: Vec<u8>,
    value: Vec<u8>,
    /// Of the last block, which says the same whatever the table holds if `is_independent`.
    additions: Additions,
    is_independent: bool,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder {
            table: DynamicTable::default(),
            limit: TABLE_BYTES_DEFAULT,
            must_shrink: false,
            name: Vec::new(),
            value: Vec::new(),
            additions: Additions::default(),
            is_independent: false,
        }
    }
}

impl Decoder {
    /// Sets the most that the peer may set the table's size to, once it has acknowledged the
    /// setting (RFC 9113 §4.3.1).
    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
        self.must_shrink = self.table.max() > bytes;
    }

    /// How often the table has changed. Equal blocks that found the table in the same state and
    /// left it so have equal fields.
    #[inline]
    pub fn changes(&self) -> u32 {
        self.table.changes()
    }

    /// What the last block added; `None`: that depended on the table.
    pub fn additions(&self) -> Option<&Additions> {
        self.is_independent.then_some(&self.additions)
    }

    /// Reads the block again that added this, without its fields. Whether it is one that may come
    /// now.
    #[inline]
    pub fn repeat(&mut self, additions: &Additions) -> bool {
        if self.must_shrink {
            return false;
        }
        let mut rest = &additions.texts[..];
        for &(name, value) in &additions.lengths {
            let (entry, after) = rest.split_at((name + value) as usize);
            let (name, value) = entry.split_at(name as usize);
            self.table.insert(name, value);
            rest = after;
        }
        true
    }

    /// Hands name and value of each field of a whole block to `each`, in order.
    ///
    /// # Errors
    /// See [`Error`]; `list_max` bounds the sum of all fields' sizes, 32 bytes each included
    /// (RFC 9113 §10.5.1). Fields before the fault have been handed out.
    pub fn decode(
        &mut self,
        block: &[u8],
        list_max: usize,
        each: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Error> {
        let mut rest = self.size_updates(block)?;
        self.additions.clear();
        self.is_independent = rest.len() == block.len();
        let mut left = list_max;
        while let Some(&first) = rest.first() {
            let (name, value);
            if first & 0x80 != 0 {
                let (index, after) = read_integer(rest, 7)?;
                self.is_independent &= index <= STATIC.len();
                (name, value) = self.table.get(index).ok_or(Error::Index)?;
                rest = after;
            } else if first & 0xe0 == 0x20 {
                return Err(Error::TableSizeLate);
            } else {
                let is_indexed = first & 0x40 != 0;
                let (index, after) = read_integer(rest, if is_indexed { 6 } else { 4 })?;
                self.is_independent &= index <= STATIC.len();
                if index == 0 {
                    (name, rest) = string(after, &mut self.name)?;
                } else {
                    // The entry may have to go for the new one: it is copied first.
                    let (text, _) = self.table.get(index).ok_or(Error::Index)?;
                    self.name.clear();
                    self.name.extend_from_slice(text);
                    (name, rest) = (&self.name, after);
                }
                (value, rest) = string(rest, &mut self.value)?;
                if is_indexed {
                    self.table.insert(name, value);
                    self.additions.push(name, value);
                }
            }
            let size = name.len() + value.len() + ENTRY_OVERHEAD;
            left = left.checked_sub(size).ok_or(Error::ListTooLarge)?;
            each(name, value);
        }
        self.name.shrink_to(SCRATCH_KEPT_BYTES);
        self.value.shrink_to(SCRATCH_KEPT_BYTES);
        Ok(())
    }

    /// Follows the changes of the table's size that a block begins with; the rest of it.
    #[inline]
    fn size_updates<'b>(&mut self, block: &'b [u8]) -> Result<&'b [u8], Error> {
        let mut rest = block;
        while let Some(first) = rest.first()
            && first & 0xe0 == 0x20
        {
            let (size, after) = read_integer(rest, 5)?;
            if size > self.limit {
                return Err(Error::TableSize);
            }
            self.table.set_max(size);
            self.must_shrink = false;
            rest = after;
        }
        if self.must_shrink { Err(Error::TableSizeMissing) } else { Ok(rest) }
    }
}

/// The string that `bytes` begin with (RFC 7541 §5.2), in `scratch` where it is coded; the rest.
#[inline]
fn string<'b: 's, 's>(
    bytes: &'b [u8],
    scratch: &'s mut Vec<u8>,
) -> Result<(&'s [u8], &'b [u8]), Error> {
    string_behind(bytes, 7, scratch)
}

/// The same for a string whose length has `prefix` bits in the first byte.
#[inline]
pub(crate) fn string_behind<'b: 's, 's>(
    bytes: &'b [u8],
    prefix: u32,
    scratch: &'s mut Vec<u8>,
) -> Result<(&'s [u8], &'b [u8]), Error> {
    let coded = bytes.first().ok_or(Error::Cut)? & 1 << prefix != 0;
    let (length, rest) = read_integer(bytes, prefix)?;
    let (text, rest) = rest.split_at_checked(length).ok_or(Error::Cut)?;
    if !coded {
        return Ok((text, rest));
    }
    scratch.clear();
    huffman::decode(text, scratch)?;
    Ok((scratch, rest))
}

#[cfg(test)]
mod integer_tests {
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
            write_integer(&mut out, 0, prefix, value);
            assert_eq!(out, bytes, "{name}");
            assert_eq!(read_integer(bytes, prefix), Ok((value, &[][..])), "{name}");
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
            assert_eq!(read_integer(bytes, 5), Err(want), "{name}");
        }
        let largest = [31, 0xe0, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(read_integer(&largest, 5), Ok((u32::MAX as usize, &[][..])));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value: u32, prefix in 1u32..=8, after: [u8; 2]) {
            let mut out = Vec::new();
            write_integer(&mut out, 0, prefix, value as usize);
            out.extend(after);
            prop_assert_eq!(read_integer(&out, prefix), Ok((value as usize, &after[..])));
        }
    }
}
