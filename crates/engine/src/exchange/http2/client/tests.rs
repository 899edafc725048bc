//! The client against another implementation, and against servers that misbehave.

mod allowed;
mod floods;
mod flow;
pub(crate) mod grpc;
mod malformed;
mod misbehaviour;
mod oracle;
mod rig;
mod session;
mod split;
mod timed;
