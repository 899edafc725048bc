//! HPACK, the compression of header fields (RFC 7541). It knows no direction: clients and servers
//! use the same.

mod decoder;
mod encoder;
mod huffman;
mod integer;
mod table;
#[cfg(test)]
mod tests;

pub use decoder::{Additions, Decoder};
pub use encoder::Encoder;
pub(crate) use encoder::{Indexing, put_field, put_indexed, put_table_size};
pub(crate) use table::{ENTRY_OVERHEAD, TABLE_BYTES_DEFAULT};

use std::fmt;

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
