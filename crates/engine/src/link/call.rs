//! One operation over a connection of its own, before any load, with its whole response.

use super::TlsTarget;
use super::greet::{SecuredStream, converse, only_connection, secure};
use crate::exchange::http2::Http2;
use crate::exchange::http2::frame::{self, FrameHead, kind};
use crate::exchange::{CallContext, Conversation, EventQueue, OpEvent, Outbox, TargetConversation};
use knee_load::measure::Status;
use knee_load::spec::Target;
use knee_load::time::Nanos;
use std::io::{Read, Write};
use std::time::Duration;

/// Longest response, in bytes.
const RESPONSE_MAX: usize = 64 << 20;

/// A response to a call of gRPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResponse {
    /// The status of the call, or of HTTP if that failed.
    pub status: Status,
    /// Its messages as they came, each behind its length.
    pub body: Vec<u8>,
}

/// Makes the first request of a target of gRPC.
///
/// # Errors
/// Why there is no whole response, in words.
pub(crate) fn call(
    stream: &mut (impl Read + Write + ?Sized),
    target: &Target,
    tls: Option<TlsTarget>,
    patience: Duration,
) -> Result<CallResponse, String> {
    match tls {
        None => call_over(stream, target, patience),
        Some(tls) => {
            let (tls, _) = secure(stream, tls, patience)?;
            call_over(&mut SecuredStream::new(stream, tls), target, patience)
        }
    }
}

fn call_over(
    stream: &mut (impl Read + Write + ?Sized),
    target: &Target,
    patience: Duration,
) -> Result<CallResponse, String> {
    let worker = only_connection(target, patience);
    let (mut out, mut events) = (Outbox::default(), EventQueue::default());
    let shared = &mut Http2::shared(&target.protocol.http(), &worker);
    let cx = &mut CallContext { now: Nanos::ZERO, shared, out: &mut out, events: &mut events };
    let mut conversation = Http2::established(cx);
    conversation.start(0, 0.into(), cx);
    let mut wire = Vec::new();
    converse(stream, &mut conversation, cx, patience, |_, bytes, events| {
        wire.extend_from_slice(bytes);
        if wire.len() > RESPONSE_MAX {
            return Some(Err("its response is too long".to_owned()));
        }
        let mut end = None;
        for event in events {
            end = match event {
                OpEvent::Answered { status, .. } => {
                    Some(Ok(CallResponse { status, body: content(&wire) }))
                }
                OpEvent::Failed { outcome, .. } => Some(Err(outcome.meaning().to_owned())),
                // The reason comes after what fails by it.
                OpEvent::Violated(why) | OpEvent::Reset(why) => Some(Err(why)),
                _ => end,
            }
        }
        end
    })
}

/// The content of all DATA frames in what a server sent, which has been checked.
fn content(wire: &[u8]) -> Vec<u8> {
    let (mut rest, mut content) = (wire, Vec::new());
    while let Some((head, after)) = FrameHead::read(rest)
        && let Some((payload, next)) = after.split_at_checked(head.length as usize)
    {
        if head.kind == kind::DATA
            && let Ok(bytes) = frame::content(head, payload)
        {
            content.extend_from_slice(bytes);
        }
        rest = next;
    }
    content
}
