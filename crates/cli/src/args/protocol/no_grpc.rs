//! Takes the place of `grpc` in a build without the feature `grpc`.

use crate::args::responses::CallMessages;
use crate::failure::Failure;
use crate::features::GRPC;
use clap::Args;
use knee_load::spec::{Http2Limits, Target};
use serde::Serialize;

/// No options.
#[derive(Args, Clone, Debug, Serialize)]
pub struct GrpcArgs {}

impl GrpcArgs {
    /// An option that was given.
    pub fn given(&self) -> Option<&'static str> {
        None
    }

    /// The same target, called by gRPC.
    pub fn apply(&self, _: Target, _: Http2Limits, _: CallMessages) -> Result<Target, Failure> {
        Err(GRPC.missing("URL"))
    }
}
