//! Times of the messages of streams, by laws and in ideal time.

use knee_load::law::Law;
use knee_load::rng::Rng;
use knee_load::spec::{ParseError, parse_duration, parse_law};
use knee_load::time::Nanos;
use std::collections::{HashMap, VecDeque};

/// What each response of a streaming server is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamSpec {
    /// Messages of a stream, at least 1.
    pub messages: u32,
    /// Time from the start of a stream to its first message.
    pub first: Law,
    /// Gaps between its messages, without steps.
    pub gap: Law,
    /// Most streams at once; further ones wait in order. `None`: no limit.
    pub slots: Option<u32>,
    /// Continuous batching: all active streams send a message at the end of each step.
    pub step: Option<StepTime>,
}

/// Length of a step of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTime {
    /// Length without any stream.
    pub base: Nanos,
    /// What each active stream adds.
    pub each: Nanos,
}

impl Default for StreamSpec {
    fn default() -> StreamSpec {
        StreamSpec {
            messages: 100,
            first: Law::Fixed(Nanos::from_millis(100)),
            gap: Law::Fixed(Nanos::from_millis(20)),
            slots: None,
            step: None,
        }
    }
}

/// Reads `messages=200, gap=exp(20ms), first=fixed(150ms), slots=8, step=15ms+0.5ms*active`.
///
/// # Errors
/// An unknown name, a value that does not fit it, a gap beside a step.
pub fn parse_stream(text: &str) -> Result<StreamSpec, ParseError> {
    let mut spec = StreamSpec::default();
    let mut has_gap = false;
    for part in parts(text) {
        let Some((name, value)) = part.split_once('=') else {
            return Err(part_error(part, "has no '='"));
        };
        let value = value.trim();
        match name.trim() {
            "messages" => spec.messages = count(value)?,
            "slots" => spec.slots = Some(count(value)?),
            "first" => spec.first = parse_law(value)?,
            "gap" => {
                spec.gap = parse_law(value)?;
                has_gap = true;
            }
            "step" => spec.step = Some(parse_step(value)?),
            _ => return Err(part_error(part, "is unknown")),
        }
    }
    if has_gap && spec.step.is_some() {
        return Err(ParseError("gap and step both set the pace: leave one out".to_owned()));
    }
    Ok(spec)
}

/// Splits at commas outside parentheses.
pub(super) fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let split = text.split(move |c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    split.map(str::trim)
}

fn part_error(part: &str, what: &str) -> ParseError {
    ParseError(format!(
        "'{part}' {what}: expected messages=N, first=LAW, gap=LAW, slots=N, step=T+T*active"
    ))
}

pub(super) fn count(text: &str) -> Result<u32, ParseError> {
    let number = text.parse().ok().filter(|n| *n > 0);
    number.ok_or_else(|| ParseError(format!("'{text}' is no number of at least 1")))
}

fn parse_step(text: &str) -> Result<StepTime, ParseError> {
    let (base, each) = text.split_once('+').unwrap_or((text, "0s*active"));
    let Some(each) = each.trim().strip_suffix("active") else {
        return Err(ParseError(format!(
            "'{text}' is no step: expected one such as 15ms+0.5ms*active"
        )));
    };
    let each = each.trim_end().trim_end_matches('*').trim_end();
    let step = StepTime { base: parse_duration(base.trim())?, each: parse_duration(each)? };
    if step.base == Nanos::ZERO {
        return Err(ParseError("a step takes no time: expected one such as 15ms".to_owned()));
    }
    Ok(step)
}

/// A stream: the token of its connection, and its number there.
pub(super) type StreamKey = (u64, u32);

/// All streams of a server. Reads no clock: late messages do not delay later ones.
#[derive(Debug)]
pub(super) struct Batch {
    spec: StreamSpec,
    rng: Rng,
    active: HashMap<StreamKey, ActiveStream>,
    waiting: VecDeque<(StreamKey, u32)>,
    /// The step that is under way, if there are steps.
    step: Option<(Nanos, Nanos)>,
    /// Streams that began after they had waited, with the time of their next message.
    admitted: Vec<(StreamKey, Nanos)>,
}

