//! knee, the command.
fn main() {}
