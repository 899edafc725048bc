//! What a user puts into the holes of its next request.

use super::{SHOWN_MAX, Walk, text_of};
use crate::session::escape::Reason;
use crate::session::fill::{Fills, Scope};
use crate::session::plan::{Escape, Fill};
use crate::session::users::Users;
use crate::shown::push_shown;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// What is put into a hole of a request.
enum Put<'a> {
    /// A value.
    Value(&'a Fill),
    /// Nothing, in a place for a value that is made fit so.
    Nothing(Escape),
    /// These bytes as they are.
    Bytes(&'a [u8]),
}

/// A value that its place in a request cannot have: the step is not sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfit {
    /// The number of the request.
    pub request: u32,
    /// The number of the hole in it.
    pub hole: u16,
    /// The value, shortened, with control characters spelt out.
    pub value: String,
    /// Why its place cannot have it.
    pub reason: Reason,
}

impl Walk {
    /// Fills the holes of a request, those that wait for what a program gives with nothing.
    /// `path_of` gives the path that results once those of the path are filled, of which there are
    /// `path_holes`.
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
    ) -> Result<(), Unfit> {
        let plan = Rc::clone(users.plan());
        let step = &plan.requests[request as usize];
        let waits = step.ask.as_ref().map_or(&[][..], |ask| &ask.waits);
        std::mem::swap(&mut self.path, &mut self.before);
        let location = std::mem::take(&mut self.location);
        let of_redirect = self.redirected_from.map(|_| Put::Bytes(&location));
        let own = step.fills.iter().zip(0u16..);
        let own = own.map(|(fill, number)| {
            if waits.contains(&number) {
                Put::Nothing(fill.escape)
            } else {
                Put::Value(fill)
            }
        });
        let holes = own.skip(usize::from(of_redirect.is_some()));
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
        holes: impl Iterator<Item = Put<'a>>,
        (users, realtime_ns): (&mut Users, u64),
        fills: &mut Fills,
        (path_holes, path_of): (usize, impl FnOnce(&Fills, &mut Vec<u8>)),
    ) -> Result<(), Unfit> {
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
            let mut scope = Scope {
                learnt: &self.learnt,
                users,
                path: &path,
                before: &self.before,
                realtime_ns,
            };
            match hole {
                Put::Value(fill) => {
                    if let Err(reason) = scope.fill(fill, fills) {
                        refused = Some((count, reason));
                        break;
                    }
                }
                Put::Nothing(Escape::JsonValue) => fills.push(b"\"\""),
                Put::Nothing(_) => fills.push(b""),
                Put::Bytes(bytes) => fills.push(bytes),
            }
        }
        if let Some(path_of) = path_of {
            path_of(fills, &mut path);
        }
        self.path = path;
        refused.map_or(Ok(()), |(hole, reason)| {
            Err(Unfit {
                request: self.reads_as(request),
                hole: hole as u16,
                value: spelt(fills.refused()),
                reason,
            })
        })
    }

    /// Fills the holes of a request that waited for a program's answer. All others stay as
    /// [`Walk::fill`] filled them, so that what is sent is what the program was told.
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
    ) -> Result<(), Unfit> {
        let plan = Rc::clone(users.plan());
        let step = &plan.requests[request as usize];
        let waits = step.ask.as_ref().map_or(&[][..], |ask| &ask.waits);
        let before = std::mem::take(fills);
        let all = step.fills.iter().zip(0u16..);
        let holes = all.map(|(fill, number)| {
            if waits.contains(&number) {
                Put::Value(fill)
            } else {
                Put::Bytes(before.get(usize::from(number)))
            }
        });
        self.put(request, holes, (users, realtime_ns), fills, path)
    }
}

/// A value for people: short, control characters as escapes, so that a line end is seen.
fn spelt(bytes: &[u8]) -> String {
    let text = text_of(bytes);
    let short: String = text.chars().take(SHOWN_MAX).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    let mut out = String::new();
    for c in short.chars() {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            push_shown(&mut out, c);
        }
    }
    format!("'{out}{dots}'")
}
