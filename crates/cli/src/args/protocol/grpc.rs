//! Calls of gRPC: where their types come from, and their messages.

use crate::args::first_given;
use crate::args::responses::CallMessages;
use crate::failure::Failure;
use crate::input;
use base64::Engine as _;
use clap::Args;
use knee_engine::{CallResponse, call_once};
use knee_load::measure::{Status, grpc_status_name};
use knee_load::messages::{
    GRPC_PREFIX, MessageFormat, MessageRules, TimedMessages, put_grpc_message,
};
use knee_load::spec::{Body, Http2Limits, HttpRequest, ParseError, Part, Protocol, Target};
use knee_load::time::Nanos;
use knee_scenario::grpc::{GrpcMethod, GrpcTypes, any_types, reflection, service_and_method};
use serde::Serialize;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Streams")]
pub struct GrpcArgs {
    /// File with the types of a gRPC service, repeatable [default: what the server says by
    /// reflection]
    #[arg(long, value_name = "FILE", hide_short_help = true, conflicts_with = "descriptor_set")]
    proto: Vec<String>,

    /// Folder of files that --proto files import, repeatable [default: where those are]
    #[arg(long, value_name = "FOLDER", hide_short_help = true, requires = "proto")]
    import_path: Vec<String>,

    /// Descriptor set with the types, as protoc --include_imports writes it
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    descriptor_set: Option<String>,
}

/// Longest wait for an answer of reflection, …
const REFLECTION_ANSWER_MAX: Duration = Duration::from_secs(5);

/// … and for all answers about a service.
const REFLECTION_MAX: Duration = Duration::from_secs(30);

/// Values of metadata whose names end in `-bin` are base64, with or without padding (gRPC over
/// HTTP/2, "Requests"). One that is filled per call is not looked at.
fn check_binary_metadata(request: &HttpRequest) -> Result<(), ParseError> {
    use base64::alphabet::STANDARD;
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    let padding = DecodePaddingMode::Indifferent;
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(padding);
    let base64 = GeneralPurpose::new(&STANDARD, config);
    let is_read = |value: &str| value.split(',').all(|one| base64.decode(one.trim()).is_ok());
    let wrong = request.headers.iter().find(|(name, value)| {
        name.to_ascii_lowercase().ends_with("-bin") && !value.is_empty() && !is_read(value)
    });
    wrong.map_or(Ok(()), |(name, _)| {
        Err(ParseError(format!("'{name}' ends in -bin, so that its value has to be base64")))
    })
}

impl GrpcArgs {
    /// An option that was given.
    pub fn given(&self) -> Option<&'static str> {
        first_given(&[
            (!self.proto.is_empty(), "--proto"),
            (self.descriptor_set.is_some(), "--descriptor-set"),
        ])
    }

    /// The same target, called by gRPC: its bodies are messages in JSON, which are encoded here.
    /// `messages`: what each sends.
    pub fn apply(
        &self,
        mut target: Target,
        http2: Http2Limits,
        messages: CallMessages,
    ) -> Result<Target, Failure> {
        target.protocol = Protocol::Grpc(http2);
        let mut holes = target.requests.iter().flat_map(|request| &request.holes);
        if holes.any(|hole| matches!(hole.part, Part::Path | Part::Body)) {
            let wrong = "messages of gRPC are encoded before the load: write no ${…} in its steps";
            return Err(Failure::argument("URL", wrong));
        }
        for request in &target.requests {
            check_binary_metadata(request).map_err(|e| Failure::argument("--header", e))?;
        }
        let mut requests = std::mem::take(&mut target.requests);
        let given = self.given_types()?;
        let bodies = requests.iter().map(|request| String::from_utf8_lossy(&request.body));
        let any_types = bodies.flat_map(|json| any_types(&json)).collect();
        let mut learnt = HashMap::new();
        for request in &mut requests {
            let names = service_and_method(&request.path);
            let (service, _) = names.map_err(|e| Failure::argument("URL", e))?;
            let (option, types) = match (&given, learnt.entry(service.to_owned())) {
                (Some((option, types)), _) => (*option, types),
                (None, Entry::Occupied(known)) => ("URL", &*known.into_mut()),
                (None, Entry::Vacant(new)) => {
                    ("URL", &*new.insert(reflected(&target, request, &any_types)?))
                }
            };
            let method = types.method(&request.path).map_err(|e| Failure::argument(option, e))?;
            encode(request, &method, messages)?;
        }
        Ok(Target { requests, ..target })
    }

    /// The types in files, and the option that names them.
    fn given_types(&self) -> Result<Option<(&'static str, GrpcTypes)>, Failure> {
        if let Some(file) = &self.descriptor_set {
            let of_file =
                |e: ParseError| Failure::argument("--descriptor-set", format!("{file}: {e}"));
            let bytes =
                input::read(file).map_err(|e| Failure::argument("--descriptor-set", e.line))?;
            return Ok(Some(("--descriptor-set", GrpcTypes::from_set(&bytes).map_err(of_file)?)));
        }
        if self.proto.is_empty() {
            return Ok(None);
        }
        let read = |path: &str| input::read_text(path).map_err(|failure| failure.line);
        let types = GrpcTypes::from_protos(&self.proto, &self.import_path, read);
        let types = types.map_err(|e| Failure::argument("--proto", e))?;
        Ok(Some(("--proto", types)))
    }
}

