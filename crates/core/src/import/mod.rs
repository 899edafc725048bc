//! What other programs know of a load, in knee's terms.

pub mod data;
