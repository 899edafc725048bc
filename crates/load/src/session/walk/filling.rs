//! What a user puts into the holes of its next request.

use super::Walk;
use super::unexpected::{SHOWN_MAX, text_of};
use crate::session::escape::{UnfitReason, is_control};
use crate::session::fill::{FILLED_BYTES_MAX, FillScope, Fills};
use crate::session::template::{Escape, Fill};
use crate::session::users::Users;
use crate::shown::shown;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// What is put into a hole of a request.
enum HoleContent<'a> {
    /// A value.
    Value(&'a Fill),
    /// Nothing, in a place for a value that is made fit so.
    Nothing(Escape),
    /// These bytes as they are.
    Bytes(&'a [u8]),
}

/// A value that its place in a request cannot have: the step is not sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfitValue {
    /// The number of the request.
    pub request: u32,
    /// The number of the hole in it.
    pub hole: u16,
    /// What does not fit in the value, in words. The value itself may be a secret.
    pub misfit: String,
    /// Why its place cannot have it.
    pub reason: UnfitReason,
}

impl UnfitValue {
    /// The value that says how often steps are repeated; `request` is the first of them.
    pub fn of_repetition(request: u32, reason: UnfitReason) -> UnfitValue {
        UnfitValue { request, hole: 0, misfit: misfit(b"", reason), reason }
    }
}

impl Walk {
    /// Fills the holes of a request, those that wait for what a program gives with nothing. Says
    /// which request is to be sent: the variant for the server to which a value leads.
    /// `path` has the number of holes in the path, and what puts the path together once they are
    /// filled.
    ///
    /// # Errors
    /// A place in the request cannot have its value.
    pub fn fill(
        &mut self,
        request: u32,
        users: &mut Users,
        realtime_ns: u64,
        fills: &mut Fills,
        path: (usize, impl FnOnce(&Fills, &mut Vec<u8>)),
    ) -> Result<u32, UnfitValue> {
        let plan = Rc::clone(users.plan());
        let step = &plan.requests[request as usize];
        let waits = step.ask.as_ref().map_or(&[][..], |ask| &ask.waits);
        std::mem::swap(&mut self.path, &mut self.before);
        self.server_before = std::mem::replace(&mut self.server, step.server);
        let location = std::mem::take(&mut self.location);
        let of_redirect = self.redirected_from.map(|_| HoleContent::Bytes(&location));
        let own = step.fills.iter().zip(0u16..);
        let own = own.map(|(fill, number)| {
            if waits.contains(&number) {
                HoleContent::Nothing(fill.escape)
            } else {
                HoleContent::Value(fill)
            }
        });
        let holes = own.skip(usize::from(of_redirect.is_some()));
        if of_redirect.is_some() && !std::mem::replace(&mut self.is_sent_kept, true) {
            // Those of the step itself are still there.
            std::mem::swap(&mut self.sent, fills);
        }
        fills.clear();
        let holes = of_redirect.into_iter().chain(holes);
        let filled = self.put(request, holes, (users, realtime_ns), fills, path);
        self.location = location;
        filled
    }

