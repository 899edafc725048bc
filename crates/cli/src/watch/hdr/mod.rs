//! `--hdr`: the response times of each interval as an HdrHistogram interval log.

mod log;

use super::{Opening, Upcoming, Watcher};
use crate::failure::Failure;
use crate::stdout;
use crate::whole_file::{OutputFile, OutputPlace};
use knee_core::measure::{Histogram, Interval};
use knee_core::report::Kind;
use knee_core::report::Report;
use log::HdrLog;
use std::cell::RefCell;
use std::io::{self, Stdout, Write};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

/// Where a log goes, known before the load.
#[derive(Debug)]
pub struct HdrFile {
    path: String,
    /// Taken by the experiment's log when it begins.
    to: RefCell<Option<To>>,
    /// What went wrong while it was written.
    failure: Rc<RefCell<Option<io::Error>>>,
}

#[derive(Debug)]
enum To {
    Stdout,
    File(OutputPlace),
}

impl To {
    fn begin(self) -> io::Result<Out> {
        Ok(match self {
            To::Stdout => Out::Stdout(io::stdout()),
            To::File(place) => Out::File(place.begin()?),
        })
    }
}

/// What is written to; the log flushes it after each interval.
#[derive(Debug)]
enum Out {
    Stdout(Stdout),
    File(OutputFile),
}

impl Out {
    /// Puts the whole log in its place.
    fn end(self) -> io::Result<()> {
        match self {
            Out::Stdout(mut out) => out.flush(),
            Out::File(file) => file.finish(),
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Out::Stdout(out) => out.write(bytes),
            Out::File(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Out::Stdout(out) => out.flush(),
            Out::File(out) => out.flush(),
        }
    }
}

impl HdrFile {
    /// Opens it; `-` is standard output.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(path: &str) -> Result<HdrFile, Failure> {
        let to = match path {
            "-" => To::Stdout,
            path => To::File(OutputPlace::open("--hdr", path)?),
        };
        Ok(HdrFile {
            path: path.to_string(),
            to: RefCell::new(Some(to)),
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
            (Some(error), "-") => stdout::outcome(Err(error)),
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
    to: Option<To>,
    log: Option<(HdrLog<Out>, Instant)>,
    trial: Trial,
    /// Whether intervals bear the name of their trial: where there are several, to tell them apart.
    is_tagged: bool,
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
    /// A log that stayed empty is worth a word.
    fn end(&mut self) {
        let ended = self.log.take().map(|(log, _)| log.into_inner().end());
        let ended = ended.unwrap_or(Ok(()));
        self.keep(ended);
        if self.written == 0 && self.failure.borrow().is_none() {
            self.remark = Some(format!(
                "--hdr: '{}' has no histogram: there were no response times",
                self.path
            ));
        }
    }

    /// After an error nothing more is written: the log would have a hole.
    fn keep(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.log = None;
            self.failure.borrow_mut().get_or_insert(error);
        }
    }
}

impl Watcher for HdrWriter {
    fn opens(&mut self, opening: &Opening) {
        let Some(to) = self.to.take() else {
            return;
        };
        self.is_tagged = opening.command.kind != Kind::Run;
        let comment = format!(
            "[knee {}, started at {}, values in nanoseconds]",
            opening.command, opening.started_at
        );
        let begun = to
            .begin()
            .and_then(|out| HdrLog::begin(out, SystemTime::now(), &comment));
        match begun {
            Ok(log) => self.log = Some((log, Instant::now())),
            Err(error) => self.keep(Err(error)),
        }
    }

    fn trial_begins(&mut self, _: usize, upcoming: &Upcoming) {
        self.trial = Trial {
            label: upcoming.label.clone(),
            window: None,
        };
    }

    fn interval(&mut self, interval: &Interval, response: Option<&Histogram>) {
        let (Some((log, begun)), Some(response)) = (&mut self.log, response) else {
            return;
        };
        let [from, to] = [interval.start_ns, interval.end_ns].map(Duration::from_nanos);
        // An interval is told of as it ends.
        let now = begun.elapsed();
        let window = *self.trial.window.get_or_insert(now.saturating_sub(to));
        let length = to.saturating_sub(from);
        let tag = self.is_tagged.then_some(self.trial.label.as_str());
        let written = log.interval(tag, window + from, length, response);
        self.written += 1;
        self.keep(written);
    }

    fn closes(&mut self, _: &Report) {
        self.end();
    }

    fn fails(&mut self, _: &str) {
        self.end();
    }

    fn remark(&mut self) -> Option<String> {
        self.remark.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_core::time::Nanos;

    fn file(name: &str) -> (String, HdrFile) {
        let name = format!("knee-hdr-{}-{name}.log", std::process::id());
        let path = std::env::temp_dir().join(name).display().to_string();
        let file = HdrFile::open(&path).unwrap();
        (path, file)
    }

    fn opening() -> Opening {
        Opening {
            command: knee_core::report::Command::of(Kind::Run),
            started_at: "2026-01-01T00:00:00Z".to_string(),
            seed: 1,
            spec: std::collections::BTreeMap::new(),
        }
    }

    fn upcoming() -> Upcoming {
        Upcoming {
            label: "rate=10/s".to_string(),
            level: None,
            kind: crate::watch::LiveKind::Operations,
            warmup: Nanos::ZERO,
            total: None,
            interval: Nanos::from_secs(1),
            asked_per_s: None,
            names: Default::default(),
        }
    }

    #[test]
    fn intervals_with_response_times_are_lines() {
        let (path, file) = file("lines");
        let mut writer = file.writer().unwrap();
        assert!(file.writer().is_none(), "one writes");
        writer.opens(&Opening {
            command: knee_core::report::Command::of(Kind::Sweep),
            ..opening()
        });
        writer.trial_begins(0, &upcoming());
        let mut response = Histogram::default();
        response.record(Nanos::from_millis(3));
        for second in 0..3 {
            let interval = Interval {
                start_ns: second * 1_000_000_000,
                end_ns: (second + 1) * 1_000_000_000,
                ..Interval::default()
            };
            writer.interval(&interval, (second != 1).then_some(&response));
        }
        assert!(!std::path::Path::new(&path).exists(), "not whole yet");
        writer.end();
        assert_eq!(writer.remark(), None);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text
            .lines()
            .filter(|l| l.starts_with("Tag=rate=10/s,"))
            .collect();
        assert_eq!(lines.len(), 2, "{text}");
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
        assert!(
            wrong
                .line
                .starts_with("--hdr: '/nonexistent/x.hlog' cannot be"),
            "{wrong}"
        );
    }
}
