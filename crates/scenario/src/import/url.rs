//! Servers that requests go to, and paths on them.

use super::data::bytes_of;
use super::text::{ImportedText, TextPart};
use knee_load::percent;
use knee_load::spec::Url;

/// A server that requests go to.
#[derive(Clone, Debug)]
pub(super) enum ServerUrl {
    /// One that is known.
    Literal(Url),
    /// One that the environment gives, such as `${env(BASE)}` or `http://${env(HOST)}:80`.
    Environment(ImportedText),
}

impl ServerUrl {
    /// The server that a text names.
    fn of(text: &ImportedText) -> Result<ServerUrl, String> {
        if let Some(text) = text.literal() {
            return Ok(ServerUrl::Literal(Url::parse(&encoded(text)).map_err(|e| e.0)?));
        }
        let is_known = |part: &TextPart| match part {
            TextPart::Literal(_) => true,
            TextPart::Value(expression) => expression.starts_with("env("),
        };
        let mut url = String::new();
        for part in text.parts() {
            match part {
                TextPart::Literal(text) => url.push_str(text),
                // A port, or a host or a whole server.
                TextPart::Value(_) => url.push_str(if url.ends_with(':') { "80" } else { "h" }),
            }
        }
        if !text.parts().iter().all(is_known) {
            Err("its host is known only when it is sent".to_owned())
        } else if Url::parse(&url).is_err() {
            Err("it is no URL, whatever its variables are".to_owned())
        } else {
            Ok(ServerUrl::Environment(text.clone()))
        }
    }

    pub(super) fn differs(&self, other: &ServerUrl) -> bool {
        match (self, other) {
            (ServerUrl::Literal(a), ServerUrl::Literal(b)) => !a.has_server_of(b),
            (ServerUrl::Environment(a), ServerUrl::Environment(b)) => a != b,
            _ => true,
        }
    }

    /// Its host, with its port where that is not the scheme's own.
    pub(super) fn host(&self) -> String {
        match self {
            ServerUrl::Literal(url) => url.host().to_owned(),
            ServerUrl::Environment(text) => text.template(),
        }
    }

    /// What stands behind `target`.
    pub(super) fn target(&self) -> ImportedText {
        match self {
            ServerUrl::Literal(url) => format!("{}://{}", url.scheme().name(), url.host()).into(),
            ServerUrl::Environment(text) => text.clone(),
        }
    }

    /// The URL of this path on the server, as a step of a scenario with several targets has it.
    pub(super) fn whole_url(&self, path: &ImportedText) -> Result<ImportedText, String> {
        if let Some(TextPart::Value(_)) = path.parts().first() {
            return Err("a value that begins a path leads from the first target alone".to_owned());
        }
        let mut url = self.target().map_values(|value| format!("raw({value})"));
        url.append(path);
        Ok(url)
    }

    /// A URL that stands for this path on the server, letters being in the place of values.
    pub(super) fn url_of(&self, path: &ImportedText) -> Result<Url, String> {
        let path = path.with_letters();
        let slash = if path.starts_with('/') { "" } else { "/" };
        let base = match self {
            ServerUrl::Literal(_) => self.target().with_letters(),
            ServerUrl::Environment(_) => "http://h".to_owned(),
        };
        Url::parse(&format!("{base}{slash}{path}")).map_err(|e| e.0)
    }
}

/// A URL whose characters are those that one may have; a fragment is never sent.
pub(super) fn encoded(url: &str) -> String {
    percent::url_of_bytes(&bytes_of(url.split('#').next().unwrap_or_default().trim()))
}

/// The server of a request and its path with the query. Where no server is given, the URL has it,
/// unless it is a path of the first target.
pub(super) fn split(
    server: &ImportedText,
    url: &ImportedText,
) -> Result<(Option<ServerUrl>, ImportedText), String> {
    if !server.is_empty() {
        return Ok((Some(ServerUrl::of(server)?), url.map(percent::url)));
    }
    if url.with_letters().starts_with('/') {
        return Ok((None, url.map(percent::url)));
    }
    match ServerUrl::of(url)? {
        ServerUrl::Literal(url) => {
            let path = url.path().into();
            Ok((Some(ServerUrl::Literal(url)), path))
        }
        ServerUrl::Environment(_) => Err("its URL has no path".to_owned()),
    }
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
            ServerUrl::of(&url).map(|server| server.target().template())
        };
        for (before, after, target) in [
            ("", "", "${env(A)}"),
            ("", ":80", "${env(A)}:80"),
            ("https://", "", "https://${env(A)}"),
            ("http://h:", "", "http://h:${env(A)}"),
        ] {
            assert_eq!(server(before, after), Ok(target.to_owned()), "{before}{after}");
        }
        for (before, after) in [("http://a:b:", ""), ("ftp://", ""), ("http://u@", "")] {
            let wrong = server(before, after).unwrap_err();
            assert!(wrong.contains("whatever its variables"), "{before}: {wrong}");
        }
    }
}