#[derive(Debug)]
struct ActiveStream {
    left: u32,
    /// Time of its next message; with steps: time from which on it takes part.
    at: Nanos,
    /// Times of messages that became due and are not taken yet.
    due: Vec<Nanos>,
}

impl Batch {
    pub(super) fn new(spec: StreamSpec, rng: Rng) -> Batch {
        Batch {
            spec,
            rng,
            active: HashMap::new(),
            waiting: VecDeque::new(),
            step: None,
            admitted: Vec::new(),
        }
    }

    /// Messages of a stream.
    pub(super) fn messages(&self) -> u32 {
        self.spec.messages
    }

    /// A stream of `messages` arrives at `at`. Returns when to ask for its messages; `None`: it
    /// waits.
    pub(super) fn arrive(&mut self, key: StreamKey, messages: u32, at: Nanos) -> Option<Nanos> {
        self.advance(at);
        if self.spec.slots.is_some_and(|slots| self.active.len() >= slots as usize) {
            self.waiting.push_back((key, messages));
            return None;
        }
        Some(self.admit(key, messages, at))
    }

    /// Takes the messages of a stream that are due by `now`. Returns when to ask for the next;
    /// `None`: these are the last.
    pub(super) fn take(
        &mut self,
        key: StreamKey,
        now: Nanos,
        due: &mut Vec<Nanos>,
    ) -> Option<Nanos> {
        self.advance(now);
        let stream = self.active.get_mut(&key)?;
        if self.spec.step.is_none() {
            while stream.left > 0 && stream.at <= now {
                due.push(stream.at);
                stream.left -= 1;
                stream.at += self.spec.gap.sample(&mut self.rng);
            }
        }
        due.append(&mut stream.due);
        if stream.left > 0 {
            return Some(self.step.map_or(stream.at, |(_, end)| end));
        }
        let freed = due.last().copied().unwrap_or(now);
        self.active.remove(&key);
        self.admit_waiting(freed);
        None
    }

    /// Removes a stream whose client has gone.
    pub(super) fn leave(&mut self, key: StreamKey, now: Nanos) {
        self.waiting.retain(|(other, _)| *other != key);
        if self.active.remove(&key).is_some() {
            self.admit_waiting(now);
        }
    }

    /// A stream that began after it had waited, with the time to ask for its messages.
    pub(super) fn take_admitted(&mut self) -> Option<(StreamKey, Nanos)> {
        self.admitted.pop()
    }

    fn admit(&mut self, key: StreamKey, messages: u32, at: Nanos) -> Nanos {
        let first = at + self.spec.first.sample(&mut self.rng);
        let stream = ActiveStream { left: messages, at: first, due: Vec::new() };
        self.active.insert(key, stream);
        let Some(step) = self.spec.step else {
            return first;
        };
        let active = self.running();
        let (_, end) = *self.step.get_or_insert_with(|| (at, at + step.length(active)));
        end
    }

    /// Gives free slots to streams that wait.
    fn admit_waiting(&mut self, at: Nanos) {
        while self.spec.slots.is_none_or(|slots| self.active.len() < slots as usize)
            && let Some((key, messages)) = self.waiting.pop_front()
        {
            let next = self.admit(key, messages, at);
            self.admitted.push((key, next));
        }
    }

    /// Active streams with messages left.
    fn running(&self) -> u32 {
        self.active.values().filter(|stream| stream.left > 0).count() as u32
    }

    /// Ends the steps that are over at `now`.
    fn advance(&mut self, now: Nanos) {
        let Some(time) = self.spec.step else {
            return;
        };
        while let Some((begin, end)) = self.step.filter(|(_, end)| *end <= now) {
            for stream in self.active.values_mut() {
                if stream.left > 0 && stream.at <= begin {
                    stream.left -= 1;
                    stream.due.push(end);
                }
            }
            let running = self.running();
            self.step = (running > 0).then(|| (end, end + time.length(running)));
        }
    }
}

impl StepTime {
    fn length(self, active: u32) -> Nanos {
        self.base + Nanos(self.each.0 * u64::from(active))
    }
}

