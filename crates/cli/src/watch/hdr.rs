//! `--hdr`: the response times of each interval as an HdrHistogram interval log, version 1.3, which
//! HistogramLogProcessor and its viewers open.
//!
//! Values are nanoseconds, and so is the log's column of maxima, which its readers leave out.

use super::{ExperimentStart, UpcomingTrial, Watcher};
use crate::failure::Failure;
use crate::stdio;
use crate::whole_file::{OutputFile, OutputPlace};
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};
use knee_core::report::Kind;
use knee_load::measure::{Histogram, Interval};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

/// Where a log goes, known before the load.
#[derive(Debug)]
pub struct HdrFile {
    path: String,
    /// Taken by the experiment's log when it begins.
    to: RefCell<Option<OutputPlace>>,
    /// What went wrong while it was written.
    failure: Rc<RefCell<Option<io::Error>>>,
}

impl HdrFile {
    /// Opens it; `-` is standard output.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(path: &str) -> Result<HdrFile, Failure> {
        Ok(HdrFile {
            path: path.to_string(),
            to: RefCell::new(Some(OutputPlace::open("--hdr", path)?)),
            failure: Rc::default(),
        })
    }

    /// What became of it.
    ///
    /// # Errors
    /// It could not be written whole.
    pub fn outcome(&self) -> Result<(), Failure> {
        match (self.failure.take(), self.path.as_str()) {
            (None, _) => Ok(()),
            (Some(error), "-") => stdio::outcome(Err(error)),
            (Some(error), path) => {
                let wrong = format!("'{path}' could not be written whole: {error}");
                Err(Failure::argument("--hdr", wrong))
            }
        }
    }

    /// The one who writes it; `None` where another already does.
    pub fn writer(&self) -> Option<HdrWriter> {
        self.to.borrow_mut().take().map(|to| HdrWriter {
            path: self.path.clone(),
            to: Some(to),
            log: None,
            trial: Trial::default(),
            is_tagged: false,
            written: 0,
            remark: None,
            failure: Rc::clone(&self.failure),
        })
    }
}

/// Writes the log as intervals end.
pub struct HdrWriter {
    path: String,
    /// Until the log begins.
    to: Option<OutputPlace>,
    log: Option<(HdrLog<OutputFile>, Instant)>,
    trial: Trial,
    /// Whether intervals bear the name of their trial: where there are several, to tell them apart.
    is_tagged: bool,
    /// Intervals with response times.
    written: u64,
    /// What is worth a word, until it was told.
    remark: Option<String>,
    failure: Rc<RefCell<Option<io::Error>>>,
}

/// The running trial.
#[derive(Debug, Default)]
struct Trial {
    label: String,
    /// When its window began, from the begin of the log: known with its first interval.
    window: Option<Duration>,
}

impl HdrWriter {
    /// After an error nothing more is written: the log would have a hole.
    fn keep(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.log = None;
            self.failure.borrow_mut().get_or_insert(error);
        }
    }
}

impl Watcher for HdrWriter {
    fn opens(&mut self, start: &ExperimentStart) {
        let Some(to) = self.to.take() else {
            return;
        };
        self.is_tagged = start.command.kind != Kind::Run;
        let comment = format!(
            "[knee {}, started at {}, values in nanoseconds]",
            start.command, start.started_at
        );
        let begun = to.begin().and_then(|out| HdrLog::begin(out, SystemTime::now(), &comment));
        match begun {
            Ok(log) => self.log = Some((log, Instant::now())),
            Err(error) => self.keep(Err(error)),
        }
    }

    fn trial_begins(&mut self, _: usize, upcoming: &UpcomingTrial) {
        self.trial = Trial { label: upcoming.live.label.clone(), window: None };
    }

    fn interval(&mut self, interval: &Interval, response: &Histogram) {
        let Some((log, begun)) = &mut self.log else { return };
        let [from, to] = [interval.start_ns, interval.end_ns].map(Duration::from_nanos);
        // This call comes as the interval ends.
        let now = begun.elapsed();
        let window = *self.trial.window.get_or_insert(now.saturating_sub(to));
        let length = to.saturating_sub(from);
        let tag = self.is_tagged.then_some(self.trial.label.as_str());
        let written = log.interval(tag, window + from, length, response);
        self.written += u64::from(!response.is_empty());
        self.keep(written);
    }

    /// Ends the log. One that stayed empty is reported.
    fn end(&mut self) {
        let ended = self.log.take().map(|(log, _)| log.out.finish()).unwrap_or(Ok(()));
        self.keep(ended);
        if self.written == 0 && self.failure.borrow().is_none() {
            self.remark = Some(format!(
                "--hdr: '{}' has no histogram: there were no response times",
                self.path
            ));
        }
    }

