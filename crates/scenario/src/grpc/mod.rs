//! Types of gRPC: services, their methods, and JSON texts as encoded messages. Nothing of it runs
//! during a load.

pub mod reflection;
#[cfg(test)]
mod tests;
mod types;

pub use types::{GrpcMethod, GrpcTypes, service_and_method};
