//! The HdrHistogram interval log, version 1.3: what HistogramLogProcessor and its viewers open.
//!
//! Values are nanoseconds, and so is the log's column of maxima, which its readers leave out.

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};
use knee_core::measure::Histogram;
use std::io;
use std::time::{Duration, SystemTime};

/// Writes the log, interval by interval.
pub struct HdrLog<W: io::Write> {
    out: W,
    serializer: V2DeflateSerializer,
}

impl<W: io::Write> HdrLog<W> {
    /// Begins a log: the times of its intervals count from `start`.
    ///
    /// # Errors
    ///
    /// Only those of `out`.
    pub fn begin(mut out: W, start: SystemTime, comment: &str) -> io::Result<HdrLog<W>> {
        let mut serializer = V2DeflateSerializer::new();
        IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment(comment)
            .with_start_time(start)
            .with_base_time(start)
            .begin_log_with(&mut out, &mut serializer)?;
        writeln!(
            out,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
             \"Interval_Compressed_Histogram\""
        )?;
        Ok(HdrLog { out, serializer })
    }

    /// Writes an interval that began so long after the log's start, and flushes it, so that what
    /// follows cannot take it along. `trial`: what it is tagged with; viewers show by themselves
    /// only what has no tag.
    ///
    /// # Errors
    ///
    /// Only those of the writer that was given.
    pub fn interval(
        &mut self,
        trial: Option<&str>,
        from: Duration,
        length: Duration,
        response: &Histogram,
    ) -> io::Result<()> {
        let name = trial.map(tag);
        // Without a header it writes nothing of its own.
        let mut log =
            IntervalLogWriterBuilder::new().begin_log_with(&mut self.out, &mut self.serializer)?;
        log.write_histogram(
            response.as_hdr(),
            from,
            length,
            name.as_deref().and_then(Tag::new),
        )
        .map_err(|error| match error {
            IntervalLogWriterError::IoError(error) => error,
            IntervalLogWriterError::SerializeError(error) => io::Error::other(error),
        })?;
        self.out.flush()
    }

    /// What it was written to.
    pub fn into_inner(self) -> W {
        self.out
    }
}

/// A name as a tag, which has neither commas nor white space.
fn tag(name: &str) -> String {
    let is_kept = |c: char| !c.is_whitespace() && c != ',' && !c.is_control();
    name.chars()
        .map(|c| if is_kept(c) { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use knee_core::time::Nanos;

    fn histogram(us: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        us.iter()
            .for_each(|us| histogram.record(Nanos::from_micros(*us)));
        histogram
    }

    #[test]
    fn a_log_is_read_back_by_its_own_library() {
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let mut bytes = Vec::new();
        let mut log = HdrLog::begin(&mut bytes, start, "knee run http://h/").unwrap();
        let second = Duration::from_secs(1);
        let (first, last) = (histogram(&[100, 200, 90_000]), histogram(&[7]));
        log.interval(None, second, second, &first).unwrap();
        log.interval(Some("1 up, 1 down"), second * 2, second / 2, &last)
            .unwrap();
        drop(log);
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(
            text.starts_with("#[Histogram log format version 1.3]\n#knee run"),
            "{text}"
        );
        // The library reads all but the line that names the columns, which is of the Java one.
        let without: String = text
            .lines()
            .filter(|line| !line.starts_with('"'))
            .map(|line| line.to_string() + "\n")
            .collect();
        let mut seen = Vec::new();
        for entry in IntervalLogIterator::new(without.as_bytes()) {
            let LogEntry::Interval(interval) = entry.unwrap() else {
                continue;
            };
            let encoded = base64(interval.encoded_histogram());
            let read: hdrhistogram::Histogram<u64> = Deserializer::new()
                .deserialize(&mut encoded.as_slice())
                .unwrap();
            let name = interval.tag().map(|t| t.as_str().to_string());
            seen.push((name, interval.start_timestamp(), interval.duration(), read));
        }
        let name = |n: &str| Some(n.to_string());
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0].0, None);
        assert_eq!((seen[0].1, seen[0].2), (second, second));
        assert_eq!(&seen[0].3, first.as_hdr());
        assert_eq!((&seen[1].0, seen[1].2), (&name("1_up__1_down"), second / 2));
        assert_eq!(&seen[1].3, last.as_hdr());
    }

    fn base64(text: &str) -> Vec<u8> {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD
            .decode(text)
            .unwrap()
    }
}
