//! Services and messages, from wherever their descriptions come.

use super::descriptor;
use super::edition_source::{EditionSource, edition_source};
use crate::fault::unknown;
use knee_load::messages::put_grpc_message;
use knee_load::quantity::ParseError;
use knee_load::shown::shown;
use prost::Message as _;
use prost_reflect::prost_types::FileDescriptorProto;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, Kind, MessageDescriptor};
use protox::Compiler;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// Reads a text file by its path.
type ReadText = dyn Fn(&str) -> Result<String, String>;

/// Descriptions of services.
#[derive(Clone, Debug)]
pub struct GrpcTypes(DescriptorPool);

/// A descriptor set whose files are still encoded.
#[derive(Clone, PartialEq, prost::Message)]
struct EncodedSet {
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

/// A method of a service, and what its messages are.
#[derive(Clone, Debug)]
pub struct GrpcMethod {
    input: MessageDescriptor,
    /// Whether a call has several requests.
    pub streams_requests: bool,
    /// Whether a call has several responses.
    pub streams_responses: bool,
}

impl GrpcTypes {
    /// Compiles `.proto` files. What they import is looked for in `folders`; without any, where the
    /// files are.
    ///
    /// # Errors
    /// A file that cannot be read or compiled, with the place.
    pub fn from_protos(
        files: &[String],
        folders: &[String],
        read: impl Fn(&str) -> Result<String, String> + 'static,
    ) -> Result<GrpcTypes, ParseError> {
        let parent = |file: &String| {
            let parent = Path::new(file).parent().and_then(Path::to_str);
            parent.filter(|parent| !parent.is_empty()).unwrap_or(".").to_owned()
        };
        let folders: Vec<String> = match folders {
            [] => files.iter().map(parent).collect(),
            given => given.to_vec(),
        };
        let mut resolver = ChainFileResolver::new();
        resolver.add(ProtoFiles { folders, read: Box::new(read) });
        resolver.add(GoogleFileResolver::new());
        let mut compiler = Compiler::with_file_resolver(resolver);
        compiler.include_imports(true);
        for file in files {
            compiler.open_file(file).map_err(|e| {
                // Only this form has the place of a fault.
                let text = if e.is_parse() { format!("{e:?}") } else { e.to_string() };
                ParseError(one_line(&text))
            })?;
        }
        GrpcTypes::from_set(&compiler.encode_file_descriptor_set())
    }

    /// Reads a descriptor set, as `protoc --include_imports --descriptor_set_out` writes it.
    ///
    /// # Errors
    /// Not a descriptor set, or one without a file that others import.
    pub fn from_set(bytes: &[u8]) -> Result<GrpcTypes, ParseError> {
        // Names in a damaged set have any characters.
        let wrong = |e: &dyn fmt::Display| {
            ParseError(format!("no descriptor set: {}", shown(&e.to_string())))
        };
        let set = EncodedSet::decode(bytes).map_err(|e| wrong(&e))?;
        let files = set.files.iter().map(|file| descriptor::read_file(file));
        let files = files.collect::<Result<_, _>>().map_err(|e| wrong(&e))?;
        GrpcTypes::from_files(files).map_err(|e| wrong(&e))
    }

    /// The types in these file descriptors, and the well-known types.
    ///
    /// # Errors
    /// A file that others import is missing, or a type.
    pub(super) fn from_files(files: Vec<FileDescriptorProto>) -> Result<GrpcTypes, ParseError> {
        descriptor::pool_of(files).map(GrpcTypes)
    }

    /// The types as an encoded descriptor set.
    pub fn to_set(&self) -> Vec<u8> {
        self.0.encode_to_vec()
    }

    /// The method that a path such as `/package.Service/Method` names.
    ///
    /// # Errors
    /// Not such a path, or an unknown service or method, with the nearest name.
    pub fn method(&self, path: &str) -> Result<GrpcMethod, ParseError> {
        let (service, method) = service_and_method(path)?;
        let names = self.0.services().map(|s| s.full_name().to_owned());
        let found = self.0.get_service_by_name(service);
        let service = found.ok_or_else(|| unknown_name("service", service, names))?;
        let names = service.methods().map(|m| m.name().to_owned());
        let found = service.methods().find(|m| m.name() == method);
        let found = found.ok_or_else(|| unknown_name("method", method, names))?;
        Ok(GrpcMethod {
            input: found.input(),
            streams_requests: found.is_client_streaming(),
            streams_responses: found.is_server_streaming(),
        })
    }
}

/// Takes a path `/package.Service/Method` apart.
///
/// # Errors
/// Another path.
pub fn service_and_method(path: &str) -> Result<(&str, &str), ParseError> {
    let names = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '?', '%']);
    names.filter(|(service, method)| is_name(service) && is_name(method)).ok_or_else(|| {
        ParseError(format!("'{path}' names no method: expected /package.Service/Method"))
    })
}

pub(super) fn unknown_name(
    what: &str,
    name: &str,
    known: impl Iterator<Item = String>,
) -> ParseError {
    let known: Vec<String> = known.collect();
    ParseError(unknown(what, name, known.iter().map(String::as_str)))
}

