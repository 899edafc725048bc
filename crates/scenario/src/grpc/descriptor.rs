//! Descriptors of files in the form that the pool of types takes: `proto2` or `proto3`, and no
//! option but those by which messages are encoded. The features of editions become that form.

use knee_load::quantity::ParseError;
use prost::Message as _;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumOptions, EnumValueDescriptorProto,
    FieldDescriptorProto, FieldOptions, FileDescriptorProto, MessageOptions, UninterpretedOption,
};
use std::collections::{BTreeSet, HashMap};

/// The editions that are read, by name and by their number in `google.protobuf.Edition`.
pub(super) const EDITIONS: [(&str, i32); 2] = [("2023", 1000), ("2024", 1001)];

/// Features that say how messages are encoded. Files and fields alone have them.
#[derive(Clone, Copy, PartialEq, prost::Message)]
struct EncodingFeatures {
    #[prost(int32, optional, tag = "1")]
    field_presence: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    repeated_field_encoding: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    message_encoding: Option<i32>,
}

/// Values of the features by name; those of one feature stand at their number.
const PRESENCES: [&str; 4] = ["", "EXPLICIT", "IMPLICIT", "LEGACY_REQUIRED"];
const REPEATED_ENCODINGS: [&str; 3] = ["", "PACKED", "EXPANDED"];
const MESSAGE_ENCODINGS: [&str; 3] = ["", "LENGTH_PREFIXED", "DELIMITED"];
const IMPLICIT: Option<i32> = Some(2);
const LEGACY_REQUIRED: Option<i32> = Some(3);
const EXPANDED: Option<i32> = Some(2);
const DELIMITED: Option<i32> = Some(2);

impl EncodingFeatures {
    /// These, and where one is not given, that of the file.
    fn within(self, file: EncodingFeatures) -> EncodingFeatures {
        EncodingFeatures {
            field_presence: self.field_presence.or(file.field_presence),
            repeated_field_encoding: self.repeated_field_encoding.or(file.repeated_field_encoding),
            message_encoding: self.message_encoding.or(file.message_encoding),
        }
    }

    /// Those that options of a source file give, `features.NAME = VALUE` or all in braces.
    fn written(options: &[UninterpretedOption]) -> EncodingFeatures {
        let mut features = EncodingFeatures::default();
        let is_features = |option: &&UninterpretedOption| {
            option.name.first().is_some_and(|part| part.name_part == "features")
        };
        for option in options.iter().filter(is_features) {
            let name = option.name.get(1).map_or("", |part| part.name_part.as_str());
            features.set(name, option.identifier_value());
            let words = option.aggregate_value().split(|c: char| !c.is_alphanumeric() && c != '_');
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            words.windows(2).for_each(|pair| features.set(pair[0], pair[1]));
        }
        features
    }

    fn set(&mut self, name: &str, value: &str) {
        let (feature, names) = match name {
            "field_presence" => (&mut self.field_presence, &PRESENCES[..]),
            "repeated_field_encoding" => {
                (&mut self.repeated_field_encoding, &REPEATED_ENCODINGS[..])
            }
            "message_encoding" => (&mut self.message_encoding, &MESSAGE_ENCODINGS[..]),
            _ => return,
        };
        *feature = names.iter().position(|known| *known == value).map(|at| at as i32);
    }
}

