//! Deadlines of connections, kept in order without a heap.

use knee_load::time::Nanos;

/// No slot.
const NONE: u32 = u32::MAX;

/// The deadlines of numbered slots, each at most one, as a doubly linked list in order of time.
///
/// Deadlines come nearly in order: now + the same timeout. So inserting from the late end looks at
/// one or two links, and removing is immediate. That is cheaper than a heap, and allocates nothing.
#[derive(Debug)]
pub(super) struct Deadlines {
    links: Vec<Link>,
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    at: Nanos,
    before: u32,
    after: u32,
    linked: bool,
}

impl Link {
    const FREE: Link = Link { at: Nanos::ZERO, before: NONE, after: NONE, linked: false };
}

impl Deadlines {
    /// None yet, with room for slots below `capacity`; it grows for others.
    pub(super) fn new(capacity: usize) -> Deadlines {
        Deadlines { links: vec![Link::FREE; capacity], first: NONE, last: NONE }
    }

    /// The slot whose deadline comes first, with it.
    #[inline]
    pub(super) fn first(&self) -> Option<(u32, Nanos)> {
        (self.first != NONE).then(|| (self.first, self.links[self.first as usize].at))
    }

    /// The slot whose deadline comes first, if that is over at `now`.
    #[inline]
    pub(super) fn due(&self, now: Nanos) -> Option<u32> {
        self.first().filter(|(_, at)| *at <= now).map(|(slot, _)| slot)
    }

    /// Time of the first deadline; [`Nanos::MAX`] for none.
    #[inline]
    pub(super) fn next_at(&self) -> Nanos {
        self.first().map_or(Nanos::MAX, |(_, at)| at)
    }

    /// The slots with their deadlines, the first first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Nanos)> + '_ {
        let mut next = self.first;
        std::iter::from_fn(move || {
            let slot = next;
            let link = self.links.get(slot as usize)?;
            next = link.after;
            Some((slot, link.at))
        })
    }

    /// Gives `slot` the deadline `at`, in place of any that it had.
    #[inline]
    pub(super) fn set(&mut self, slot: u32, at: Nanos) {
        self.clear(slot);
        if slot as usize >= self.links.len() {
            self.links.resize(slot as usize + 1, Link::FREE);
        }
        let mut before = self.last;
        while before != NONE && self.links[before as usize].at > at {
            before = self.links[before as usize].before;
        }
        let after = match before {
            NONE => std::mem::replace(&mut self.first, slot),
            _ => std::mem::replace(&mut self.links[before as usize].after, slot),
        };
        match after {
            NONE => self.last = slot,
            _ => self.links[after as usize].before = slot,
        }
        self.links[slot as usize] = Link { at, before, after, linked: true };
    }

    /// Gives `slot` the deadline `at`, unless it has it already; [`Nanos::MAX`] is none.
    #[inline]
    pub(super) fn move_to(&mut self, slot: u32, at: Nanos) {
        match self.links.get(slot as usize) {
            Some(link) if link.linked && link.at == at => {}
            _ if at == Nanos::MAX => self.clear(slot),
            _ => self.set(slot, at),
        }
    }

    /// Whether `slot` has a deadline.
    #[inline]
    pub(super) fn has(&self, slot: u32) -> bool {
        self.links.get(slot as usize).is_some_and(|link| link.linked)
    }

    /// Takes the deadline of `slot` away, if it has one.
    #[inline]
    pub(super) fn clear(&mut self, slot: u32) {
        let Some(&Link { before, after, linked: true, .. }) = self.links.get(slot as usize) else {
            return;
        };
        match before {
            NONE => self.first = after,
            _ => self.links[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            _ => self.links[after as usize].before = before,
        }
        self.links[slot as usize].linked = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn agrees_with_a_sorted_map(steps in prop::collection::vec((0u32..8, 0u64..20), 0..60)) {
            let mut list = Deadlines::new(8);
            let mut model = [None; 8];
            for (slot, at) in steps {
                if at < 5 {
                    list.clear(slot);
                    model[slot as usize] = None;
                } else {
                    list.set(slot, Nanos(at));
                    model[slot as usize] = Some(Nanos(at));
                }
                let earliest = model.iter().flatten().min().copied();
                prop_assert_eq!(list.first().map(|(_, at)| at), earliest);
            }
            let all: Vec<_> = list.iter().collect();
            prop_assert!(all.is_sorted_by_key(|&(_, at)| at));
            prop_assert_eq!(all.len(), model.iter().flatten().count());
            let mut drained = Vec::new();
            while let Some((slot, at)) = list.first() {
                prop_assert_eq!(model[slot as usize].take(), Some(at));
                list.clear(slot);
                drained.push(at);
            }
            prop_assert!(drained.is_sorted() && model.iter().all(Option::is_none));
        }
    }
}
