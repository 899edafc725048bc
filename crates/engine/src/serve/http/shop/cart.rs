//! What the users have in their carts.

use std::collections::{HashMap, VecDeque};

/// So many carts are kept: beyond, the one that was begun first is dropped.
const CARTS_MAX: usize = 10_000;
/// And so many items of each: beyond, the one that was put in first.
const ITEMS_MAX: usize = 100;

/// All carts.
#[derive(Debug, Default)]
pub(super) struct Carts {
    of: HashMap<String, VecDeque<String>>,
    /// Their users, in the order in which the carts were begun.
    begun: VecDeque<String>,
}

impl Carts {
    /// Puts an item into a cart, and says how many it then holds.
    pub(super) fn add(&mut self, user: String, id: String) -> usize {
        if !self.of.contains_key(&user) {
            if self.begun.len() >= CARTS_MAX
                && let Some(first) = self.begun.pop_front()
            {
                self.of.remove(&first);
            }
            self.begun.push_back(user.clone());
        }
        let cart = self.of.entry(user).or_default();
        if cart.len() >= ITEMS_MAX {
            cart.pop_front();
        }
        cart.push_back(id);
        cart.len()
    }

    /// The ids in a cart, the first first.
    pub(super) fn of(&self, user: &str) -> Vec<&str> {
        let cart = self.of.get(user).into_iter().flatten();
        cart.map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first() {
        let mut carts = Carts::default();
        for n in 0..=CARTS_MAX {
            assert_eq!(carts.add(format!("u{n}"), "i1".to_owned()), 1);
        }
        assert_eq!((carts.of.len(), carts.begun.len()), (CARTS_MAX, CARTS_MAX));
        assert!(carts.of("u0").is_empty() && carts.of("u1") == ["i1"]);
        let counts: Vec<usize> = (0..=ITEMS_MAX)
            .map(|n| carts.add("x".to_owned(), format!("i{n}")))
            .collect();
        assert_eq!((counts[0], counts[ITEMS_MAX]), (1, ITEMS_MAX));
        assert_eq!(carts.of("x")[0], "i1");
    }
}
