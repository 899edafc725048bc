//! How a result is stored, however often NATS goes away meanwhile.

use super::job::{Shared, Tools};
use super::lock;
use crate::bus::not_stored;
use crate::parcel::piece_words;
use crate::words::{Doing, KEPT, PIECE, TrialKey, result_subject};
use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What could not be stored is tried again after so long.
const AGAIN: Duration = Duration::from_secs(2);

/// A result on its way to JetStream.
pub(super) struct Storing {
    pub(super) key: TrialKey,
    pub(super) tools: Tools,
    pub(super) shared: Arc<Shared>,
    pub(super) pieces: Vec<Bytes>,
}

impl Storing {
    /// Stores it, or says that it is kept here, and goes on trying until somebody has it.
    pub(super) async fn run(self) {
        let of = self.pieces.len() as u32;
        let since = Instant::now();
        loop {
            match self.store().await {
                Ok(()) => {
                    *lock(&self.shared.doing) = Doing::Stored(of);
                    return;
                }
                // Nobody can be told anything then.
                Err(_) if self.tools.link.up_since_ns().is_none() => {}
                Err(why) => *lock(&self.shared.doing) = Doing::Kept(of, why),
            }
            if self.shared.is_thanked.load(Ordering::Relaxed) || since.elapsed() > KEPT {
                return;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn store(&self) -> Result<(), String> {
        let of = self.pieces.len();
        for (number, piece) in self.pieces.iter().enumerate() {
            let mut headers = HeaderMap::new();
            // A piece that was stored although its acknowledgement was lost is stored once.
            let id = format!("{}.{}.{number}", self.key, self.tools.agent);
            headers.insert(NATS_MESSAGE_ID, id.as_str());
            headers.insert(PIECE, piece_words(number, of).as_str());
            let subject = result_subject(&self.key, &self.tools.agent, &number.to_string());
            let stream = &self.tools.stream;
            let sent = stream
                .publish_with_headers(subject, headers, piece.clone())
                .await;
            let acknowledged = sent.map_err(|e| not_stored(&e))?.await;
            acknowledged.map_err(|e| not_stored(&e))?;
        }
        Ok(())
    }
}
