//! The static and the dynamic table (RFC 7541 §2.3, Appendix A).

use std::collections::VecDeque;

/// The static table, whose first index is 1.
pub(super) static STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// What an entry takes beyond its strings (RFC 7541 §4.1).
pub(crate) const ENTRY_OVERHEAD: usize = 32;

/// The dynamic table's size until the decoding side says otherwise (RFC 9113 §6.5.2).
pub(crate) const TABLE_BYTES_DEFAULT: usize = 4096;

/// The index in the static table of a field, or of its name alone: `Ok` where the value is equal
/// too.
pub(super) fn find_static(name: &[u8], value: &[u8]) -> Option<Result<usize, usize>> {
    let first = STATIC.iter().position(|(n, _)| n.as_bytes() == name)?;
    let same_name = STATIC[first..].iter().take_while(|(n, _)| n.as_bytes() == name);
    let whole = same_name.map(|(_, v)| v.as_bytes()).position(|v| v == value);
    Some(match whole {
        Some(at) if !value.is_empty() => Ok(first + at + 1),
        _ => Err(first + 1),
    })
}

/// The dynamic table. Its strings lie in one buffer, one entry after the other, so that nothing is
/// allocated per entry.
#[derive(Debug)]
pub(super) struct DynamicTable {
    bytes: Vec<u8>,
    /// The newest first.
    entries: VecDeque<Entry>,
    /// The sum of all entries' sizes, at most `max`.
    size: usize,
    max: usize,
    /// How often the table has changed, so that what is known of one state is known to hold.
    changes: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u32,
    name: u32,
    value: u32,
}

impl Entry {
    fn size(self) -> usize {
        (self.name + self.value) as usize + ENTRY_OVERHEAD
    }
}

impl Default for DynamicTable {
    fn default() -> DynamicTable {
        DynamicTable {
            bytes: Vec::new(),
            entries: VecDeque::new(),
            size: 0,
            max: TABLE_BYTES_DEFAULT,
            changes: 0,
        }
    }
}

impl DynamicTable {
    /// Name and value of an index of both tables together (RFC 7541 §2.3.3).
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let at = index.checked_sub(1)?;
        if let Some((name, value)) = STATIC.get(at) {
            return Some((name.as_bytes(), value.as_bytes()));
        }
        let entry = self.entries.get(at - STATIC.len())?;
        let strings = &self.bytes[entry.at as usize..][..(entry.name + entry.value) as usize];
        Some(strings.split_at(entry.name as usize))
    }

    /// Adds an entry; the oldest make room for it. One larger than the table empties it
    /// (RFC 7541 §4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        self.changes = self.changes.wrapping_add(1);
        let length = name.len() + value.len();
        self.shrink_to((self.max + 1).saturating_sub(length + ENTRY_OVERHEAD));
        if length + ENTRY_OVERHEAD > self.max {
            return;
        }
        // At least as much is added between two moves as is moved.
        if self.bytes.len() + length > 2 * self.max {
            self.move_to_front();
        }
        let entry = Entry {
            at: self.bytes.len() as u32,
            name: name.len() as u32,
            value: value.len() as u32,
        };
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.entries.push_front(entry);
        self.size += entry.size();
    }

    /// Sets the most that the sum of all entries' sizes may be.
    pub(super) fn set_max(&mut self, max: usize) {
        self.changes = self.changes.wrapping_add(1);
        self.max = max;
        self.shrink_to(max + 1);
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// The sum of all entries' sizes.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn changes(&self) -> u32 {
        self.changes
    }

    /// The index of an entry, or of one with the name alone: `Ok` where the value is equal too.
    pub(super) fn find(&self, name: &[u8], value: &[u8]) -> Option<Result<usize, usize>> {
        let mut of_name = None;
        for index in STATIC.len() + 1..=STATIC.len() + self.entries.len() {
            match self.get(index) {
                Some((n, v)) if n == name && v == value => return Some(Ok(index)),
                Some((n, _)) if n == name => of_name = of_name.or(Some(Err(index))),
                _ => {}
            }
        }
        of_name
    }

    /// Drops the oldest until the size is below `bound`, or nothing is left.
    fn shrink_to(&mut self, bound: usize) {
        while self.size >= bound
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.size();
        }
    }

    fn move_to_front(&mut self) {
        let start = self.entries.back().map_or(self.bytes.len() as u32, |oldest| oldest.at);
        self.bytes.drain(..start as usize);
        for entry in &mut self.entries {
            entry.at -= start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(table: &DynamicTable) -> Vec<String> {
        let dynamic = (62..).map_while(|index| table.get(index));
        let shown = dynamic.map(|(n, v)| format!("{}={}", n.escape_ascii(), v.escape_ascii()));
        shown.collect()
    }

    #[test]
    fn indices() {
        let mut table = DynamicTable::default();
        assert_eq!(table.get(0), None);
        assert_eq!(table.get(1), Some((&b":authority"[..], &b""[..])));
        assert_eq!(table.get(61), Some((&b"www-authenticate"[..], &b""[..])));
        assert_eq!(table.get(62), None);
        table.insert(b"a", b"1");
        table.insert(b"b", b"2");
        assert_eq!(entries(&table), ["b=2", "a=1"], "the newest first");
        assert_eq!(table.find(b"a", b"1"), Some(Ok(63)));
        assert_eq!(table.find(b"b", b"3"), Some(Err(62)));
        assert_eq!(table.find(b"c", b""), None);
    }

    #[test]
    fn of_the_static_table() {
        for (name, field, want) in [
            ("a whole field", (":method", "POST"), Some(Ok(3))),
            ("a name with another value", (":method", "PUT"), Some(Err(2))),
            ("a name alone", ("accept", "*/*"), Some(Err(19))),
            ("a name without a value there", ("accept", ""), Some(Err(19))),
            ("neither", ("x", ""), None),
        ] {
            assert_eq!(find_static(field.0.as_bytes(), field.1.as_bytes()), want, "{name}");
        }
    }

    #[test]
    fn the_oldest_make_room() {
        let mut table = DynamicTable::default();
        table.set_max(3 * 34);
        for name in [b"a", b"b", b"c"] {
            table.insert(name, b"1");
        }
        assert_eq!(table.size, 102, "exactly full");
        table.insert(b"d", b"1");
        assert_eq!(entries(&table), ["d=1", "c=1", "b=1"]);
        table.insert(b"e", b"12");
        assert_eq!(entries(&table), ["e=12", "d=1"], "a byte more costs an entry more");
        table.set_max(34);
        assert_eq!(entries(&table), [""; 0], "smaller than the newest");
        table.insert(b"f", b"1");
        assert_eq!(entries(&table), ["f=1"]);
        table.insert(b"g", b"12");
        assert_eq!(entries(&table), [""; 0], "an entry larger than the table empties it");
        assert_eq!(table.size, 0);
        table.set_max(0);
        table.insert(b"", b"");
        assert_eq!(entries(&table), [""; 0]);
    }

    #[test]
    fn bounded_however_much_passes_through() {
        let mut table = DynamicTable::default();
        for n in 0..10_000 {
            let value = format!("{n:05}").repeat(n % 50);
            table.insert(b"name", value.as_bytes());
            assert!(table.bytes.len() <= 2 * table.max && table.size <= table.max);
            assert_eq!(table.get(62), Some((&b"name"[..], value.as_bytes())));
            let sum: usize = table.entries.iter().map(|e| e.size()).sum();
            assert_eq!(sum, table.size);
        }
        assert!(table.bytes.capacity() <= 4 * table.max);
    }
}
