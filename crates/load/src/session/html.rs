//! Values in HTML pages, by CSS selectors.

use crate::quantity::{ParseError, error, quoted};
use ego_tree::NodeId;
use html5ever::driver::parse_document;
use html5ever::tendril::TendrilSink;
use scraper::{ElementRef, Html, HtmlTreeSink};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;

/// A CSS selector (Selectors Level 4, as far as the crate `scraper` has it).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CssSelector {
    text: String,
    parsed: scraper::Selector,
}

impl CssSelector {
    /// Reads a selector.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &str) -> Result<CssSelector, ParseError> {
        match scraper::Selector::parse(text) {
            Ok(parsed) => Ok(CssSelector { text: text.to_owned(), parsed }),
            Err(_) => Err(error(format!(
                "{} is no CSS selector: expected one such as 'input[name=csrf]'",
                quoted(text)
            ))),
        }
    }
}

impl fmt::Display for CssSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for CssSelector {
    fn eq(&self, other: &CssSelector) -> bool {
        self.text == other.text
    }
}

impl TryFrom<String> for CssSelector {
    type Error = ParseError;

    fn try_from(text: String) -> Result<CssSelector, ParseError> {
        CssSelector::parse(&text)
    }
}

impl From<CssSelector> for String {
    fn from(selector: CssSelector) -> String {
        selector.text
    }
}

/// Elements inside each other, as many as Chromium makes. Each new one costs a look at those that it
/// is in.
pub(super) const LEVELS_MAX: usize = 512;

/// Elements, texts and comments of a page. An element that is never closed can come again in each
/// paragraph, so that a page may have far more of them than tags.
pub(super) const NODES_MAX: usize = 100_000;

/// Bytes of a page after which it is held against the limits.
const BYTES_AT_ONCE: usize = 1 << 10;

/// The elements of a page, by their numbers in the order of the page.
pub struct ElementTree {
    page: ParsedPage,
    elements: Vec<NodeId>,
    numbers: HashMap<NodeId, u32>,
}

impl ElementTree {
    /// Reads a page.
    pub fn read(page: &[u8]) -> ElementTree {
        let page = ParsedPage::read(page);
        let all = page.html.tree.root().descendants();
        let elements: Vec<_> = all.filter(|n| n.value().is_element()).map(|n| n.id()).collect();
        let numbers = elements.iter().copied().zip(0..).collect();
        ElementTree { page, elements, numbers }
    }

    /// The element that each one is in.
    pub fn parents(&self) -> impl Iterator<Item = Option<u32>> {
        let parent = move |id| self.page.html.tree.get(id)?.parent();
        self.elements.iter().map(move |id| self.numbers.get(&parent(*id)?.id()).copied())
    }

    /// Elements that a CSS selector matches.
    ///
    /// # Errors
    /// No CSS selector.
    pub fn matching(&self, selector: &str) -> Result<Vec<u32>, ParseError> {
        let selector = CssSelector::parse(selector)?;
        let all = self.page.html.select(&selector.parsed);
        Ok(all.filter_map(|element| self.numbers.get(&element.id()).copied()).collect())
    }

    fn element(&self, number: u32) -> Option<ElementRef<'_>> {
        ElementRef::wrap(self.page.html.tree.get(*self.elements.get(number as usize)?)?)
    }

    /// A part of an element: its `name`, its `text` with that of all elements in it, or else the HTML
    /// in it. `None` where there is no element of this number.
    pub fn part(&self, number: u32, part: &str) -> Option<String> {
        let element = self.element(number)?;
        Some(match part {
            "name" => element.value().name().to_owned(),
            "text" => element.text().collect(),
            _ => element.inner_html(),
        })
    }

    /// Names and values of an element's attributes.
    pub fn attributes(&self, number: u32) -> impl Iterator<Item = (&str, &str)> {
        self.element(number).into_iter().flat_map(|element| element.value().attrs())
    }
}

/// A page as elements, read as browsers read it.
pub(super) struct ParsedPage {
    html: Html,
    /// It has more levels or nodes than are read.
    pub(super) is_cut: bool,
}

impl ParsedPage {
    pub(super) fn read(page: &[u8]) -> ParsedPage {
        let text = String::from_utf8_lossy(page);
        let sink = HtmlTreeSink::new(Html::new_document());
        let mut parser = parse_document(sink, Default::default());
        let (mut rest, mut nodes, mut is_cut) = (&*text, 0, false);
        while !rest.is_empty() && !is_cut {
            let mut end = BYTES_AT_ONCE.min(rest.len());
            while !rest.is_char_boundary(end) {
                end -= 1;
            }
            let (next, after) = rest.split_at(end);
            parser.process(next.into());
            rest = after;
            let tree = &parser.tokenizer.sink.sink.0.borrow().tree;
            let all = tree.nodes();
            let new = all.len() - nodes;
            nodes += new;
            let mut levels = all.rev().take(new).map(|node| node.ancestors().count());
            is_cut = nodes > NODES_MAX || levels.any(|levels| levels > LEVELS_MAX);
        }
        ParsedPage { html: parser.finish(), is_cut }
    }

