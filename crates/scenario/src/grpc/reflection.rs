//! Server reflection (grpc.reflection.v1 and v1alpha, whose messages are the same): what to ask a
//! server, and the types in its answers.

use super::descriptor;
use super::types::{GrpcTypes, service_and_method, unknown_name};
use knee_load::quantity::ParseError;
use prost::Message as _;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::FileDescriptorProto;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Paths of the method that answers, the preferred first.
pub const PATHS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// Most files of a service, with all that they import.
const FILES_MAX: usize = 1000;

/// Most bytes of all these files together.
const FILES_BYTES_MAX: usize = 32 << 20;

/// A question.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Question {
    /// A name of a file, …
    #[prost(string, optional, tag = "3")]
    pub(super) file: Option<String>,
    /// … of something that a file declares, …
    #[prost(string, optional, tag = "4")]
    pub(super) symbol: Option<String>,
    /// … or anything, for all services.
    #[prost(string, optional, tag = "7")]
    pub(super) services: Option<String>,
}

/// An answer.
#[derive(Clone, PartialEq, prost::Message)]
struct Answer {
    #[prost(message, optional, tag = "4")]
    files: Option<Files>,
    #[prost(message, optional, tag = "6")]
    services: Option<Services>,
    #[prost(message, optional, tag = "7")]
    error: Option<ErrorAnswer>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Files {
    /// Encoded descriptors of files.
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    services: Vec<Service>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ErrorAnswer {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// Learns the types of the service that `path` names, and the types named in `any_types`. `ask`
/// sends an encoded question and returns the encoded answer.
///
/// # Errors
/// The server does not know the service or a type, or what `ask` fails with.
pub fn learn(
    path: &str,
    any_types: &BTreeSet<String>,
    mut ask: impl FnMut(Vec<u8>) -> Result<Vec<u8>, ParseError>,
) -> Result<GrpcTypes, ParseError> {
    let (service, _) = service_and_method(path)?;
    let mut put = |question: Question| {
        let answer = ask(question.encode_to_vec())?;
        Answer::decode(answer.as_slice())
            .map_err(|e| ParseError(format!("its reflection gives no answer: {e}")))
    };
    let of_symbol = |name: &str| Question { symbol: Some(name.to_owned()), ..Question::default() };
    let Some(found) = put(of_symbol(service))?.files else {
        let all = put(Question { services: Some(String::new()), ..Question::default() })?;
        let names = all.services.unwrap_or_default().services.into_iter().map(|s| s.name);
        return Err(unknown_name("service", service, names));
    };
    let well_known = DescriptorPool::global();
    let mut left = VecDeque::from(found.files);
    for name in any_types.iter().filter(|name| well_known.get_message_by_name(name).is_none()) {
        let wrong = || ParseError(format!("its reflection lacks the type {name} of an Any"));
        left.extend(put(of_symbol(name))?.files.ok_or_else(wrong)?.files);
    }
    // Files by name, and whether each has come; others are wanted.
    let (mut files, mut names) = (Vec::new(), BTreeMap::new());
    names.extend(well_known.files().map(|file| (file.name().to_owned(), true)));
    let known = names.len();
    let (mut wanted, mut bytes_left) = (Vec::new(), FILES_BYTES_MAX);
    loop {
        while let Some(bytes) = left.pop_front() {
            bytes_left = bytes_left.checked_sub(bytes.len()).ok_or_else(|| {
                ParseError(format!("its reflection has over {} MiB", FILES_BYTES_MAX >> 20))
            })?;
            let file = descriptor::read_file(&bytes)
                .map_err(|e| ParseError(format!("its reflection gives no file: {e}")))?;
            for name in &file.dependency {
                if !names.contains_key(name) {
                    names.insert(name.clone(), false);
                    wanted.push(name.clone());
                }
            }
            if !names.insert(file.name().to_owned(), true).unwrap_or(false) {
                files.push(file);
            }
            if names.len() - known > FILES_MAX {
                return Err(ParseError(format!("its reflection has over {FILES_MAX} files")));
            }
        }
        let Some(name) = wanted.pop() else {
            break;
        };
        if names.get(&name) == Some(&true) {
            continue;
        }
        let answer = put(Question { file: Some(name.clone()), ..Question::default() })?;
        let Some(more) = answer.files else {
            let why = answer.error.map(|e| e.message).unwrap_or_default();
            return Err(ParseError(format!("its reflection lacks the file {name}: {why}")));
        };
        left.extend(more.files);
    }
    GrpcTypes::from_files(files)
}

/// The answer of a server to an encoded question about the types in `set`, an encoded descriptor
/// set.
///
/// # Errors
/// Not a question, or not a descriptor set.
pub fn answer(set: &[u8], question: &[u8]) -> Result<Vec<u8>, ParseError> {
    let wrong = |e: prost::DecodeError| ParseError(e.to_string());
    let question = Question::decode(question).map_err(wrong)?;
    let set = prost_reflect::prost_types::FileDescriptorSet::decode(set).map_err(wrong)?;
    let declares = |file: &FileDescriptorProto, symbol: &str| {
        let full = |name: &str| match file.package() {
            "" => name.to_owned(),
            package => format!("{package}.{name}"),
        };
        file.service.iter().any(|service| {
            let name = full(service.name());
            let method = symbol.strip_prefix(&name).and_then(|rest| rest.strip_prefix('.'));
            symbol == name || service.method.iter().any(|m| Some(m.name()) == method)
        }) || file.message_type.iter().any(|message| symbol == full(message.name()))
    };
    let mut answer = Answer::default();
    if question.services.is_some() {
        let services = set.file.iter().flat_map(|file| {
            let package = file.package();
            file.service.iter().map(move |s| Service { name: format!("{package}.{}", s.name()) })
        });
        answer.services = Some(Services { services: services.collect() });
        return Ok(answer.encode_to_vec());
    }
    let found = set.file.iter().find(|file| match (&question.file, &question.symbol) {
        (Some(name), _) => file.name() == name,
        (None, Some(symbol)) => declares(file, symbol),
        (None, None) => false,
    });
    match found {
        Some(file) => answer.files = Some(Files { files: vec![file.encode_to_vec()] }),
        // NOT_FOUND
        None => answer.error = Some(ErrorAnswer { code: 5, message: "not found".to_owned() }),
    }
    Ok(answer.encode_to_vec())
}
