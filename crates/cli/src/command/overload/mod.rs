//! `knee overload`: load beyond capacity.

mod resolve;
mod target;
#[cfg(test)]
mod tests;

use super::demo::DemoServer;
use super::http_runner::PreparedHttp;
use super::laboratory;
use crate::args::{
    ArrivalArgs, Choices, HttpArgs, Levels, TargetArgs, one_of, parse_count, parse_positive,
    vuser_levels, with_exits,
};
use crate::failure::{Exit, Failure};
use crate::margins;
use crate::output::MeasuredOutputArgs;
use crate::resolved_options::typed;
use clap::Args;
use knee_core::experiment::overload::{
    Descriptors, Overload, OverloadSpec, PreflightFacts, ServerFacts, predict,
};
use knee_core::finding::{Finding, Severity};
use knee_load::arrival::{either, shapes};
use knee_load::spec::{CloseKind, Rate, parse_duration, parse_rate};
use knee_load::time::Nanos;
use serde::Serialize;
use target::FoundTarget;

/// Offer connections far beyond what a server accepts, and see what it does there
///
/// Two kinds of clients, one connection per request or session. Simple clients connect, ask,
/// wait and close: however many there are, they offer no more than the server serves. S-Clients
/// (Banga and Druschel, USITS 1997) keep N connects in flight. Each is abandoned after a time T
/// and replaced, so that they offer what is served plus descriptors/T, whatever the server
/// does. SYNs are counted where they arrive: by a packet capture on the server's host where
/// that is permitted, else by its kernel's counters. Over UDP there is no connect: each request
/// leaves from a port of its own, and T is the time limit for its answer. After the last level the
/// first one is offered again, and the report says whether service came back. With a scenario file
/// each session is an attempt: it opens one connection for all of its steps. Without a URL a small
/// reference server is started in this process, so that there is something to see.
#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(
    after_help = "Example:\n  \
        knee overload http://127.0.0.1:8080/ --descriptors 64,256,1024",
    after_long_help = with_exits("Examples:\n  \
        knee overload\n  \
        knee overload http://127.0.0.1:8080/ --simple 1,4,16,64 --descriptors auto -d 10s\n  \
        knee overload http://127.0.0.1:8080/ --descriptors 64,256,1024 --connect-timeout 250ms\n  \
        knee overload http://10.0.0.5/ --descriptors 4096 --observe 10.0.0.5:9300 --close rst\n  \
        knee overload http://127.0.0.1:8080/ --source 127.0.0.2-127.0.0.20 --descriptors 20000\n  \
        knee overload http://127.0.0.1:8080/ --rate 2000 --arrival 'burst(6,0.05,10s)' -d 60s\n  \
        knee overload grpc://127.0.0.1:50051/knee.Echo/Say -b '{\"text\": \"hi\"}'\n  \
        knee overload shop.yaml --simple 1,16 --descriptors 64,256 --close rst"),
    mut_arg("no_keepalive", |a| a.hide(true)),
    mut_arg("unix_socket", |a| a.hide(true)),
    mut_arg("arrival", |a| a.help(arrival_help())),
    mut_arg("threads", |a| a.help(THREADS_HELP).long_help(THREADS_HELP)),
    mut_arg("observe", |a| a.help(OBSERVE_HELP).long_help(OBSERVE_HELP)),
    mut_arg("timeout", |a| a.help(TIMEOUT_HELP)),
    mut_arg("connect_timeout", |a| {
        a.help(PATIENCE_HELP).default_value("500ms").hide_short_help(false)
    }),
)]
pub struct RawOverload {
    #[command(flatten)]
    #[serde(flatten)]
    target: TargetArgs,

    /// Numbers of simple clients, such as 1,10,100 (at most 1,000 of them), or auto:
    /// 1,2,4,...,256
    /// [default: auto, where no other load is named]
    #[arg(long, value_name = "N,N...", value_parser = vuser_levels, help_heading = "Load")]
    #[serde(serialize_with = "typed")]
    simple: Option<Levels<u32>>,

    /// Connects in flight of all S-Clients together, such as 64,128,256, or auto [default: auto,
    /// where no other load is named]. auto goes up to an offered rate of 16 times the capacity
    ///
    /// At most 1,000 numbers. With --rate one number: the most that the schedule may have in
    /// flight.
    #[arg(long, value_name = "N,N...", value_parser = vuser_levels, help_heading = "Load")]
    #[serde(serialize_with = "typed")]
    descriptors: Option<Levels<u32>>,

