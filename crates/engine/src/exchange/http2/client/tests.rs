//! The client against another implementation, and against servers that misbehave.

mod oracle;