    /// The value of an attribute of the first element that `selector` matches. Without one it is
    /// its text and that of all elements in it, trimmed.
    pub(super) fn value(&self, selector: &CssSelector, attribute: Option<&str>) -> Option<Vec<u8>> {
        let element = self.html.select(&selector.parsed).next()?;
        match attribute {
            Some(name) => element.attr(name).map(|value| value.as_bytes().to_vec()),
            None => Some(element.text().collect::<String>().trim().as_bytes().to_vec()),
        }
    }
}

/// A text with its character references of HTML resolved.
pub(super) fn unescaped(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    htmlize::unescape_attribute(text).into_owned().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"<!DOCTYPE html><html><head><title>A &amp; B</title>
<meta name="csrf" content="a&quot;b&#x2f;c"></head><body>
<form action="/pay?a=1&amp;b=2"><input type=hidden name="token" value='t=1&lt;2'><br>
<p class="note big"> one <b>two</b> three <p>four</form>
<ul><li>first<li class=x>second<li>third</ul>
<ol><li>a<ul><li>b</ul>c<li>d</ol><table><tr><td>1<td>2<tr><td>3</table>
<div id=d>a<div>b</div>c</div><script>if (a && b < c) { '&amp;' }</script>
<img src="/i.png"></body></html>"#;

    fn found(selector: &str, attribute: Option<&str>) -> Option<String> {
        let selector = CssSelector::parse(selector).unwrap();
        let value = ParsedPage::read(PAGE.as_bytes()).value(&selector, attribute)?;
        Some(String::from_utf8(value).unwrap())
    }

    #[test]
    fn values_of_the_first_element_are_found() {
        for (selector, attribute, want) in [
            ("title", None, Some("A & B")),
            ("meta[name=csrf]", Some("content"), Some("a\"b/c")),
            ("form input[name='token']", Some("value"), Some("t=1<2")),
            ("form", Some("action"), Some("/pay?a=1&b=2")),
            ("p.note", None, Some("one two three")),
            ("li", None, Some("first")),
            ("li.x", None, Some("second")),
            ("ul > li:nth-child(3)", None, Some("third")),
            ("ol > li", None, Some("abc")),
            ("td", None, Some("1")),
            ("tr", None, Some("12")),
            ("#d", None, Some("abc")),
            ("div", None, Some("abc")),
            ("script", None, Some("if (a && b < c) { '&amp;' }")),
            ("img", Some("src"), Some("/i.png")),
            ("img", None, Some("")),
            ("img", Some("alt"), None),
            ("video", None, None),
            ("li:not(.x)", None, Some("first")),
            ("ul:has(.x) li:last-child", None, Some("third")),
            ("td, title", None, Some("A & B")),
        ] {
            assert_eq!(found(selector, attribute).as_deref(), want, "{selector} {attribute:?}");
        }
    }

    #[test]
    fn pages_of_too_many_levels_or_nodes_are_cut() {
        let nested = |levels| format!("<p id=a>found</p>{}", "<div>".repeat(levels));
        let again = "<b class=NUMBER>".repeat(400) + &"<p>x".repeat(100_000);
        for (page, is_cut) in [
            (PAGE.to_owned(), false),
            (nested(400), false),
            (nested(700), true),
            (nested(200_000), true),
            (format!("<p id=a>found</p>{}", "<div></div>".repeat(40_000)), false),
            (format!("<p id=a>found</p>{}", "<i>x</i>".repeat(120_000)), true),
            (format!("<p id=a>found</p>{}", again.replace("NUMBER", "1")), true),
            ("é".repeat(3_000), false),
        ] {
            let read = ParsedPage::read(page.as_bytes());
            assert_eq!(read.is_cut, is_cut, "{:.60}", page);
            assert!(read.html.tree.nodes().len() < NODES_MAX + BYTES_AT_ONCE * LEVELS_MAX);
            let found = read.value(&CssSelector::parse("#a").unwrap(), None);
            assert_eq!(found.is_some(), page.contains("id=a"), "{:.60}", page);
        }
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for text in ["", "a[", "a >", ":nosuch"] {
            let wrong = CssSelector::parse(text).unwrap_err().0;
            assert!(wrong.starts_with(&format!("'{text}' is no CSS selector")), "{wrong}");
        }
        let json = serde_json::to_string(&CssSelector::parse("a > b").unwrap()).unwrap();
        assert_eq!(serde_json::from_str::<CssSelector>(&json).unwrap().to_string(), "a > b");
    }

    #[test]
    fn references_are_resolved() {
        assert_eq!(
            unescaped("a&amp;b&#39;&eacute;&nosuch; &lt".as_bytes()),
            "a&b'é&nosuch; <".as_bytes()
        );
    }
}
