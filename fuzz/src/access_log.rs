//! Whatever a log says, its recording is one that is read again, in the order of its times.

use knee_load::spec::{RecordedRequest, RecordingHead};
use knee_scenario::access_log::{LogFormat, record_log};

/// Any bytes: as a log, and each line of them as one of a recording. A first line with `$` or `%`
/// is the format of the others.
pub fn check(data: &[u8]) {
    let (first, rest) = data.split_at(data.iter().position(|b| *b == b'\n').unwrap_or(0));
    let format = std::str::from_utf8(first).ok().filter(|text| text.contains(['$', '%']));
    let format = format.and_then(|text| LogFormat::of_configuration(text).ok());
    check_log(if format.is_some() { rest } else { data }, format.as_ref());
}

fn check_log(data: &[u8], format: Option<&LogFormat>) {
    let mut out = Vec::new();
    let read = record_log(data, format, "http://h", &mut out).expect("memory takes all");
    let text = String::from_utf8(out).expect("a recording is text");
    let mut lines = text.lines();
    assert!(RecordingHead::parse(lines.next().expect("a first line")).is_ok());
    let mut latest = None;
    let mut count = 0;
    for line in lines {
        let request = RecordedRequest::parse(line);
        let time = request.unwrap_or_else(|e| panic!("{line}: {e:?}")).time();
        assert!(latest.is_none_or(|latest| latest <= time), "{line}");
        latest = Some(time);
        count += 1;
    }
    let is_one_line = |text: &str| !text.contains(char::is_control);
    assert!(read.left_out.iter().all(|why| is_one_line(why)), "{:?}", read.left_out);
    let given = data.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
    // Lines that say how a log of the W3C's form is to be read are no requests.
    let is_directive = |line: &str| {
        let name = line.trim().strip_prefix('#').and_then(|rest| rest.split_once(':'));
        let known = ["Version", "Fields", "Software", "Start-Date", "End-Date", "Date", "Remark"];
        name.is_some_and(|(name, _)| known.contains(&name))
    };
    let given = given.filter(|line| !line.trim().is_empty() && !is_directive(line));
    let given: Vec<_> = given.collect();
    assert_eq!((count, count + read.left_out_count), (read.requests, given.len() as u64));
    for line in given {
        if let Err(error) = RecordedRequest::parse(&line) {
            assert!(is_one_line(&error.0), "{error:?}");
        }
    }
}
