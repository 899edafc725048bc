//! URLs with values in them: the server that they name, and the place on it.

use super::super::text::{ImportedText, TextPart};
use super::super::url::encoded;
use knee_load::percent;
use knee_load::spec::Url;

/// A server that requests go to.
#[derive(Clone, Debug)]
pub(super) enum ImportedTarget {
    /// One that is known.
    Literal(Url),
    /// One that the environment gives, such as `${env(BASE)}` or `http://${env(HOST)}:80`.
    Environment(ImportedText),
}

impl ImportedTarget {
    pub(super) fn differs(&self, other: &ImportedTarget) -> bool {
        match (self, other) {
            (ImportedTarget::Literal(a), ImportedTarget::Literal(b)) => !a.has_server_of(b),
            (ImportedTarget::Environment(a), ImportedTarget::Environment(b)) => a != b,
            _ => true,
        }
    }

    /// Its host, with its port where that is not the scheme's own.
    pub(super) fn host(&self) -> String {
        match self {
            ImportedTarget::Literal(url) => url.host().to_owned(),
            ImportedTarget::Environment(text) => text.template(),
        }
    }

    /// What stands behind `target`.
    pub(super) fn target(&self) -> ImportedText {
        match self {
            ImportedTarget::Literal(url) => {
                format!("{}://{}", url.scheme().name(), url.host()).into()
            }
            ImportedTarget::Environment(text) => text.clone(),
        }
    }

    /// The URL of this path on the server, as a step of a scenario with several targets has it.
    pub(super) fn whole_url(&self, path: &ImportedText) -> Result<ImportedText, String> {
        if let Some(TextPart::Value(_)) = path.parts().first() {
            return Err("a value that begins a path leads from the first target alone".to_owned());
        }
        let mut url = begun_by_value(&self.target());
        url.append(path);
        Ok(url)
    }

    /// A URL that stands for this path on the server, letters being in the place of values.
    pub(super) fn url_of(&self, path: &ImportedText) -> Result<Url, String> {
        let path = path.with_letters();
        let slash = if path.starts_with('/') { "" } else { "/" };
        let base = match self {
            ImportedTarget::Literal(_) => self.target().with_letters(),
            ImportedTarget::Environment(_) => "http://h".to_owned(),
        };
        Url::parse(&format!("{base}{slash}{path}")).map_err(|e| e.0)
    }
}

/// The server of a URL, unless it has the path alone, and the path with the query.
pub(super) fn split(url: &ImportedText) -> Result<(Option<ImportedTarget>, ImportedText), String> {
    if let Some(text) = url.literal().filter(|text| !text.starts_with('/')) {
        let url = Url::parse(&encoded(text)).map_err(|e| e.0)?;
        let path = url.path().into();
        return Ok((Some(ImportedTarget::Literal(url)), path));
    }
    let url = &without_fragment(url);
    let is_env = |part: &TextPart| match part {
        TextPart::Literal(_) => true,
        TextPart::Value(expression) => expression.starts_with("env("),
    };
    match url.parts().first() {
        Some(TextPart::Literal(text)) if text.starts_with('/') => {
            return Ok((None, url.map(percent::url)));
        }
        Some(part) if !is_env(part) => return Ok((None, begun_by_value(url))),
        _ => {}
    }
    let (server, path) = at_path(url);
    let path = match path.parts().first() {
        None => "/".into(),
        Some(TextPart::Literal(text)) if text.starts_with('/') => path.map(percent::url),
        Some(TextPart::Literal(_)) => {
            let mut whole = ImportedText::from("/");
            whole.append(&path.map(percent::url));
            whole
        }
        Some(TextPart::Value(_)) => begun_by_value(&path),
    };
    let origin = match server.literal() {
        Some(text) => ImportedTarget::Literal(Url::parse(&percent::url(text)).map_err(|e| e.0)?),
        None if server.parts().iter().all(is_env) => {
            if !is_url_for_some(&server) {
                return Err("it is no URL, whatever its variables are".to_owned());
            }
            ImportedTarget::Environment(server)
        }
        None => return Err("its host is known only when it is sent".to_owned()),
    };
    Ok((Some(origin), path))
}