/// The head of a stream in HTTP/1.1, up to what says whether the connection goes on.
pub(super) const HEAD: &str = "HTTP/1.1 200 OK\r\nServer: knee\r\n\
     Content-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n";

/// The message that ends a stream.
pub(super) const END: &[u8] = b"data: [DONE]\n\n";

/// Appends message `number` of `count`, from 1, as OpenAI-compatible servers send a token. The last
/// one has the number of tokens.
pub(super) fn put_message(number: u32, count: u32, out: &mut Vec<u8>) {
    use std::io::Write;
    let usage = if number == count {
        format!(",\"usage\":{{\"completion_tokens\":{count}}}")
    } else {
        String::new()
    };
    // Writing to a vector cannot fail.
    let _ = write!(
        out,
        "data: {{\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\"delta\":"
    );
    let _ = write!(out, "{{\"content\":\"t{number} \"}}}}]{usage}}}\n\n");
}

/// Appends bytes as one chunk of the transfer coding.
pub(super) fn put_chunk(bytes: &[u8], out: &mut Vec<u8>) {
    use std::io::Write;
    let _ = write!(out, "{:x}\r\n", bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::rng;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    fn batch(text: &str) -> Batch {
        Batch::new(parse_stream(text).unwrap(), rng::stream(1, 1))
    }

    /// When the messages of these streams become due, which arrive at once.
    fn times(batch: &mut Batch, streams: u32) -> Vec<Vec<u64>> {
        let mut asks: Vec<(Nanos, StreamKey)> = Vec::new();
        for id in 0..streams {
            let key = (0, id);
            asks.extend(batch.arrive(key, batch.messages(), Nanos::ZERO).map(|at| (at, key)));
        }
        let mut all = vec![Vec::new(); streams as usize];
        while let Some(place) = (0..asks.len()).min_by_key(|&place| asks[place]) {
            let (at, key) = asks.remove(place);
            let mut due = Vec::new();
            let next = batch.take(key, at, &mut due);
            all[key.1 as usize].extend(due.iter().map(|at| at.0 / 1_000_000));
            asks.extend(next.map(|at| (at, key)));
            while let Some((key, at)) = batch.take_admitted() {
                asks.push((at, key));
            }
        }
        all
    }

    #[test]
    fn streams_keep_their_own_pace_and_wait_for_a_slot() {
        let mut two = batch("messages=3, first=fixed(10ms), gap=fixed(5ms), slots=1");
        assert_eq!(times(&mut two, 2), [[10, 15, 20], [30, 35, 40]]);
        let mut free = batch("messages=2, first=1ms, gap=1ms");
        assert_eq!(times(&mut free, 3), [[1, 2], [1, 2], [1, 2]]);
    }

    #[test]
    fn a_step_grows_with_the_active_streams() {
        let mut alone = batch("messages=3, first=0s, step=10ms+5ms*active");
        assert_eq!(times(&mut alone, 1), [[15, 30, 45]]);
        let mut both = batch("messages=2, first=0s, slots=1, step=10ms");
        assert_eq!(times(&mut both, 2), [[10, 20], [30, 40]]);
    }

    #[test]
    fn a_stream_that_leaves_frees_its_slot() {
        let mut batch = batch("messages=1, first=1ms, slots=1");
        assert_eq!(batch.arrive((1, 0), 1, MS(0)), Some(MS(1)));
        assert_eq!(batch.arrive((2, 0), 1, MS(0)), None);
        batch.leave((1, 0), MS(4));
        assert_eq!(batch.take_admitted(), Some(((2, 0), MS(5))));
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        for bad in
            ["", "messages", "messages=0", "gap=fast", "step=1ms+1ms", "x=1", "gap=1ms, step=1ms"]
        {
            assert!(parse_stream(bad).is_err(), "{bad}");
        }
        let spec = parse_stream("gap=uniform(1ms,2ms),messages=7").unwrap();
        assert_eq!((spec.messages, spec.gap), (7, Law::Uniform(MS(1), MS(2))));
    }
}
