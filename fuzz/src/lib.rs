//! What the fuzzers check: one module per target, each with `check(data: &[u8])`, which panics
//! where something does not hold. The engine's tests run the same checks over the seeds.

pub mod access_log;
pub mod content_coding;
pub mod cookie_date;
pub mod data_segment;
pub mod dns;
pub mod dns_names;
pub mod grpc_answer;
pub mod grpc_types;
pub mod hpack;
pub mod http1_request;
pub mod http1_response;
pub mod http2_client;
pub mod http3;
pub mod import_file;
pub mod latency_control;
pub mod latency_text;
pub mod messages;
pub mod observe_control;
pub mod scenario_file;
pub mod script_file;
pub mod stream_api;
pub mod sweep_csv;
pub mod syn_segment;
pub mod targets_file;
pub mod udp_control;
pub mod url;
pub mod websocket;
