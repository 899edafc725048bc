//! Header blocks to fields (RFC 7541 §3).

use super::table::{DynamicTable, ENTRY_OVERHEAD, STATIC, TABLE_BYTES_DEFAULT};
use super::{Error, huffman, integer};

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
    pub(super) table: DynamicTable,
    /// The most that the peer may set the table's size to.
    limit: usize,
    /// The limit was lowered below the table's size, which the next block has to lower too.
    pub(super) must_shrink: bool,
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
                let (index, after) = integer::read(rest, 7)?;
                self.is_independent &= index <= STATIC.len();
                (name, value) = self.table.get(index).ok_or(Error::Index)?;
                rest = after;
            } else if first & 0xe0 == 0x20 {
                return Err(Error::TableSizeLate);
            } else {
                let is_indexed = first & 0x40 != 0;
                let (index, after) = integer::read(rest, if is_indexed { 6 } else { 4 })?;
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
            let (size, after) = integer::read(rest, 5)?;
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
    let coded = bytes.first().ok_or(Error::Cut)? & 0x80 != 0;
    let (length, rest) = integer::read(bytes, 7)?;
    let (text, rest) = rest.split_at_checked(length).ok_or(Error::Cut)?;
    if !coded {
        return Ok((text, rest));
    }
    scratch.clear();
    huffman::decode(text, scratch)?;
    Ok((scratch, rest))
}
