//! The servers that requests go to, and their places there.

use super::ScenarioInputs;
use super::fault::{Read, bail, fault};
use super::fields::{one_or_more, text};
use super::holed::TextWithHoles;
use super::locator;
use super::names::TemplateScope;
use super::template;
use super::tree::Node;
use knee_load::quantity::quoted;
use knee_load::session::Escape;
use knee_load::spec::{Scheme, Url};

/// The most targets of a scenario.
pub(super) const TARGETS_MAX: usize = 16;

/// A target without a path.
pub(super) struct TargetOrigin {
    pub(super) url: Url,
    /// `http://host:port`.
    text: String,
}

/// The targets of a scenario, at least one. Paths alone are of the first.
pub(super) struct TargetOrigins(Vec<TargetOrigin>);

/// Where a request goes.
pub(super) struct RequestPlace {
    /// The number of its target.
    pub(super) server: u16,
    /// Its URL, the holes left out.
    pub(super) url: Url,
    /// Its path.
    pub(super) path: TextWithHoles,
    /// A value of the run says to which target it goes.
    pub(super) leads: bool,
}

impl TargetOrigins {
    /// Reads `target`: a URL or several.
    pub(super) fn read(node: &Node, inputs: &mut dyn ScenarioInputs) -> Read<TargetOrigins> {
        let mut origins: Vec<TargetOrigin> = Vec::new();
        for node in one_or_more(node) {
            let origin = TargetOrigin::read(node, inputs)?;
            // The environment may name one server twice.
            if !origins.iter().any(|other| other.url.has_server_of(&origin.url)) {
                origins.push(origin);
            }
        }
        if origins.is_empty() || origins.len() > TARGETS_MAX {
            bail!(node.at, "no target, or too many: expected 1 to {TARGETS_MAX} URLs");
        }
        let is_http =
            |origin: &&TargetOrigin| matches!(origin.url.scheme(), Scheme::Http | Scheme::Https);
        match origins.iter().find(|origin| !is_http(origin)) {
            Some(other) if origins.len() > 1 => bail!(
                node.at,
                "{} among several targets: expected http:// or https:// in each",
                quoted(&other.text)
            ),
            _ => Ok(TargetOrigins(origins)),
        }
    }

    /// Their URLs, by their numbers.
    pub(super) fn urls(&self) -> impl Iterator<Item = (u16, &Url)> {
        (0u16..).zip(&self.0).map(|(server, origin)| (server, &origin.url))
    }

    /// The place of a request, as a template has its path or a URL of a target.
    pub(super) fn place(&self, node: &Node, scope: &mut TemplateScope<'_>) -> Read<RequestPlace> {
        let scalar = text(node, "a path such as /items")?;
        let written = template::read_apart(node, scalar, scope)?;
        let mut path = locator::holed(written);
        let server = self.leave_out(&mut path).or_else(|what| fault(node.at, what))?;
        let at_begin = path.holes.first().filter(|(at, _)| *at == 0);
        let begins_with = at_begin.map(|(_, fill)| fill.escape);
        let leads = begins_with == Some(Escape::Link);
        let is_path = begins_with.is_none() && path.text.starts_with('/');
        if !(is_path || leads) {
            let shown = quoted(&scalar.text);
            let hint = if scalar.text.trim_start().starts_with("${") {
                ". Write ${raw(NAME)} for a value that is a URL or its begin"
            } else {
                ""
            };
            bail!(
                node.at,
                "{shown} is no path: expected one that begins with '/', or a URL of the \
                     target{hint}"
            );
        }
        let slash = if leads { "/" } else { "" };
        let own = &self.0[usize::from(server)].text;
        let whole = format!("{own}{slash}{}", path.text);
        let url = Url::parse(&whole).or_else(|wrong| fault(node.at, wrong.0))?;
        Ok(RequestPlace { server, url, path, leads })
    }

    /// Leaves out scheme, host and port, which have to be those of a target. Says which.
    fn leave_out(&self, holed: &mut TextWithHoles) -> Result<u16, String> {
        let is_url = ["http://", "https://"].iter().any(|scheme| {
            let begin = holed.text.get(..scheme.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
        });
        if !is_url {
            return Ok(0);
        }
        let host = holed.text.find("://").map_or(0, |at| at + 3);
        let path = holed.text[host..].find(['/', '?']);
        let end = path.map_or(holed.text.len(), |at| host + at);
        let known: Vec<&str> = self.0.iter().map(|origin| &*origin.text).collect();
        let known = known.join(", ");
        if holed.holes.first().is_some_and(|hole| hole.0 <= end) {
            return Err(format!(
                "a template in the host: expected a path, or a URL of the target ({known})"
            ));
        }
        let url = Url::parse(&holed.text[..end]).map_err(|wrong| wrong.0)?;
        let Some(server) = self.0.iter().position(|origin| origin.url.has_server_of(&url)) else {
            let other = &holed.text[..end];
            return Err(format!(
                "{} is another server than the target: write target: [{known}, {other}] for \
                 several",
                quoted(other)
            ));
        };
        let slash = if holed.text[end..].starts_with('/') { "" } else { "/" };
        holed.text = format!("{slash}{}", &holed.text[end..]);
        for (hole, _) in &mut holed.holes {
            *hole = *hole - end + slash.len();
        }
        Ok(server as u16)
    }
}

impl TargetOrigin {
    fn read(node: &Node, inputs: &mut dyn ScenarioInputs) -> Read<TargetOrigin> {
        const EXPECTED: &str = "a URL such as http://127.0.0.1:8080";
        let written = template::read_settled(node, EXPECTED, inputs)?;
        let url = Url::parse(&written).or_else(|wrong| fault(node.at, wrong.0))?;
        if url.path() != "/" {
            let path = quoted(url.path());
            bail!(node.at, "the target has the path {path}: write it in the steps");
        }
        let scheme = url.scheme().name();
        let text = format!("{scheme}://{}", url.host());
        Ok(TargetOrigin { url, text })
    }
}
