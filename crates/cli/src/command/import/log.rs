//! `knee import log`: a recording out of a server's log.

use crate::failure::{Exit, Failure};
use crate::stdio;
use clap::Args;
use knee_engine::input;
use knee_load::shown::shown;
use knee_load::spec::RecordingHead;
use knee_load::time::Nanos;
use knee_scenario::access_log::{LogFormat, LogKeys, ReadLog, record_log};
use std::io::{self, BufRead, BufReader, Write};

/// How a file of gzip begins (RFC 1952 §2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

// What is imported, and where the recording goes.
#[derive(Args, Clone, Debug)]
pub(super) struct LogArgs {
    /// Recording [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,

    /// Server that the requests are sent to: http://HOST:PORT
    #[arg(long, value_name = "URL")]
    target: String,

    /// How the lines are written: combined, json, or what the configuration of the server says
    /// [default: json where the first one has an object]
    ///
    /// combined: any text with a time and a request in quotes, as of nginx, Apache, HAProxy and the
    /// load balancers of AWS. Otherwise the format of nginx's log_format or Apache's LogFormat, such
    /// as '$remote_addr [$time_local] "$request" $request_time' or '%h %l %u %t "%r" %>s %D'.
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    format: Option<GivenFormat>,

    /// Key of the time in lines of JSON, such as request.ts [default: those of nginx, Caddy and
    /// Traefik]
    #[arg(long, value_name = "KEY")]
    time: Option<String>,

    /// Key of the method
    #[arg(long, value_name = "KEY")]
    method: Option<String>,

    /// Key of the path, with the query or as a whole URL
    #[arg(long, value_name = "KEY")]
    path: Option<String>,

    /// Key of the user, whose requests keep their order [default: the address]
    #[arg(long, value_name = "KEY")]
    user: Option<String>,

    /// Key of how long a request took, where the time is that of its end [default: request_time,
    /// duration and the like]
    ///
    /// In the unit that its name ends in, as duration_ms, or that follows it, as duration:ms (s, ms,
    /// us or ns); else in seconds. 'none' for a time that is that of the begin.
    #[arg(long, value_name = "KEY")]
    took: Option<String>,

    /// Log; '-' is standard input
    #[arg(value_name = "FILE")]
    file: String,
}

#[derive(Clone, Debug, PartialEq)]
enum GivenFormat {
    Text,
    Json,
    Configured(LogFormat),
}

fn parse_format(text: &str) -> Result<GivenFormat, String> {
    match text {
        "combined" => Ok(GivenFormat::Text),
        "json" => Ok(GivenFormat::Json),
        text if text.contains(['$', '%']) => {
            LogFormat::of_configuration(text).map(GivenFormat::Configured)
        }
        _ => Err("expected combined, json, or a format of nginx or Apache".to_owned()),
    }
}

impl LogArgs {
    /// Reads the log and writes the recording.
    pub(super) fn execute(self) -> Result<Exit, Failure> {
        RecordingHead::server(&self.target).map_err(|e| Failure::argument("--target", e))?;
        let format = self.format()?;
        let mut log: Box<dyn BufRead> = match self.file.as_str() {
            "-" => Box::new(io::stdin().lock()),
            path => {
                let file = input::open(path);
                let file = file.map_err(|e| Failure::argument(path, e.to_string()))?;
                Box::new(BufReader::with_capacity(1 << 20, file))
            }
        };
        if log.fill_buf().is_ok_and(|begin| begin.starts_with(&GZIP)) {
            let wrong = "is compressed (gzip): zcat FILE | knee import log --target URL -";
            return Err(Failure::argument(&self.file, wrong));
        }
        let target = self.target.trim_end_matches('/');
        let mut read = ReadLog::default();
        let record = |out: &mut dyn Write| {
            read = record_log(log, format.as_ref(), target, io::BufWriter::new(out))?;
            Ok(())
        };
        stdio::write_to("--output", self.output.as_deref(), record)?;
        say_what_was_read(&read);
        if read.requests == 0 {
            let wrong = "has no request: --format says how its lines are written";
            return Err(Failure::argument(&self.file, wrong));
        }
        Ok(Exit::Fine)
    }

    fn format(&self) -> Result<Option<LogFormat>, Failure> {
        let keys = LogKeys {
            time: self.time.clone(),
            method: self.method.clone(),
            path: self.path.clone(),
            user: self.user.clone(),
            took: self.took.clone(),
        };
        let has_keys = keys != LogKeys::default();
        match &self.format {
            Some(GivenFormat::Text | GivenFormat::Configured(_)) if has_keys => {
                let wrong = "has no keys: leave --time and the like out, or give json";
                Err(Failure::argument("--format", wrong))
            }
            Some(GivenFormat::Text) => Ok(Some(LogFormat::Text)),
            Some(GivenFormat::Configured(format)) => Ok(Some(format.clone())),
            None if !has_keys => Ok(None),
            Some(GivenFormat::Json) | None => Ok(Some(LogFormat::Json(keys))),
        }
    }
}

/// From one request of this many on it is said that their times are unlikely.
const UNLIKELY: u64 = 10;

/// Says what the recording has, and what it leaves out.
fn say_what_was_read(read: &ReadLog) {
    let mut lines: Vec<String> =
        read.left_out.iter().map(|why| format!("left out: {why}")).collect();
    let further = read.left_out_count - read.left_out.len() as u64;
    if further > 0 {
        lines.push(format!("left out: {further} further lines"));
    }
    let length = Nanos((read.seconds * 1e9) as u64);
    lines.push(format!("{} requests over {length}", read.requests));
    if read.spread > 0 {
        let spread = read.spread;
        lines.push(format!(
            "{spread} of them have times to the second, and are spread evenly over it"
        ));
    }
    if read.moved > 0 {
        let moved = read.moved;
        lines.push(format!("{moved} of them stood far from their place, and come later"));
    }
    if let Some(user) = &read.only_user {
        lines.push(format!(
            "all of them are of one user, {}, so each waits for the response before: --user names \
             another key, --format another format",
            shown(user)
        ));
    }
    if read.unlike_ends * UNLIKELY > read.requests {
        lines.push(format!(
            "{} of them ended before the one in the line before: their time is not that of their \
             end, and their durations are wrong here: give --took none",
            read.unlike_ends
        ));
    }
    if read.too_long * UNLIKELY > read.requests {
        lines.push(format!(
            "{} of them took longer than the log is long: are their durations in another unit? \
             Give it with the key, such as --took duration:ms",
            read.too_long
        ));
    }
    lines.iter().for_each(|line| stdio::say(line));
}