impl GrpcMethod {
    /// The bytes of the requests that a JSON text stands for: one message, or of a method that
    /// takes a stream, an array of them. Each of them stands behind its length.
    ///
    /// # Errors
    /// Not JSON, or a value that does not fit its field, with the place.
    pub fn encode(&self, json: &str) -> Result<Vec<Vec<u8>>, ParseError> {
        let json = if json.trim().is_empty() { "{}" } else { json };
        let value: Value = serde_json::from_str(json)
            .map_err(|e| ParseError(format!("the message is no JSON: {e}")))?;
        match value {
            Value::Array(messages) if self.streams_requests => {
                messages.iter().map(|message| self.encode_one(message)).collect()
            }
            message => Ok(vec![self.encode_one(&message)?]),
        }
    }

    /// A message behind its length.
    fn encode_one(&self, message: &Value) -> Result<Vec<u8>, ParseError> {
        let mut track = serde_path_to_error::Track::new();
        let json = serde_path_to_error::Deserializer::new(message, &mut track);
        let options = DeserializeOptions::new();
        let read = DynamicMessage::deserialize_with_options(self.input.clone(), json, &options);
        let unfit = |place: &str, why: &dyn fmt::Display| {
            ParseError(format!("the message does not fit {}{place}: {why}", self.input.full_name()))
        };
        let read = read.map_err(|e| {
            let path = track.path().to_string();
            unfit(&if path == "." { String::new() } else { format!(" at '{path}'") }, &e)
        })?;
        if let Some(field) = given_twice(&self.input, message) {
            return Err(unfit("", &format!("the field '{field}' is given by both of its names")));
        }
        let mut out = Vec::new();
        put_grpc_message(&read.encode_to_vec(), &mut out);
        Ok(out)
    }
}

/// A field that an object has by its name and by its name in JSON.
fn given_twice(message: &MessageDescriptor, value: &Value) -> Option<String> {
    let object = value.as_object()?;
    object.iter().find_map(|(key, inner)| {
        let field = message.get_field_by_json_name(key);
        let field = field.or_else(|| message.get_field_by_name(key))?;
        if key != field.name() && object.contains_key(field.name()) {
            return Some(field.name().to_owned());
        }
        let Kind::Message(mut of) = field.kind() else {
            return None;
        };
        if field.is_map()
            && let Kind::Message(value) = of.map_entry_value_field().kind()
        {
            of = value;
        }
        match inner {
            Value::Array(all) => all.iter().find_map(|one| given_twice(&of, one)),
            Value::Object(all) if field.is_map() => {
                all.values().find_map(|one| given_twice(&of, one))
            }
            one => given_twice(&of, one),
        }
    })
}

/// `.proto` files below some folders.
struct ProtoFiles {
    folders: Vec<String>,
    read: Box<ReadText>,
}

impl FileResolver for ProtoFiles {
    fn resolve_path(&self, path: &Path) -> Option<String> {
        let below = |folder: &String| match folder.as_str() {
            "." => path.to_str(),
            folder => path.strip_prefix(folder).ok()?.to_str(),
        };
        self.folders.iter().find_map(below).map(str::to_owned)
    }

    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        // Features of languages, as in go_features.proto, say nothing of messages.
        if name.starts_with("google/protobuf/") && name.ends_with("_features.proto") {
            return File::from_source(name, "");
        }
        let mut failed = None;
        for folder in &self.folders {
            match (self.read)(&Path::new(folder).join(name).to_string_lossy()) {
                Ok(source) => return parse_source(name, &source),
                Err(why) => failed = Some(why),
            }
        }
        // The files of Google come with the compiler.
        Err(match failed {
            Some(why) if !name.starts_with("google/protobuf/") => protox::Error::new(why),
            _ => protox::Error::file_not_found(name),
        })
    }
}

/// Parses a source file, of an edition too.
fn parse_source(name: &str, source: &str) -> Result<File, protox::Error> {
    let wrong = |e: &dyn fmt::Display| protox::Error::new(format!("{name}: {e}"));
    let Some(EditionSource { edition, text }) = edition_source(source).map_err(|e| wrong(&e))?
    else {
        return File::from_source(name, source);
    };
    let file = File::from_source(name, &text).map_err(|e| {
        let why = one_line(&format!("{e:?}"));
        let hint = "editions are read in part: give --descriptor-set FILE where protoc reads it";
        protox::Error::new(format!("{why} ({hint})"))
    })?;
    let mut descriptor = FileDescriptorProto::from(file);
    descriptor::reduce_parsed(&mut descriptor, edition).map_err(|e| wrong(&e))?;
    Ok(File::from_file_descriptor_proto(descriptor))
}

/// Names of the types that the messages of type `Any` in a JSON text hold.
pub fn any_types(json: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut left: Vec<Value> = serde_json::from_str(json).into_iter().collect();
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => {
                let url = fields.get("@type").and_then(Value::as_str).unwrap_or_default();
                names.extend(url.rsplit_once('/').map(|(_, name)| name.to_owned()));
                left.extend(fields.into_iter().map(|(_, value)| value));
            }
            _ => {}
        }
    }
    names
}

/// Without what a message adds on further lines.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(": ")
}
