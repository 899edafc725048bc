//! The types that are written, read from their source as rustfmt lays it out.

use std::path::Path;

/// A type that serde writes.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub name: String,
    pub doc: String,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    Struct(Vec<Field>),
    /// A struct that is written as what it holds.
    Newtype(String),
    Enum(Vec<Variant>),
    /// An enum whose variant stands under this key, beside the keys of what the variant holds.
    Tagged(String, Vec<Variant>),
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    pub name: String,
    pub doc: String,
    /// Its type as it is spelt.
    pub of: String,
    /// Its own keys stand in its place.
    pub is_flat: bool,
    /// It is left out of some documents.
    pub may_lack: bool,
}

/// A variant: without fields, with an unnamed one (`inner`), or with named ones.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub name: String,
    pub inner: String,
    pub fields: Vec<Field>,
    /// Written as what it holds, without its name.
    pub is_untagged: bool,
}

/// All types with a derived `Serialize` in the files of a folder, but for those that only tests
/// have.
pub(super) fn items(folder: &Path) -> Vec<Item> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(items(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.extend(items_of(&std::fs::read_to_string(&path).expect("text")));
        }
    }
    found
}

fn items_of(text: &str) -> Vec<Item> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let (mut doc, mut serde, mut is_written) = (String::new(), String::new(), false);
    for (i, line) in lines.iter().enumerate() {
        if let Some(text) = line.strip_prefix("///") {
            push_sentence(&mut doc, text);
        } else if line.starts_with("#[derive(") {
            is_written |= line.contains("Serialize");
        } else if let Some(attribute) = line.strip_prefix("#[serde(") {
            serde.push_str(attribute);
        } else if !line.starts_with("#[") {
            if is_written {
                found.extend(item(&lines[i..], &doc, &serde));
            }
            (doc, serde, is_written) = (String::new(), String::new(), false);
        }
    }
    found
}

fn item(lines: &[&str], doc: &str, serde: &str) -> Option<Item> {
    let line = lines.first()?;
    let words: Vec<&str> = line.split([' ', '{', '(', '<']).collect();
    let at = words.iter().position(|w| *w == "struct" || *w == "enum")?;
    let name = words.get(at + 1)?.trim_end_matches(';').to_owned();
    let inside = lines.iter().skip(1).take_while(|line| **line != "}");
    let inside: Vec<&str> = inside.copied().collect();
    let body = match words[at] {
        "enum" => match quoted(serde, "tag = ") {
            Some(tag) => Body::Tagged(tag.to_owned(), variants(&inside, serde)),
            None => Body::Enum(variants(&inside, serde)),
        },
        _ if line.contains('(') => {
            let inner = line.split_once('(')?.1.trim_end_matches(");");
            Body::Newtype(inner.trim_start_matches("pub ").to_owned())
        }
        _ => Body::Struct(fields(&inside, 4)),
    };
    Some(Item { name, doc: doc.to_owned(), body })
}

/// The fields among lines that are moved in by `indent`.
fn fields(lines: &[&str], indent: usize) -> Vec<Field> {
    let mut found = Vec::new();
    let (mut doc, mut serde, mut declared) = (String::new(), String::new(), String::new());
    for line in lines.iter().map(|line| line.trim_start()) {
        if let Some(text) = line.strip_prefix("///") {
            push_sentence(&mut doc, text);
        } else if line.starts_with("#[") {
            serde.push_str(line);
        } else if !line.is_empty() && !line.starts_with("//") {
            declared.push_str(line);
            if let Some(whole) = declared.strip_suffix(',') {
                let whole = whole.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
                let (name, of) = whole.split_once(": ").expect("a name and a type");
                let field = Field {
                    name: quoted(&serde, "rename = ").unwrap_or(name).to_owned(),
                    doc: std::mem::take(&mut doc),
                    of: of.to_owned(),
                    is_flat: serde.contains("flatten"),
                    may_lack: serde.contains("skip_serializing_if"),
                };
                let is_written = !serde.contains("(skip)");
                found.extend(is_written.then_some(field));
                (serde, declared) = (String::new(), String::new());
            }
        }
    }
    assert!(declared.is_empty(), "{declared} at {indent}");
    found
}

fn variants(lines: &[&str], of_enum: &str) -> Vec<Variant> {
    let mut found = Vec::new();
    let (mut serde, mut i) = (String::new(), 0);
    while let Some(line) = lines.get(i) {
        let is_variant = line.starts_with("    ") && line[4..].starts_with(char::is_uppercase);
        if line.trim_start().starts_with("#[serde") {
            serde.push_str(line);
        }
        if is_variant {
            let line = line.trim();
            let spelt: String = line.chars().take_while(|c| c.is_alphanumeric()).collect();
            let inner = line.split_once('(').map(|(_, t)| t.trim_end_matches("),"));
            let mut inside: &[&str] = &[];
            if line.ends_with('{') {
                let rest = &lines[i + 1..];
                let end = rest.iter().position(|l| *l == "    },").expect("its end");
                inside = &rest[..end];
                i += end;
            }
            found.push(Variant {
                name: quoted(&serde, "rename = ")
                    .map_or_else(|| cased(&spelt, of_enum), str::to_owned),
                inner: inner.unwrap_or_default().to_owned(),
                fields: fields(inside, 8),
                is_untagged: serde.contains("untagged"),
            });
            serde.clear();
        }
        i += 1;
    }
    found
}

/// A variant's name as `rename_all` of its enum wants it.
fn cased(name: &str, of_enum: &str) -> String {
    let between = match quoted(of_enum, "rename_all = ") {
        Some("snake_case") => '_',
        Some("kebab-case") => '-',
        None => return name.to_owned(),
        Some(other) => panic!("{other}"),
    };
    let mut cased = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !cased.is_empty() {
            cased.push(between);
        }
        cased.extend(c.to_lowercase());
    }
    cased
}

fn quoted<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split_once(key)?.1.split('"').nth(1)
}

fn push_sentence(doc: &mut String, text: &str) {
    if !doc.is_empty() {
        doc.push(' ');
    }
    doc.push_str(text.trim());
}
