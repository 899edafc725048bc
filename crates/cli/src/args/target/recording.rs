//! A recording in the place of a URL: requests with the times at which they are sent again.

use super::TargetArgs;
use crate::args::{RecordedArrivals, first_given};
use crate::failure::Failure;
use crate::input;
use clap::Args;
use knee_engine::error::reason;
use knee_load::spec::{
    Hole, HttpRequest, ParseError, Part, Pick, RecordedRequest, Recording, RecordingHead,
    RequestKind, Target, Url, parse_duration,
};
use knee_load::time::Nanos;
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

/// The ending of recordings.
const ENDING: &str = ".jsonl";

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Load")]
pub struct ReplayArgs {
    /// Speed at which a recording is sent again: 2 is twice as fast [default: 1]
    #[arg(long, value_name = "X", value_parser = parse_speed, hide_short_help = true)]
    speed: Option<f64>,

    /// Begin at this time of the recording
    #[arg(long, value_name = "T", value_parser = parse_duration, hide_short_help = true)]
    #[serde(serialize_with = "crate::resolved_options::typed")]
    from: Option<Nanos>,

    /// End at this time of the recording
    #[arg(long, value_name = "T", value_parser = parse_duration, hide_short_help = true)]
    #[serde(serialize_with = "crate::resolved_options::typed")]
    to: Option<Nanos>,
}

fn parse_speed(text: &str) -> Result<f64, ParseError> {
    let speed = text.parse().ok().filter(|speed| (1e-6..=1e6).contains(speed));
    speed.ok_or_else(|| ParseError("expected a factor such as 2 or 0.1".to_owned()))
}

impl ReplayArgs {
    /// An option that was given.
    pub fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.speed.is_some(), "--speed"),
            (self.from.is_some(), "--from"),
            (self.to.is_some(), "--to"),
        ])
    }

    /// Whether what came at this time of the recording is sent.
    fn takes(&self, at: Nanos) -> bool {
        self.from.is_none_or(|from| from <= at) && self.to.is_none_or(|to| at < to)
    }

    /// When that is sent, from the start of the run.
    fn time_of(&self, at: Nanos) -> Nanos {
        let from_start = at - self.from.unwrap_or(Nanos::ZERO);
        match self.speed {
            None => from_start,
            Some(speed) => Nanos((from_start.0 as f64 / speed).round() as u64),
        }
    }
}

/// A recording that was read and checked.
#[derive(Debug)]
pub struct CheckedRecording {
    /// When each request is sent.
    pub arrivals: RecordedArrivals,
    server: Url,
    /// The kinds of its requests, by their numbers.
    kinds: Vec<RequestKind>,
    recording: Arc<Recording>,
}

impl TargetArgs {
    /// The recording that the URL names, if it names one; it is read and checked the first time.
    pub fn recording(&mut self, replay: &ReplayArgs) -> Result<bool, Failure> {
        if !names_recording(self.url.as_deref()) {
            return match replay.given() {
                Some(option) => {
                    let wrong = "is of a recording: give one, FILE.jsonl, in the place of URL";
                    Err(Failure::argument(option, wrong))
                }
                None => Ok(false),
            };
        }
        let file = self.url.clone().unwrap_or_default();
        self.refuse_options_of_urls("each request of a recording has its own: leave it out")?;
        let read = read(&file, replay);
        self.recorded = Some(Arc::new(read.map_err(|wrong| Failure::argument(&file, wrong))?));
        Ok(true)
    }

    /// When requests of the recording are sent, if there is one.
    pub fn recorded_arrivals(&self) -> Option<RecordedArrivals> {
        self.recorded.as_ref().map(|recorded| recorded.arrivals.clone())
    }