/// The parts of an encoded descriptor of a file that hold its edition and features.
#[derive(Clone, PartialEq, prost::Message)]
struct FileEdition {
    #[prost(message, repeated, tag = "4")]
    messages: Vec<MessageEdition>,
    #[prost(message, repeated, tag = "7")]
    extensions: Vec<FieldEdition>,
    #[prost(message, optional, tag = "8")]
    options: Option<FileFeatures>,
    #[prost(int32, tag = "14")]
    edition: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FileFeatures {
    #[prost(message, optional, tag = "50")]
    features: Option<EncodingFeatures>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct MessageEdition {
    #[prost(message, repeated, tag = "2")]
    fields: Vec<FieldEdition>,
    #[prost(message, repeated, tag = "3")]
    nested: Vec<MessageEdition>,
    #[prost(message, repeated, tag = "6")]
    extensions: Vec<FieldEdition>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FieldEdition {
    #[prost(message, optional, tag = "8")]
    options: Option<FieldFeatures>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FieldFeatures {
    #[prost(message, optional, tag = "21")]
    features: Option<EncodingFeatures>,
}

/// Reads an encoded descriptor of a file.
///
/// # Errors
/// Not a descriptor, an unknown edition, a map whose entries are none.
pub(super) fn read_file(bytes: &[u8]) -> Result<FileDescriptorProto, ParseError> {
    let wrong = |e: prost::DecodeError| ParseError(e.to_string());
    let mut file = FileDescriptorProto::decode(bytes).map_err(wrong)?;
    reduce(&mut file, &FileEdition::decode(bytes).map_err(wrong)?)?;
    Ok(file)
}

/// The same for a file that was parsed as one of `proto3` and is of an edition, of this number.
pub(super) fn reduce_parsed(
    file: &mut FileDescriptorProto,
    edition: i32,
) -> Result<(), ParseError> {
    file.syntax = Some("editions".to_owned());
    reduce(file, &FileEdition { edition, ..FileEdition::default() })
}

fn reduce(file: &mut FileDescriptorProto, edition: &FileEdition) -> Result<(), ParseError> {
    let features = match (file.syntax(), edition.edition) {
        ("" | "proto2" | "proto3", 0) => None,
        (_, number) if EDITIONS.iter().any(|(_, known)| *known == number) => {
            let options = file.options.take().unwrap_or_default();
            let given = edition.options.as_ref().and_then(|options| options.features);
            // Where nothing is given, both editions have explicit presence, packed, by length.
            Some(given.unwrap_or_else(|| EncodingFeatures::written(&options.uninterpreted_option)))
        }
        (syntax, number) => {
            return Err(ParseError(format!(
                "{}: unknown edition (syntax '{syntax}', edition {number}): proto2, proto3 and the \
                 editions 2023 and 2024 are read",
                file.name()
            )));
        }
    };
    if features.is_some() {
        file.syntax = Some("proto3".to_owned());
    }
    file.syntax.take_if(|syntax| syntax.is_empty());
    let is_proto3 = file.syntax() == "proto3";
    let scope = ReducedScope { is_proto3, features, map_entries: Vec::new() };
    for (at, message) in file.message_type.iter_mut().enumerate() {
        scope.reduce_message(message, edition.messages.get(at))?;
    }
    scope.reduce_extensions(&mut file.extension, &edition.extensions);
    file.enum_type.iter_mut().for_each(|one| scope.reduce_enum(one));
    for service in &mut file.service {
        service.options = None;
        service.method.iter_mut().for_each(|method| method.options = None);
    }
    file.options = None;
    file.source_code_info = None;
    Ok(())
}

/// What holds for the fields of a message or of a file.
struct ReducedScope {
    /// Fields have no presence unless they say so.
    is_proto3: bool,
    /// The features of the file, if it is of an edition.
    features: Option<EncodingFeatures>,
    /// Names of the nested messages that are entries of maps.
    map_entries: Vec<String>,
}

impl ReducedScope {
    fn reduce_message(
        &self,
        message: &mut DescriptorProto,
        edition: Option<&MessageEdition>,
    ) -> Result<(), ParseError> {
        let options = message.options.take().unwrap_or_default();
        let is_entry =
            |one: &&DescriptorProto| one.options.as_ref().is_some_and(MessageOptions::map_entry);
        let entries = message.nested_type.iter().filter(is_entry);
        let inner = ReducedScope {
            // Entries of maps are the same in all files.
            is_proto3: self.is_proto3 && !options.map_entry(),
            features: self.features.filter(|_| !options.map_entry()),
            map_entries: entries.map(|one| one.name().to_owned()).collect(),
        };
        if options.map_entry() {
            check_map_entry(message)?;
        }
        for (at, field) in message.field.iter_mut().enumerate() {
            let edition = edition.and_then(|edition| edition.fields.get(at));
            inner.reduce_field(field, edition);
        }
        for (at, nested) in message.nested_type.iter_mut().enumerate() {
            inner.reduce_message(nested, edition.and_then(|edition| edition.nested.get(at)))?;
        }
        let extensions = edition.map_or(&[][..], |edition| &edition.extensions);
        inner.reduce_extensions(&mut message.extension, extensions);
        message.oneof_decl.iter_mut().for_each(|oneof| oneof.options = None);
        message.enum_type.iter_mut().for_each(|one| inner.reduce_enum(one));
        message.extension_range.iter_mut().for_each(|range| range.options = None);
        message.options = Some(MessageOptions {
            map_entry: options.map_entry,
            message_set_wire_format: options.message_set_wire_format,
            ..MessageOptions::default()
        });
        Ok(())
    }

    /// Extensions of options say nothing of messages.
    fn reduce_extensions(&self, all: &mut Vec<FieldDescriptorProto>, editions: &[FieldEdition]) {
        for (at, extension) in all.iter_mut().enumerate() {
            self.reduce_field(extension, editions.get(at));
        }
        let of_options =
            |extendee: &str| extendee.trim_start_matches('.').starts_with("google.protobuf.");
        all.retain(|extension| !of_options(extension.extendee()));
    }

    fn reduce_field(&self, field: &mut FieldDescriptorProto, edition: Option<&FieldEdition>) {
        let options = field.options.take().unwrap_or_default();
        let mut packed = options.packed;
        if let Some(of_file) = self.features {
            let given = edition.and_then(|edition| edition.options.as_ref()?.features);
            let given =
                given.unwrap_or_else(|| EncodingFeatures::written(&options.uninterpreted_option));
            let features = given.within(of_file);
            if field.label() == Label::Repeated {
                packed = Some(features.repeated_field_encoding != EXPANDED);
            } else if field.oneof_index.is_none() && features.field_presence != IMPLICIT {
                field.proto3_optional = Some(true);
                if features.field_presence == LEGACY_REQUIRED {
                    field.set_label(Label::Required);
                }
            }
            let last = field.type_name().rsplit('.').next().unwrap_or_default();
            let is_map = self.map_entries.iter().any(|entry| entry == last);
            if features.message_encoding == DELIMITED && !last.is_empty() && !is_map {
                // Where the name is that of an enumeration, this says nothing.
                field.set_type(Type::Group);
            }
        }
        let is_float = matches!(field.r#type(), Type::Double | Type::Float);
        let has_presence = field.oneof_index.is_some() || field.extendee.is_some();
        if self.is_proto3 && is_float && field.label() != Label::Repeated && !has_presence {
            // The pool takes -0.0 for the default and leaves it out. With presence it is sent.
            field.proto3_optional = Some(true);
        }
        field.options =
            packed.map(|packed| FieldOptions { packed: Some(packed), ..FieldOptions::default() });
    }

    fn reduce_enum(&self, one: &mut EnumDescriptorProto) {
        let options = one.options.take().unwrap_or_default();
        let is_alias = |option: &UninterpretedOption| {
            option.name.first().is_some_and(|part| part.name_part == "allow_alias")
                && option.identifier_value() == "true"
        };
        let mut allows = options.allow_alias() || options.uninterpreted_option.iter().any(is_alias);
        one.value.iter_mut().for_each(|value| value.options = None);
        one.reserved_range.clear();
        if self.features.is_some() && one.value.first().is_some_and(|first| first.number() != 0) {
            // An enumeration of proto3 begins with zero. No name has a blank.
            let name = Some(format!("{} 0", one.name()));
            let zero = EnumValueDescriptorProto { name, number: Some(0), options: None };
            one.value.insert(0, zero);
            allows = true;
        }
        one.options =
            allows.then(|| EnumOptions { allow_alias: Some(true), ..EnumOptions::default() });
    }
}

/// The pool takes any message for an entry of a map, and fails when it is used.
fn check_map_entry(message: &DescriptorProto) -> Result<(), ParseError> {
    let is_single = |field: &&FieldDescriptorProto| {
        field.label() != Label::Repeated && field.oneof_index.is_none()
    };
    let single = |number| message.field.iter().filter(is_single).any(|f| f.number() == number);
    let is_key = |field: &FieldDescriptorProto| {
        let kind = field.r#type();
        let is_other = matches!(
            kind,
            Type::Double | Type::Float | Type::Group | Type::Message | Type::Bytes | Type::Enum
        );
        field.number() == 1 && !is_other && field.type_name().is_empty()
    };
    if message.field.len() == 2 && single(2) && single(1) && message.field.iter().any(is_key) {
        return Ok(());
    }
    Err(ParseError(format!("the message {} is no entry of a map", message.name())))
}

/// The types in these files and the well-known types.
///
/// # Errors
/// A file that others import is missing, or a type.
pub(super) fn pool_of(mut files: Vec<FileDescriptorProto>) -> Result<DescriptorPool, ParseError> {
    let mut pool = DescriptorPool::global();
    let mut renamed = HashMap::new();
    files.retain(|file| match built_in_file(&pool, file) {
        Some(name) => {
            renamed.insert(file.name().to_owned(), name);
            false
        }
        None => true,
    });
    for name in files.iter_mut().flat_map(|file| &mut file.dependency) {
        if let Some(known) = renamed.get(name) {
            name.clone_from(known);
        }
    }
    // The pool follows public imports one file far, and for ever where they are in a circle.
    let imports: Vec<Vec<String>> = {
        let by_name: HashMap<&str, &FileDescriptorProto> =
            files.iter().map(|file| (file.name(), file)).collect();
        files.iter().map(|file| all_imports(file, &by_name)).collect()
    };
    for (file, imports) in files.iter_mut().zip(imports) {
        file.dependency = imports;
        file.public_dependency.clear();
        file.weak_dependency.clear();
    }
    pool.add_file_descriptor_protos(files).map_err(|e| ParseError(e.to_string()))?;
    Ok(pool)
}

/// The name of the file of well-known types that another defines again, under whatever name.
fn built_in_file(known: &DescriptorPool, file: &FileDescriptorProto) -> Option<String> {
    if file.package() != "google.protobuf" {
        return None;
    }
    let messages = file.message_type.iter().map(DescriptorProto::name);
    let mut names = messages.map(|name| format!("google.protobuf.{name}"));
    names.find_map(|name| Some(known.get_message_by_name(&name)?.parent_file().name().to_owned()))
}

/// The files that a file imports, with those that they import publicly.
fn all_imports(
    file: &FileDescriptorProto,
    by_name: &HashMap<&str, &FileDescriptorProto>,
) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut left: Vec<&String> = file.dependency.iter().collect();
    while let Some(name) = left.pop() {
        if found.insert(name.clone())
            && let Some(file) = by_name.get(name.as_str())
        {
            let public = file.public_dependency.iter();
            left.extend(public.filter_map(|&at| file.dependency.get(usize::try_from(at).ok()?)));
        }
    }
    found.into_iter().collect()
}
