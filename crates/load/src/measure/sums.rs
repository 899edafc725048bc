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