    /// What the recording loads.
    pub(super) fn target_of_recording(
        &self,
        recorded: &CheckedRecording,
    ) -> Result<Target, Failure> {
        let request = |kind: &RequestKind| {
            let RequestKind { method, headers, body } = kind;
            let body = body.clone().into_bytes();
            let request = HttpRequest::new(method, &recorded.server, headers.clone(), body, 1);
            let mut request = request.map_err(|e| Failure::argument("URL", e))?;
            request.path = "/".to_owned();
            request.holes = vec![Hole { part: Part::Path, at: 1 }];
            self.with_headers(request, None)
        };
        let requests = recorded.kinds.iter().map(request).collect::<Result<_, _>>()?;
        let endpoint = recorded.server.endpoint().clone();
        let target = Target::new(endpoint, requests, Pick::InOrder, !self.no_keepalive)
            .map_err(|e| Failure::argument("URL", e))?;
        let target = Target { recording: Some(Arc::clone(&recorded.recording)), ..target };
        self.speak(target, recorded.server.scheme())
    }
}

/// Whether an argument names a recording.
pub(super) fn names_recording(argument: Option<&str>) -> bool {
    argument.is_some_and(|file| !file.contains("://") && file.ends_with(ENDING))
}

/// Bytes of a line. A request with a larger body is none of a recording.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Reads a whole recording, and keeps the times of what is sent.
fn read(path: &str, replay: &ReplayArgs) -> Result<CheckedRecording, String> {
    let unreadable = |e: io::Error| format!("cannot be read: {}", reason(&e));
    let file = input::open(path)?;
    let mut file = BufReader::with_capacity(1 << 20, file);
    let mut line = String::new();
    let mut read_line = |number: u64, line: &mut String| {
        line.clear();
        let bytes = file.by_ref().take(LINE_BYTES_MAX).read_line(line).map_err(unreadable)? as u64;
        if bytes == LINE_BYTES_MAX {
            return Err(format!("line {number}: has more than 16 MiB"));
        }
        Ok(bytes)
    };
    let mut offset = read_line(1, &mut line)?;
    let head = RecordingHead::parse(&line).map_err(|e| e.0)?;
    let server = RecordingHead::server(&head.target);
    let server = server.map_err(|e| format!("line 1: target: {e}"))?;
    let mut kept = Kept::default();
    let mut latest = Nanos::ZERO;
    for number in 2.. {
        let bytes = read_line(number, &mut line)?;
        if bytes == 0 {
            break;
        }
        if !line.trim().is_empty() {
            let of_line = |e: ParseError| format!("line {number}: {}", e.0);
            let request = RecordedRequest::parse(&line).map_err(of_line)?;
            let at = request.time();
            if at < latest {
                return Err(format!("line {number}: its time is before that of the line above"));
            }
            latest = at;
            if replay.takes(at) {
                kept.keep(&request, offset, replay.time_of(at)).map_err(of_line)?;
            }
        }
        offset += bytes;
    }
    kept.checked(path, server, latest)
}

/// What is kept of a recording as it is read.
#[derive(Default)]
struct Kept {
    times: Vec<Nanos>,
    first: u64,
    kinds: HashMap<RequestKind, u32>,
    has_users: bool,
}

impl Kept {
    fn keep(
        &mut self,
        request: &RecordedRequest<'_>,
        offset: u64,
        time: Nanos,
    ) -> Result<(), ParseError> {
        if self.times.is_empty() {
            self.first = offset;
        }
        self.times.push(time);
        self.has_users |= request.user.is_some();
        let number = self.kinds.len() as u32;
        self.kinds.entry(request.kind()).or_insert(number);
        if self.kinds.len() > Recording::KINDS_MAX {
            let most = Recording::KINDS_MAX;
            return Err(ParseError(format!(
                "methods, headers and bodies differ in more than {most} ways: leave some out"
            )));
        }
        Ok(())
    }

    fn checked(self, path: &str, server: Url, latest: Nanos) -> Result<CheckedRecording, String> {
        if self.times.is_empty() {
            return Err(format!("no request in this part of it; the last is at {latest}"));
        }
        let mut kinds: Vec<_> = self.kinds.iter().map(|(kind, n)| (*n, kind.clone())).collect();
        kinds.sort_by_key(|(number, _)| *number);
        let recording = Recording {
            file: path.to_owned(),
            offset: self.first,
            count: self.times.len() as u64,
            kinds: self.kinds,
            has_users: self.has_users,
        };
        Ok(CheckedRecording {
            arrivals: RecordedArrivals { times: self.times.into() },
            server,
            kinds: kinds.into_iter().map(|(_, kind)| kind).collect(),
            recording: Arc::new(recording),
        })
    }
}