    /// S-Clients that share the descriptors [default: 12]
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = "Load")]
    #[arg(hide_short_help = true)]
    sclients: Option<u32>,

    /// In place of S-Clients: connections started per second on a schedule, such as 2000
    #[arg(short = 'R', long, value_name = "N", value_parser = parse_rate, help_heading = "Load")]
    #[serde(serialize_with = "typed")]
    rate: Option<Rate>,

    #[command(flatten)]
    #[serde(skip)]
    arrivals: ArrivalArgs,

    /// How a connection is closed: fin (in order) or rst (no port stays in TIME_WAIT). Not over
    /// UDP
    #[arg(long, value_name = "HOW", default_value = "fin", value_parser = one_of(CLOSES))]
    #[arg(hide_possible_values = true, help_heading = "Load")]
    close: CloseKind,

    /// Measured time per level, and of the base load after the last
    #[arg(short, long, value_name = "T", default_value = "5s", value_parser = parse_positive)]
    #[arg(help_heading = "Time")]
    #[serde(serialize_with = "typed")]
    duration: Nanos,

    /// Warm-up time, excluded from the results [default: 1s, or the connect timeout if that is
    /// longer]
    #[arg(long, value_name = "T", value_parser = parse_duration, help_heading = "Time")]
    #[serde(serialize_with = "typed")]
    warmup: Option<Nanos>,

    #[command(flatten)]
    #[serde(flatten)]
    http: HttpArgs,

    #[command(flatten)]
    #[serde(skip)]
    output: MeasuredOutputArgs,
}

fn arrival_help() -> String {
    format!("When connections start: {}", either(&shapes(None)))
}

const THREADS_HELP: &str = "Worker threads [default: one per available core, or half as many where \
                            the target is on this host; with given descriptors or a rate at most one per 10,000 starts per second; the \
                            built-in server takes one core]";

const OBSERVE_HELP: &str = "Observer at the server's host, for SYNs, queues, drops and processor \
    time: the address of a 'knee observe', or 'here' [default: here, if the server runs on this \
    host; else knee counts its own attempts]. If named, also for the time of operations inside \
    that host, which costs some processor time per connection";

const TIMEOUT_HELP: &str = "Time limit for a response, counted from its connection's intended \
                            time; also for a simple client's connect [default: 10s]";

const PATIENCE_HELP: &str = "T: time after which an unanswered connect, or request over UDP, is \
    replaced; should be below 1s, when a SYN is repeated";

/// An overload that cannot be wrong.
pub type ResolvedOverload = PreparedHttp<OverloadSpec>;

/// Makes the overload and reports it.
pub fn execute(mut overload: ResolvedOverload) -> Result<Exit, Failure> {
    overload.announce();
    let notes = overload.setup.output.notes();
    let fleet = overload.fleet.take();
    let is_here = fleet.is_none();
    let mut target = match FoundTarget::find(&overload.spec, &overload.observe, fleet) {
        Ok(target) => target,
        Err(e) => {
            let experiment = Overload::new(overload.spec);
            return laboratory::unreached(overload.setup, &experiment, e);
        }
    };
    if !target.answers {
        notes.say("note: the target did not answer a first connect; going on");
    }
    if is_here {
        overload.spec.base.engine.margins = margins::of_this_machine(notes);
    }
    notes.say(&announcement(&overload.spec));
    let facts = known(target.facts(&overload.spec)?, overload.demo.is_some());
    // What is foretold rests on what is known of one host that all connections come from.
    let foreseen = if is_here { predict(&facts, &overload.spec) } else { Vec::new() };
    for finding in &foreseen {
        notes.say(&prediction(finding));
    }
    let mut experiment = Overload::new(overload.spec).with_foreseen(foreseen);
    laboratory::conduct(overload.setup, &mut experiment, &mut target.runner)
}

/// The facts with what is known of the built-in server, where it is the target.
fn known(facts: PreflightFacts, is_demo: bool) -> PreflightFacts {
    if !is_demo {
        return facts;
    }
    let (capacity_per_s, backlog) = DemoServer::SMALL;
    PreflightFacts {
        served_per_s: Some(capacity_per_s),
        server: facts.server.map(|server| ServerFacts { backlog: Some(backlog), ..server }),
        ..facts
    }
}

/// How many levels there are and how long they take.
fn announcement(spec: &OverloadSpec) -> String {
    let trials = spec.trials_max();
    let (levels, again) = match trials {
        1 => (1, ""),
        _ => (trials - 1, " and the base load again,"),
    };
    let is_open = spec.scheduled.is_none() && spec.descriptors == Descriptors::Auto;
    let at_most = if is_open { "at most " } else { "" };
    let each = spec.base.warmup + spec.base.duration;
    let total = Nanos(each.0.saturating_mul(trials as u64));
    let noun = if levels == 1 { "level" } else { "levels" };
    format!(
        "{at_most}{levels} {noun}{again} of {each} each: {at_most}{total}, and after each up to \
         {} for responses still to come",
        spec.base.timeout
    )
}

/// A finding that was predicted, in one line.
fn prediction(finding: &Finding) -> String {
    let word = match finding.severity {
        Severity::Info => "note",
        Severity::Warning | Severity::Error => "warning",
    };
    let (text, remedy) = (&finding.text, &finding.next_step);
    if remedy.is_empty() {
        format!("{word}: {text}")
    } else {
        format!("{word}: {text}. Remedy: {remedy}")
    }
}

const CLOSES: Choices<CloseKind> = &[("fin", CloseKind::Fin), ("rst", CloseKind::Rst)];
