//! The binary from argv to its exit code: alone, against servers of this machine, and against
//! itself. Nothing here depends on speed: a tolerance is broken by a wrong implementation alone.

mod compare;
mod connections;
mod counts;
mod early_answers;
mod faults;
mod hangs;
mod history;
mod http2_server;
mod inputs;
mod interchange;
mod latency;
mod latency_failures;
mod latency_on_a_link;
mod limits;
mod live;
mod margins;
mod observer;
mod offline;
mod online;
mod overload;
mod qotd;
mod real_http2;
mod real_servers;
mod reports;
mod request_log;
mod scenarios;
mod secure;
mod secure_server;
mod silence;
mod stalls;
mod support;
mod sweeps;
mod throttle;
mod tours;
mod udp;
