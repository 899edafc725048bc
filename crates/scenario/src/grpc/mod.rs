//! Types of gRPC: services, their methods, and JSON texts as encoded messages. Nothing of it runs
//! during a load.

mod descriptor;
mod edition_source;
pub mod reflection;
#[cfg(test)]
mod tests;
mod types;

pub use types::{GrpcMethod, GrpcTypes, any_types, service_and_method};
