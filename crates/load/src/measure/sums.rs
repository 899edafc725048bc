//! Sums of what several workers counted, or of what was counted in several windows.

use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Adds numbers place by place. Places that the first list lacks are added to it.
pub(super) fn add_each<T: AddAssign + Copy + Default>(mine: &mut Vec<T>, theirs: &[T]) {
    mine.resize(mine.len().max(theirs.len()), T::default());
    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += *theirs);
}

/// Adds numbers name by name.
pub(super) fn add_by_name<K: Ord, T: AddAssign + Default>(
    mine: &mut BTreeMap<K, T>,
    theirs: BTreeMap<K, T>,
) {
    for (name, more) in theirs {
        *mine.entry(name).or_default() += more;
    }
}

/// Merges two values that may be absent.
pub(super) fn merge_some<T>(
    mine: &mut Option<T>,
    theirs: Option<T>,
    merge: impl FnOnce(&mut T, T),
) {
    match (mine.as_mut(), theirs) {
        (Some(mine), Some(theirs)) => merge(mine, theirs),
        (None, theirs) => *mine = theirs,
        (Some(_), None) => {}
    }
}

/// Merges two lists pair by pair. An empty list is absent.
pub(super) fn merge_each<T>(mine: &mut Vec<T>, theirs: Vec<T>, merge: impl Fn(&mut T, T)) {
    if mine.is_empty() {
        *mine = theirs;
    } else {
        mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| merge(mine, theirs));
    }
}

/// Declares a struct whose values merge field by field, in `merge_fields`. Each field says how: its
/// numbers add up (`add`), the larger or the smaller one stays (`most`, `least`), the first one that
/// is there stays (`first`), or it merges itself (`merge`, `merge_taken`, `merge_some`). What takes
/// more is done `by_hand`.
macro_rules! merged {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$about_field:meta])* pub $field:ident: $type:ty => $how:ident,)*
        }
    ) => {
        $(#[$about])*
        pub struct $name {
            $($(#[$about_field])* pub $field: $type,)*
        }

        impl $name {
            /// Merges all fields but those that are merged by hand, and takes them from `other`.
            fn merge_fields(&mut self, other: &mut $name) {
                $(merged!(@$how self.$field, other.$field);)*
            }
        }
    };
    (@by_hand $mine:expr, $theirs:expr) => {};
    (@add $mine:expr, $theirs:expr) => { $mine += $theirs };
    (@most $mine:expr, $theirs:expr) => { $mine = $mine.max($theirs) };
    (@least $mine:expr, $theirs:expr) => { $mine = $mine.into_iter().chain($theirs).min() };
    (@first $mine:expr, $theirs:expr) => { $mine = $mine.take().or($theirs.take()) };
    (@merge $mine:expr, $theirs:expr) => { $mine.merge(&$theirs) };
    (@merge_taken $mine:expr, $theirs:expr) => { $mine.merge(std::mem::take(&mut $theirs)) };
    (@merge_some $mine:expr, $theirs:expr) => {
        merge_some(&mut $mine, $theirs.take(), |mine, theirs| mine.merge(theirs))
    };
}
pub(super) use merged;