    /// Puts something into each hole of a request, in their order.
    fn put<'a>(
        &mut self,
        request: u32,
        holes: impl Iterator<Item = HoleContent<'a>>,
        (users, realtime_ns): (&mut Users, u64),
        fills: &mut Fills,
        (path_holes, path_of): (usize, impl FnOnce(&Fills, &mut Vec<u8>)),
    ) -> Result<u32, UnfitValue> {
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        let mut path_of = Some(path_of);
        let mut refused = None;
        for (count, hole) in holes.enumerate() {
            if count == path_holes
                && let Some(path_of) = path_of.take()
            {
                path_of(fills, &mut path);
            }
            let mut scope = FillScope { path: &path, ..self.scope(users, realtime_ns) };
            match hole {
                HoleContent::Value(fill) => {
                    if let Err(reason) = scope.fill(fill, fills) {
                        refused = Some((count, reason));
                        break;
                    }
                    self.server = scope.server;
                }
                HoleContent::Nothing(Escape::JsonValue) => fills.push(b"\"\""),
                HoleContent::Nothing(_) => fills.push(b""),
                HoleContent::Bytes(bytes) => fills.push(bytes),
            }
        }
        if let Some(path_of) = path_of {
            path_of(fills, &mut path);
        }
        self.path = path;
        let plan = users.plan();
        match (refused, plan.on_server(request, self.server)) {
            (None, Some(request)) => Ok(request),
            (refused, _) => {
                let (hole, reason) = refused.unwrap_or((0, UnfitReason::Elsewhere));
                Err(UnfitValue {
                    request: self.reads_as(request, plan),
                    hole: hole as u16,
                    misfit: misfit(fills.refused(), reason),
                    reason,
                })
            }
        }
    }

    /// Fills the holes of a request that waited for a program's answer. All others stay as
    /// [`Walk::fill`] filled them, so that what is sent is what the program was told. Says which
    /// request is to be sent, as that does.
    ///
    /// # Errors
    /// As of [`Walk::fill`].
    pub fn fill_waiting(
        &mut self,
        request: u32,
        users: &mut Users,
        realtime_ns: u64,
        fills: &mut Fills,
        path: (usize, impl FnOnce(&Fills, &mut Vec<u8>)),
    ) -> Result<u32, UnfitValue> {
        let plan = Rc::clone(users.plan());
        let step = &plan.requests[request as usize];
        let waits = step.ask.as_ref().map_or(&[][..], |ask| &ask.waits);
        let before = std::mem::take(fills);
        let all = step.fills.iter().zip(0u16..);
        let holes = all.map(|(fill, number)| {
            if waits.contains(&number) {
                HoleContent::Value(fill)
            } else {
                HoleContent::Bytes(before.get(usize::from(number)))
            }
        });
        self.put(request, holes, (users, realtime_ns), fills, path)
    }
}

/// What does not fit in a value, which may itself be a secret.
fn misfit(value: &[u8], reason: UnfitReason) -> String {
    let first = |is_such: fn(&u8) -> bool| {
        let at = value.iter().position(is_such).unwrap_or_default();
        let byte = value.get(at).copied().unwrap_or_default();
        format!("a value with '{}' at byte {}", byte.escape_ascii(), at + 1)
    };
    match reason {
        UnfitReason::Control => first(is_control),
        UnfitReason::Semicolon => first(|byte| *byte == b';'),
        UnfitReason::Empty => "an empty value".to_owned(),
        UnfitReason::NoCount => "a value that is no whole number".to_owned(),
        UnfitReason::NoArray => "a value that is no JSON array".to_owned(),
        UnfitReason::TooLong => {
            format!("a value of over {} MiB", FILLED_BYTES_MAX >> 20)
        }
        UnfitReason::Elsewhere => {
            let server = text_of(server_of(value));
            let short: String = server.chars().take(SHOWN_MAX).collect();
            format!("a URL of '{}'", shown(&short))
        }
    }
}

/// Scheme, host and port of a URL, or the scheme alone; no user, path or query.
fn server_of(url: &[u8]) -> &[u8] {
    let host = url.windows(2).position(|pair| pair == b"//").map(|at| at + 2);
    let Some(host) = host else {
        let scheme = url.iter().position(|byte| *byte == b':');
        return &url[..scheme.unwrap_or_default()];
    };
    let authority = &url[host..];
    let end = authority.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    let authority = &authority[..end.unwrap_or(authority.len())];
    match authority.iter().rposition(|byte| *byte == b'@') {
        Some(user) => &authority[user + 1..],
        None => &url[..host + authority.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_told_without_the_value() {
        for (value, reason, want) in [
            ("pass\r\nword", UnfitReason::Control, "a value with '\\r' at byte 5"),
            ("\0", UnfitReason::Control, "a value with '\\x00' at byte 1"),
            ("a;b", UnfitReason::Semicolon, "a value with ';' at byte 2"),
            ("", UnfitReason::Empty, "an empty value"),
            ("", UnfitReason::TooLong, "a value of over 16 MiB"),
            ("http://h:1/a?key=b", UnfitReason::Elsewhere, "a URL of 'http://h:1'"),
            ("//u:pass@h?key=b", UnfitReason::Elsewhere, "a URL of 'h'"),
            ("mailto:a@b", UnfitReason::Elsewhere, "a URL of 'mailto'"),
        ] {
            assert_eq!(misfit(value.as_bytes(), reason), want);
        }
    }
}
