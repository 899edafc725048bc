//! What the numbers mean.
