//! What the shop sells: 1,000 items, the same in every shop.

use serde::Serialize;

/// How many items there are.
const ITEMS: u32 = 1000;
/// And how many on a page.
const PAGE: u32 = 10;

/// One of them.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Item {
    /// `i1` to `i1000`.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) price: f64,
}

/// The item with this id.
pub(super) fn find(id: &str) -> Option<Item> {
    let digits = id.strip_prefix('i')?;
    let number = digits.parse().ok()?;
    // One id each: neither `i01` nor `i+1` is another.
    let item = (1..=ITEMS).contains(&number).then(|| item(number))?;
    (item.id == id).then_some(item)
}

/// The items of a page, from 1; none beyond the last page.
pub(super) fn page(page: u32) -> impl Iterator<Item = Item> {
    let first = page
        .saturating_sub(1)
        .saturating_mul(PAGE)
        .saturating_add(1);
    (first..first.saturating_add(PAGE))
        .take_while(|&number| number <= ITEMS)
        .map(item)
}

fn item(number: u32) -> Item {
    const KINDS: [&str; 7] = ["cup", "lamp", "chair", "clock", "book", "scarf", "kettle"];
    const LOOKS: [&str; 5] = ["red", "round", "quiet", "small", "old"];
    let (kind, look) = (number as usize % KINDS.len(), number as usize % LOOKS.len());
    Item {
        id: format!("i{number}"),
        name: format!("{} {}", LOOKS[look], KINDS[kind]),
        price: f64::from(100 + number * 37 % 9900) / 100.0,
    }
}
