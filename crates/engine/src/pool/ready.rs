//! Connections with room for another operation.

/// No place in a level.
const NONE: u32 = u32::MAX;

/// Connections with room, by how many operations each carries. Of those that carry fewest, the one
/// that was used last comes first: its caches are warm, and the others may rest. Where all are to
/// be used, they take turns.
#[derive(Debug, Default)]
pub(super) struct Ready {
    levels: Vec<Vec<u32>>,
    /// Level of each connection, and its place there.
    places: Vec<[u32; 2]>,
    /// No level below it has a connection.
    lowest: usize,
    /// Number of the next turn; `None`: the one used last comes first.
    turn: Option<usize>,
}

impl Ready {
    /// No connection has room yet, of `slots`.
    pub(super) fn new(slots: usize, take_turns: bool) -> Ready {
        let (places, turn) = (vec![[NONE; 2]; slots], take_turns.then_some(0));
        Ready { levels: Vec::new(), places, lowest: 0, turn }
    }

    /// A connection that carries `operations` has room for one more.
    #[inline]
    pub(super) fn insert(&mut self, slot: u32, operations: u32) {
        self.remove(slot);
        let level = operations as usize;
        if level >= self.levels.len() {
            self.levels.resize_with(level + 1, Vec::new);
        }
        self.places[slot as usize] = [operations, self.levels[level].len() as u32];
        self.levels[level].push(slot);
        self.lowest = self.lowest.min(level);
    }

    /// A connection has no room, or is gone.
    #[inline]
    pub(super) fn remove(&mut self, slot: u32) {
        let [level, at] = std::mem::replace(&mut self.places[slot as usize], [NONE; 2]);
        if level == NONE {
            return;
        }
        let level = &mut self.levels[level as usize];
        level.swap_remove(at as usize);
        if let Some(&moved) = level.get(at as usize) {
            self.places[moved as usize][1] = at;
        }
    }

    /// The next connection of those with the fewest operations, and their number. It stays.
    #[inline]
    pub(super) fn first(&mut self) -> Option<(u32, u32)> {
        while let Some(level) = self.levels.get(self.lowest) {
            if let Some(&last) = level.last() {
                let slot = match &mut self.turn {
                    None => last,
                    Some(turn) => {
                        *turn = if *turn + 1 < level.len() { *turn + 1 } else { 0 };
                        level[*turn]
                    }
                };
                return Some((slot, self.lowest as u32));
            }
            self.lowest += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn the_first_is_one_that_carries_fewest(
            steps in prop::collection::vec((0_u32..6, 0_u32..5), 0..60),
        ) {
            let mut ready = Ready::new(6, false);
            let mut model = [None; 6];
            for (slot, operations) in steps {
                if operations == 4 {
                    ready.remove(slot);
                    model[slot as usize] = None;
                } else {
                    ready.insert(slot, operations);
                    model[slot as usize] = Some(operations);
                }
                let first = ready.first();
                prop_assert_eq!(first.map(|f| f.1), model.iter().flatten().min().copied());
                if let Some((slot, operations)) = first {
                    prop_assert_eq!(model[slot as usize], Some(operations));
                }
            }
        }
    }

    #[test]
    fn connections_take_turns_where_all_are_to_be_used() {
        let mut ready = Ready::new(3, true);
        (0..3).for_each(|slot| ready.insert(slot, 0));
        let mut first = || ready.first().map(|(slot, _)| slot);
        let six: Vec<_> = (0..6).filter_map(|_| first()).collect();
        assert_eq!(six, [1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn of_equals_the_one_used_last_comes_first() {
        let mut ready = Ready::new(3, false);
        for slot in [0, 1, 2, 1] {
            ready.insert(slot, 0);
        }
        assert_eq!(ready.first(), Some((1, 0)));
    }
}
