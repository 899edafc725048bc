//! The server that all requests go to, and their places on it.

use super::ScenarioInputs;
use super::fault::{Read, bail, fault};
use super::fields::text;
use super::holed::TextWithHoles;
use super::locator;
use super::names::TemplateScope;
use super::template;
use super::tree::Node;
use knee_load::quantity::quoted;
use knee_load::session::Escape;
use knee_load::spec::Url;

/// The target without a path.
pub(super) struct TargetOrigin {
    pub(super) url: Url,
    /// `http://host:port`.
    text: String,
}

impl TargetOrigin {
    /// Reads `target`.
    pub(super) fn read(node: &Node, inputs: &mut dyn ScenarioInputs) -> Read<TargetOrigin> {
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

    /// The path of a request, as a template has it or a URL of this target.
    pub(super) fn path(
        &self,
        node: &Node,
        scope: &mut TemplateScope<'_>,
    ) -> Read<(Url, TextWithHoles)> {
        let scalar = text(node, "a path such as /items")?;
        let written = template::read_apart(node, scalar, scope)?;
        let mut holed = locator::holed(written);
        self.leave_out(&mut holed).or_else(|what| fault(node.at, what))?;
        let begins_with = match holed.holes.first() {
            Some((0, fill)) => Some(fill.escape),
            _ => None,
        };
        let is_link = begins_with == Some(Escape::Link);
        let is_path = begins_with.is_none() && holed.text.starts_with('/');
        if !(is_path || is_link) {
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
        let slash = if is_link { "/" } else { "" };
        let whole = format!("{}{slash}{}", self.text, holed.text);
        let url = Url::parse(&whole).or_else(|wrong| fault(node.at, wrong.0))?;
        Ok((url, holed))
    }

    /// Leaves out scheme, host and port, which have to be those of the target.
    fn leave_out(&self, holed: &mut TextWithHoles) -> Result<(), String> {
        let is_url = ["http://", "https://"].iter().any(|scheme| {
            let begin = holed.text.get(..scheme.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
        });
        if !is_url {
            return Ok(());
        }
        let host = holed.text.find("://").map_or(0, |at| at + 3);
        let path = holed.text[host..].find(['/', '?']);
        let end = path.map_or(holed.text.len(), |at| host + at);
        if holed.holes.first().is_some_and(|hole| hole.0 <= end) {
            let own = &self.text;
            return Err(format!(
                "a template in the host: all requests go to {own}, so write the path alone"
            ));
        }
        let url = Url::parse(&holed.text[..end]).map_err(|wrong| wrong.0)?;
        if url.endpoint() != self.url.endpoint() || url.scheme() != self.url.scheme() {
            let (own, other) = (&self.text, &holed.text[..end]);
            return Err(format!(
                "{} is another server than the target {own}: a scenario has one",
                quoted(other)
            ));
        }
        let slash = if holed.text[end..].starts_with('/') { "" } else { "/" };
        holed.text = format!("{slash}{}", &holed.text[end..]);
        for (hole, _) in &mut holed.holes {
            *hole = *hole - end + slash.len();
        }
        Ok(())
    }
}