/// Whether it is a URL where its variables are whole servers, hosts or ports.
fn is_url_for_some(server: &ImportedText) -> bool {
    const VALUES: [&str; 3] = ["http://h", "h", "80"];
    const MOST: usize = 1_000;
    let mut texts = vec![String::new()];
    for part in server.parts() {
        let values = match part {
            TextPart::Literal(text) => &[text.as_str()][..],
            TextPart::Value(_) => &VALUES,
        };
        let behind = |begun: &String| -> Vec<String> {
            values.iter().map(|value| format!("{begun}{value}")).collect()
        };
        texts = texts.iter().flat_map(behind).collect();
        if texts.len() > MOST {
            return true;
        }
    }
    texts.iter().any(|text| Url::parse(text).is_ok())
}

/// A fragment is never sent.
fn without_fragment(url: &ImportedText) -> ImportedText {
    let mut before = ImportedText::default();
    for (at, part) in url.parts().iter().enumerate() {
        match part {
            TextPart::Literal(text) => {
                let text = if at == 0 { text.trim_start() } else { text };
                let is_last = at + 1 == url.parts().len();
                let text = if is_last { text.trim_end() } else { text };
                let own = text.split('#').next().unwrap_or_default();
                before.push(own);
                if own.len() < text.len() {
                    return before;
                }
            }
            TextPart::Value(expression) => before.append(&ImportedText::value(expression.as_str())),
        }
    }
    before
}

/// The value that begins a URL or a path is a piece of it, and not a value in it.
fn begun_by_value(url: &ImportedText) -> ImportedText {
    let mut whole = ImportedText::default();
    for (at, part) in url.parts().iter().enumerate() {
        match part {
            TextPart::Literal(text) => whole.push(&percent::url(text)),
            TextPart::Value(value) if at == 0 && !value.starts_with("raw(") => {
                whole.append(&ImportedText::value(format!("raw({value})")));
            }
            TextPart::Value(value) => whole.append(&ImportedText::value(value.as_str())),
        }
    }
    whole
}

/// The text before the path and the text from there on. A value behind another begins the path.
fn at_path(url: &ImportedText) -> (ImportedText, ImportedText) {
    let (mut server, mut path) = (ImportedText::default(), ImportedText::default());
    for part in url.parts() {
        match part {
            TextPart::Literal(text) if path.is_empty() => {
                let host = text.find("://").map_or(0, |at| at + 3);
                let end = text[host..].find(['/', '?']).map_or(text.len(), |at| host + at);
                server.push(&text[..end]);
                path.push(&text[end..]);
            }
            TextPart::Literal(text) => path.push(text),
            TextPart::Value(value) => {
                let text = ImportedText::value(value.as_str());
                // `${BASE}${path}` and `http://host${path}`: a host is at its end there.
                let is_behind = match server.parts().last() {
                    Some(TextPart::Value(_)) => !value.starts_with("env("),
                    Some(TextPart::Literal(text)) => {
                        text.rsplit("://").next().is_some_and(|host| !host.is_empty())
                            && !value.starts_with("env(")
                    }
                    None => false,
                };
                if path.is_empty() && !is_behind {
                    server.append(&text);
                } else {
                    path.append(&text);
                }
            }
        }
    }
    (server, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_variables_are_those_that_can_be_one() {
        let server = |before: &str, after: &str| {
            let mut url = ImportedText::from(before);
            url.append(&ImportedText::value("env(A)"));
            url.push(after);
            split(&url).map(|(server, _)| server.map(|server| server.target().template()))
        };
        for (before, after, target) in [
            ("", "/a", "${env(A)}"),
            ("", ":80/a", "${env(A)}:80"),
            ("https://", "/a", "https://${env(A)}"),
            ("http://h:", "/a?b", "http://h:${env(A)}"),
        ] {
            assert_eq!(server(before, after), Ok(Some(target.to_owned())), "{before}{after}");
        }
        for (before, after) in [("http://a:b:", "/"), ("ftp://", "/"), ("http://u@", "/")] {
            let wrong = server(before, after).unwrap_err();
            assert!(wrong.contains("whatever its variables"), "{before}: {wrong}");
        }
    }
}
