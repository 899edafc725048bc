//! Reads the requests of a recording ahead of time, on a thread of its own and in bounded memory.

use crate::input;
use crate::threads::StoppableThread;
use knee_load::quantity::Share;
use knee_load::spec::{RecordedRequest, Recording};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Requests that are handed over together.
const BATCH: usize = 1_000;

/// Batches that wait to be taken.
const BATCHES_MAX: usize = 16;

/// A request as it is to be sent.
#[derive(Debug)]
pub(super) struct FedRequest {
    /// The number of its kind.
    pub(super) kind: u32,
    /// A number for its user.
    pub(super) user: Option<u64>,
    /// Its path, without the `/` that it begins with.
    pub(super) path: Box<[u8]>,
}

/// A worker's share of a recording, in order. Worker i of W has the k ≡ i (mod W).
#[derive(Debug)]
pub(super) struct Feed {
    taken: std::vec::IntoIter<FedRequest>,
    // Before the thread: it ends when nobody takes what it reads.
    batches: Receiver<Vec<FedRequest>>,
    _reader: StoppableThread<()>,
}

impl Feed {
    /// Begins to read, and waits for the first requests.
    ///
    /// # Errors
    /// The file cannot be read any more, or the system refuses a thread.
    pub(super) fn start(recording: &Arc<Recording>, share: Share) -> io::Result<Feed> {
        let mut file = input::open(&recording.file).map_err(|e| io::Error::other(e.to_string()))?;
        file.seek(SeekFrom::Start(recording.offset))?;
        let (to, batches) = sync_channel(BATCHES_MAX);
        let recording = Arc::clone(recording);
        let work = move |_: &Arc<_>| read(BufReader::new(file), &recording, share, &to);
        let reader = StoppableThread::start("recording", None, work)?;
        let first = batches.recv().unwrap_or_default();
        Ok(Feed { taken: first.into_iter(), batches, _reader: reader })
    }

    /// The next request; `None` after the last one.
    #[inline]
    pub(super) fn next(&mut self) -> Option<FedRequest> {
        if let Some(next) = self.taken.next() {
            return Some(next);
        }
        self.taken = self.batches.recv().ok()?.into_iter();
        self.taken.next()
    }
}

/// Reads to the end of the recording, of the file, or until nobody takes anything. A line that has
/// changed since the recording was checked ends it.
fn read(
    mut file: impl BufRead,
    recording: &Recording,
    share: Share,
    to: &SyncSender<Vec<FedRequest>>,
) {
    let mut line = String::new();
    let mut batch = Vec::with_capacity(BATCH);
    let mut k = 0;
    while k < recording.count {
        line.clear();
        match file.read_line(&mut line) {
            Ok(1..) if line.trim().is_empty() => continue,
            Ok(1..) => {}
            Ok(0) | Err(_) => break,
        }
        k += 1;
        if (k - 1) % u64::from(share.of) != u64::from(share.index) {
            continue;
        }
        let Some(request) = fed(&line, recording) else {
            break;
        };
        batch.push(request);
        if batch.len() == BATCH
            && to.send(std::mem::replace(&mut batch, Vec::with_capacity(BATCH))).is_err()
        {
            return;
        }
    }
    let _ = to.send(batch);
}

fn fed(line: &str, recording: &Recording) -> Option<FedRequest> {
    let request = RecordedRequest::parse(line).ok()?;
    let kind = *recording.kinds.get(&request.kind())?;
    let path = request.path.as_bytes().strip_prefix(b"/")?;
    Some(FedRequest { kind, user: request.user_number(), path: path.into() })
}
