//! The connection to NATS, and the runtime that it lives in: all that is asynchronous begins here.
//!
//! One thread has both. Workers have descriptors of their own and never touch it: what they report
//! goes through a thread.

use crate::nats_access::NatsAccess;
use crate::protocol::{
    AGENTS, COORDINATOR, CoordinatorFacts, KEPT, LEASE, LEASE_KEY, PLANS, RESULTS, inbox_prefix,
};
use async_nats::jetstream::{self, ErrorCode, kv, stream};
use async_nats::{Client, Event};
use knee_engine::error::RunError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Wait before the second attempt to create a stream that another process may be creating.
const CREATE_RETRY: Duration = Duration::from_millis(250);

/// State of the connection to NATS.
#[derive(Debug, Default)]
pub(crate) struct NatsLink {
    /// Time since which it is down, by the monotonic clock; 0: it is up.
    down_ns: AtomicU64,
    /// See [`NatsLink::back_ns`].
    back_ns: AtomicU64,
    refused: OnceLock<String>,
}

impl NatsLink {
    fn note(&self, event: &Event) {
        match event {
            Event::Disconnected | Event::Closed => {
                // The first of several counts.
                let at_ns = now_ns();
                let _ =
                    self.down_ns.compare_exchange(0, at_ns, Ordering::Relaxed, Ordering::Relaxed);
            }
            Event::Connected => {
                self.back_ns.store(now_ns(), Ordering::Relaxed);
                self.down_ns.store(0, Ordering::Relaxed);
            }
            Event::ServerError(error) => {
                let _ = self.refused.set(error.to_string());
            }
            _ => {}
        }
    }

    /// First refusal of the server, such as for a subject that this login may not use.
    pub(crate) fn refused(&self) -> Option<String> {
        self.refused.get().cloned()
    }

    /// Time of the last reconnect, by the monotonic clock; 0: none.
    pub(crate) fn back_ns(&self) -> u64 {
        self.back_ns.load(Ordering::Relaxed)
    }

    /// Time since which it is down, by the monotonic clock; `None`: it is up.
    pub(crate) fn down_since_ns(&self) -> Option<u64> {
        Some(self.down_ns.load(Ordering::Relaxed)).filter(|&at_ns| at_ns > 0)
    }
}

pub(crate) fn now_ns() -> u64 {
    knee_engine::sys::clock::monotonic_ns()
}

