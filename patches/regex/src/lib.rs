//! `regex-lite` under the name of `regex`.
//!
//! async-nats tells by four regular expressions of ASCII whether a name may be that of a bucket
//! or of an object. For them all of `regex` would be 1 MB of the binary and 15 s of its build: its
//! authors' own smaller library has the same interface, and does the same.

pub use regex_lite::*;
