//! Fields to header blocks (RFC 7541 §6).

use super::table::{DynamicTable, find_static};
use super::{huffman, integer};

/// Whether the peer is to remember a field that is sent in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Indexing {
    /// It becomes the newest entry of the dynamic table (§6.2.1).
    Incremental,
    /// It does not (§6.2.2).
    Without,
}

/// Appends the field of an index (§6.1).
#[inline]
pub(crate) fn put_indexed(out: &mut Vec<u8>, index: usize) {
    integer::write(out, 0x80, 7, index);
}

/// Appends a field in the shortest form without the dynamic table. That is an index of the static
/// one, where it has the whole field, or the value in full.
pub(crate) fn put_field(out: &mut Vec<u8>, name: &[u8], value: &[u8], indexing: Indexing) {
    match find_static(name, value) {
        Some(Ok(index)) => put_indexed(out, index),
        Some(Err(index)) => put_literal(out, index, name, value, indexing),
        None => put_literal(out, 0, name, value, indexing),
    }
}

/// Appends a change of the dynamic table's size (§6.3).
pub(crate) fn put_table_size(out: &mut Vec<u8>, bytes: usize) {
    integer::write(out, 0x20, 5, bytes);
}

/// Appends a field in full, its name by an index unless that is 0.
fn put_literal(out: &mut Vec<u8>, index: usize, name: &[u8], value: &[u8], indexing: Indexing) {
    match indexing {
        Indexing::Incremental => integer::write(out, 0x40, 6, index),
        Indexing::Without => integer::write(out, 0, 4, index),
    }
    if index == 0 {
        put_string(out, name);
    }
    put_string(out, value);
}

/// Appends a string, coded where that is shorter.
fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    let coded = huffman::encoded_len(text);
    if coded < text.len() {
        integer::write(out, 0x80, 7, coded);
        huffman::encode(text, out);
    } else {
        integer::write(out, 0, 7, text.len());
        out.extend_from_slice(text);
    }
}

/// Writes header blocks for one direction of a connection, with every field in the dynamic table.
/// It looks for each field among all entries: for few fields, or where nothing is measured.
#[derive(Debug, Default)]
pub struct Encoder {
    pub(super) table: DynamicTable,
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