/// A thread with the async runtime, until this is dropped.
#[derive(Debug)]
struct Background {
    handle: Handle,
    /// Ends the thread; tasks are dropped.
    thread: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Background {
    fn start() -> io::Result<Background> {
        // tokio panics if it cannot start a thread for blocking work. So a thread is started first
        // as a test, and tokio keeps its first one for good.
        let probe = thread::Builder::new().spawn(|| ())?;
        let _ = probe.join();
        let runtime =
            Builder::new_current_thread().enable_all().thread_keep_alive(Duration::MAX).build()?;
        let handle = runtime.handle().clone();
        handle.spawn_blocking(|| ());
        let (end, ended) = oneshot::channel();
        let thread = thread::Builder::new().name("nats".to_owned()).spawn(move || {
            let _ = runtime.block_on(ended);
        })?;
        Ok(Background { handle, thread: Some((end, thread)) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.thread.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}

/// A connection to NATS with JetStream.
#[derive(Debug)]
pub(crate) struct Bus {
    runtime: Background,
    pub(crate) client: Client,
    pub(crate) stream: jetstream::Context,
    pub(crate) link: Arc<NatsLink>,
    /// Addresses, without secrets.
    pub(crate) place: String,
}

impl Bus {
    /// Connects. The server lists the connection as `name`. Answers come to the inbox of `inbox`,
    /// which no other login needs to read.
    pub(crate) fn connect(access: &NatsAccess, name: &str, inbox: &str) -> Result<Bus, RunError> {
        let place = access.place();
        let runtime = Background::start()
            .map_err(|e| RunError::NotPermitted(format!("cannot start a thread for NATS: {e}")))?;
        let link = Arc::new(NatsLink::default());
        let noted = link.clone();
        let options = access.options(name)?.custom_inbox_prefix(inbox_prefix(inbox));
        let options = options.event_callback(move |event| {
            noted.note(&event);
            std::future::ready(())
        });
        let urls: Vec<&str> = access.url.as_str().split(',').map(str::trim).collect();
        let client = runtime
            .handle
            .block_on(async { options.connect(urls).await })
            .map_err(|e| RunError::FleetLost(format!("no NATS at {place}: {}", chain(&e))))?;
        let stream = {
            // JetStream starts a task.
            let _entered = runtime.handle.enter();
            let mut stream = jetstream::new(client.clone());
            stream.set_timeout(Duration::from_secs(5));
            stream
        };
        Ok(Bus { runtime, client, stream, link, place })
    }

    /// Waits for a future on this thread.
    pub(crate) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.handle.block_on(future)
    }

    /// Runs a future as a task.
    pub(crate) fn spawn<F>(&self, future: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.runtime.handle.spawn(future)
    }

    /// Opens the buckets and the stream, and makes those that are missing.
    pub(crate) fn stores(&self) -> Result<Stores, RunError> {
        self.run(Stores::open(&self.stream)).map_err(|why| {
            RunError::FleetLost(format!(
                "JetStream is not available at {} ({why}): start nats-server with -js, or permit \
                 JetStream to this account",
                self.place
            ))
        })
    }
}

/// Buckets and streams in JetStream.
#[derive(Clone, Debug)]
pub(crate) struct Stores {
    pub(crate) agents: kv::Store,
    pub(crate) coordinator: kv::Store,
    pub(crate) plans: kv::Store,
    pub(crate) results: stream::Stream,
}

impl Stores {
    pub(crate) async fn open(context: &jetstream::Context) -> Result<Stores, String> {
        let results = stream::Config {
            name: RESULTS.to_owned(),
            subjects: vec!["knee.result.>".to_owned()],
            max_age: KEPT,
            ..stream::Config::default()
        };
        let results = open_stream(context, results).await?;
        Ok(Stores {
            agents: bucket(context, AGENTS, LEASE).await?,
            coordinator: bucket(context, COORDINATOR, LEASE).await?,
            plans: bucket(context, PLANS, KEPT).await?,
            results,
        })
    }
}

/// Codes of errors of a JetStream that is full: the server's or the account's storage, or a
/// stream's own limit.
const FULL: [ErrorCode; 6] = [
    ErrorCode::INSUFFICIENT_RESOURCES,
    ErrorCode::STORAGE_RESOURCES_EXCEEDED,
    ErrorCode::MEMORY_RESOURCES_EXCEEDED,
    ErrorCode::ACCOUNT_RESOURCES_EXCEEDED,
    ErrorCode::STREAM_STORE_FAILED,
    ErrorCode::STREAM_MAX_STREAM_BYTES_EXCEEDED,
];

/// Why JetStream did not store something, and what to do if it is full.
pub(crate) fn not_stored(error: &(dyn std::error::Error + 'static)) -> String {
    let why = chain(error);
    if !is_full(error) {
        return why;
    }
    format!(
        "JetStream is full ({why}). Stream {RESULTS} has the results: delete them with 'knee \
         fleet clear', or raise max_file_store of nats-server and the limits of the account"
    )
}

fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |e| e.source());
    let codes = causes.filter_map(|e| e.downcast_ref::<jetstream::Error>());
    codes.into_iter().any(|e| FULL.contains(&e.error_code()))
}

impl Stores {
    /// The coordinator that holds the lease.
    pub(crate) async fn conductor(&self) -> Option<CoordinatorFacts> {
        self.coordinator.get(LEASE_KEY).await.ok().flatten().as_deref().and_then(parse)
    }
}

/// How full JetStream is, in words; empty if it does not report it.
pub(crate) async fn fullness(context: &jetstream::Context, stores: &Stores) -> String {
    let results = stores.results.get_info().await.map(|info| info.state.bytes);
    let (Ok(results), Ok(account)) = (results, context.query_account().await) else {
        return String::new();
    };
    let limit = match account.limits.max_storage {
        Some(most) if most > 0 => format!(" of {}", bytes_words(most as u64)),
        _ => String::new(),
    };
    format!(
        " Stream {RESULTS} has {}, all streams of the account {}{limit}.",
        bytes_words(results),
        bytes_words(account.storage)
    )
}

fn bytes_words(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Opens a stream, and creates it if it does not exist.
async fn open_stream(
    context: &jetstream::Context,
    config: stream::Config,
) -> Result<stream::Stream, String> {
    let mut stream = context.get_or_create_stream(config.clone()).await;
    // If two clients create it at once, the server may refuse one of them (nats-server, error
    // 10065). The stream then exists.
    if stream.is_err() {
        tokio::time::sleep(CREATE_RETRY).await;
        stream = context.get_or_create_stream(config).await;
    }
    stream.map_err(|e| chain(&e))
}

/// Opens a bucket, which is a stream of this form (NATS ADR-8). The library's own call needs
/// answers that servers before 2.10 do not send.
async fn bucket(
    context: &jetstream::Context,
    name: &str,
    max_age: Duration,
) -> Result<kv::Store, String> {
    let config = stream::Config {
        name: format!("KV_{name}"),
        subjects: vec![format!("$KV.{name}.>")],
        max_messages_per_subject: 1,
        max_age,
        duplicate_window: max_age.min(Duration::from_secs(120)),
        discard: stream::DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: true,
        ..stream::Config::default()
    };
    open_stream(context, config).await?;
    context.get_key_value(name).await.map_err(|e| chain(&e))
}

/// Encodes a value as a message.
pub(crate) fn json(value: &impl Serialize) -> bytes::Bytes {
    // The only possible error is a map whose keys are not strings, and no message has one.
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// Parses a message; `None`: it has another form.
pub(crate) fn parse<T: DeserializeOwned>(payload: &[u8]) -> Option<T> {
    serde_json::from_slice(payload).ok()
}

/// Formats an error and its sources in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let more = inner.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        source = inner.source();
    }
    words.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_jetstream_says_what_to_do_and_other_errors_do_not() {
        let error = |code: u64, words: &str| -> jetstream::Error {
            let text = format!(r#"{{"code": 503, "err_code": {code}, "description": "{words}"}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let full = not_stored(&error(10023, "insufficient resources"));
        for words in ["insufficient resources", "knee-results", "knee fleet clear"] {
            assert!(full.contains(words), "{full}");
        }
        let other = not_stored(&error(10071, "wrong last sequence"));
        assert!(!other.contains("full") && other.contains("wrong last"), "{other}");
    }
}