/// The types of the service that a request names and those of `any_types`, as the target describes
/// them.
fn reflected(
    target: &Target,
    request: &HttpRequest,
    any_types: &BTreeSet<String>,
) -> Result<GrpcTypes, Failure> {
    let mut paths = reflection::PATHS.iter();
    let mut path = paths.next().copied().unwrap_or_default();
    let (mut failed, begun) = (None, Instant::now());
    let types = reflection::learn(&request.path, any_types, |question| {
        loop {
            let patience = patience_after(begun.elapsed())?;
            let status = match ask(target, request, path, (&question, patience)) {
                Ok(CallResponse { status: Status::Grpc(0), body }) => {
                    return body
                        .get(GRPC_PREFIX..)
                        .map(<[u8]>::to_vec)
                        .ok_or_else(|| ParseError("its reflection gives no answer".to_owned()));
                }
                Ok(CallResponse { status, .. }) => status,
                Err(failure) => {
                    failed = Some(failure);
                    return Err(ParseError(String::new()));
                }
            };
            // An older server knows the older name alone.
            path = paths.next().copied().ok_or_else(|| no_reflection(status))?;
        }
    });
    if let Some(failure) = failed {
        return Err(failure);
    }
    types.map_err(|e| Failure::nothing_measured(format!("{}: {e}", target.endpoint)))
}

/// How long the next answer of reflection is waited for, once all before took this long.
///
/// # Errors
/// [`REFLECTION_MAX`] is over.
fn patience_after(elapsed: Duration) -> Result<Duration, ParseError> {
    match REFLECTION_MAX.saturating_sub(elapsed) {
        Duration::ZERO => {
            let seconds = REFLECTION_MAX.as_secs();
            let hint = "give --proto FILE or --descriptor-set FILE";
            Err(ParseError(format!("its reflection takes over {seconds} s: {hint}")))
        }
        left => Ok(left.min(REFLECTION_ANSWER_MAX)),
    }
}

fn no_reflection(status: Status) -> ParseError {
    let code = status.code();
    let status = match (status, grpc_status_name(code)) {
        (Status::Grpc(_), Some(name)) => format!("gRPC status {code} {name}"),
        _ => format!("status {code}"),
    };
    ParseError(format!("no reflection ({status}): give --proto FILE or --descriptor-set FILE"))
}

/// Calls a method of reflection with one message, within a time.
fn ask(
    target: &Target,
    like: &HttpRequest,
    path: &str,
    (question, patience): (&[u8], Duration),
) -> Result<CallResponse, Failure> {
    let mut body = Vec::new();
    put_grpc_message(question, &mut body);
    let mut request = HttpRequest { path: path.to_owned(), ..like.clone() };
    address(&mut request, body);
    let target = Target { requests: vec![request], ..target.clone() };
    call_once(&target, patience).map_err(|e| Failure::nothing_measured(e.to_string()))
}

/// Makes a call of a request.
fn encode(
    request: &mut HttpRequest,
    method: &GrpcMethod,
    messages: CallMessages,
) -> Result<(), Failure> {
    let json = String::from_utf8_lossy(&request.body).into_owned();
    let body = method.encode(&json).map_err(|e| Failure::argument("--body", e))?;
    request.timed = timed(&body, method, messages)?;
    address(request, body.concat());
    request.answers_stream = method.streams_responses;
    if method.streams_responses && request.messages.is_none() {
        let rules = MessageRules { format: Some(MessageFormat::Grpc), ..MessageRules::default() };
        request.messages = Some(Box::new(rules));
    }
    Ok(())
}

/// How the messages of a call leave, if that is asked for.
fn timed(
    body: &[Vec<u8>],
    method: &GrpcMethod,
    messages: CallMessages,
) -> Result<Option<Box<TimedMessages>>, Failure> {
    let option = match messages {
        CallMessages { number: Some(_), .. } => "--messages",
        CallMessages { rate: Some(_), .. } => "--message-rate",
        CallMessages { .. } => return Ok(None),
    };
    if !method.streams_requests {
        let wrong = "the method takes one message: leave it out, or call one that takes a stream";
        return Err(Failure::argument(option, wrong));
    }
    let length = |message: &Vec<u8>| message.len() as u32;
    let ends = body.iter().map(length).scan(0, |end, length| {
        *end += length;
        Some(*end)
    });
    let number = messages.number.unwrap_or(body.len() as u32);
    let every = messages.rate.map_or(Nanos::ZERO, |rate| rate.moment(1));
    let timed = TimedMessages::new(ends.collect(), number, every, method.streams_responses);
    let timed = timed.ok_or_else(|| Failure::argument("--body", "no message to send: give one"))?;
    Ok(Some(Box::new(timed)))
}

/// Sets what all calls have (gRPC over HTTP2, Requests).
fn address(request: &mut HttpRequest, body: Vec<u8>) {
    request.method = "POST".to_owned();
    request.body = Body::from(body);
    // Places of headers stay, as holes refer to them.
    for (name, value) in [("content-type", "application/grpc"), ("te", "trailers")] {
        let given = request.headers.iter_mut().find(|(other, _)| other.eq_ignore_ascii_case(name));
        match given {
            Some((_, given)) => *given = value.to_owned(),
            None => request.headers.push((name.to_owned(), value.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reflection_ends_in_time_however_many_answers_it_has() {
        let mut elapsed = Duration::ZERO;
        let mut answers = 0;
        while let Ok(patience) = patience_after(elapsed) {
            assert!(!patience.is_zero() && patience <= REFLECTION_ANSWER_MAX);
            elapsed += patience.min(Duration::from_millis(900));
            answers += 1;
        }
        assert_eq!((elapsed, answers), (REFLECTION_MAX, 34));
    }
}
