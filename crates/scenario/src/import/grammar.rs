//! Small grammars that several formats share.

/// Where the lines of a text begin, in bytes.
#[derive(Debug)]
pub(super) struct LineStarts(Vec<usize>);

impl LineStarts {
    pub(super) fn of(text: &str) -> LineStarts {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        LineStarts(std::iter::once(0).chain(ends).collect())
    }

    /// The number of the line with this byte.
    pub(super) fn line(&self, at: usize) -> usize {
        self.0.partition_point(|start| *start <= at)
    }
}

/// A name as a part of a JSON Pointer (RFC 6901 §3).
pub(super) fn pointer_part(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Ascending statuses as ranges, both ends included.
pub(super) fn status_ranges(statuses: impl Iterator<Item = u16>) -> Vec<(u16, u16)> {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for status in statuses {
        match ranges.last_mut() {
            Some((_, high)) if *high + 1 == status => *high = status,
            _ => ranges.push((status, status)),
        }
    }
    ranges
}