    fn remark(&mut self) -> Option<String> {
        self.remark.take()
    }
}

/// Writes the log, interval by interval.
struct HdrLog<W: io::Write> {
    out: W,
    serializer: V2DeflateSerializer,
}

impl<W: io::Write> HdrLog<W> {
    /// Begins a log: the times of its intervals count from `start`.
    ///
    /// # Errors
    ///
    /// Only those of `out`.
    fn begin(mut out: W, start: SystemTime, comment: &str) -> io::Result<HdrLog<W>> {
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

    /// Writes an interval that began `from` after the log's start, and flushes it. `trial`: its
    /// tag; viewers show only intervals without a tag unless one is chosen.
    ///
    /// # Errors
    ///
    /// Only those of the writer that was given.
    fn interval(
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
        log.write_histogram(response.as_hdr(), from, length, name.as_deref().and_then(Tag::new))
            .map_err(|error| match error {
                IntervalLogWriterError::IoError(error) => error,
                IntervalLogWriterError::SerializeError(error) => io::Error::other(error),
            })?;
        self.out.flush()
    }
}

/// A name as a tag, which has neither commas nor white space.
fn tag(name: &str) -> String {
    let is_kept = |c: char| !c.is_whitespace() && c != ',' && !c.is_control();
    name.chars().map(|c| if is_kept(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use knee_load::time::Nanos;

    fn file(name: &str) -> (String, HdrFile) {
        let name = format!("knee-hdr-{}-{name}.log", std::process::id());
        let path = std::env::temp_dir().join(name).display().to_string();
        let file = HdrFile::open(&path).unwrap();
        (path, file)
    }

    fn opening() -> ExperimentStart {
        ExperimentStart {
            command: knee_core::report::Command::of(Kind::Run),
            started_at: "2026-01-01T00:00:00Z".to_string(),
            seed: 1,
            spec: std::collections::BTreeMap::new(),
        }
    }

    fn upcoming() -> UpcomingTrial {
        let live = crate::watch::LiveTrial {
            label: "rate=10/s".to_string(),
            kind: crate::watch::LiveKind::Operations,
            warmup: Nanos::ZERO,
            total: None,
            interval: Nanos::from_secs(1),
            asked_per_s: None,
            names: Default::default(),
        };
        UpcomingTrial { live, level: None, http: None }
    }

    #[test]
    fn each_interval_is_a_line() {
        let (path, file) = file("lines");
        let mut writer = file.writer().unwrap();
        assert!(file.writer().is_none(), "one writes");
        writer.opens(&ExperimentStart {
            command: knee_core::report::Command::of(Kind::Sweep),
            ..opening()
        });
        writer.trial_begins(0, &upcoming());
        let mut response = Histogram::default();
        response.record(Nanos::from_millis(3));
        let none = Histogram::default();
        for second in 0..3 {
            let interval = Interval {
                start_ns: second * 1_000_000_000,
                end_ns: (second + 1) * 1_000_000_000,
                ..Interval::default()
            };
            writer.interval(&interval, if second == 1 { &none } else { &response });
        }
        assert!(!std::path::Path::new(&path).exists(), "not whole yet");
        writer.end();
        assert_eq!(writer.remark(), None);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().filter(|l| l.starts_with("Tag=rate=10/s,")).collect();
        assert_eq!(lines.len(), 3, "one without a response too: {text}");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_log_without_a_histogram_is_remarked_on() {
        let (path, file) = file("empty");
        let mut writer = file.writer().unwrap();
        writer.opens(&opening());
        writer.end();
        assert!(writer.remark().unwrap().contains("no response times"));
        assert_eq!(writer.remark(), None);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told() {
        let wrong = HdrFile::open("/nonexistent/x.hlog").unwrap_err();
        assert!(wrong.line.starts_with("--hdr: '/nonexistent/x.hlog' cannot be"), "{wrong}");
    }

    fn histogram(us: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        us.iter().for_each(|us| histogram.record(Nanos::from_micros(*us)));
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
        log.interval(Some("1 up, 1 down"), second * 2, second / 2, &last).unwrap();
        drop(log);
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(text.starts_with("#[Histogram log format version 1.3]\n#knee run"), "{text}");
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
            let read: hdrhistogram::Histogram<u64> =
                Deserializer::new().deserialize(&mut encoded.as_slice()).unwrap();
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
        base64::engine::general_purpose::STANDARD.decode(text).unwrap()
    }
}
