//! Values in HTML pages, by CSS selectors.

use crate::quantity::{ParseError, error, quoted};
use scraper::Html;
use serde::{Deserialize, Serialize};
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

/// A page as elements, read as browsers read it.
pub(super) struct ParsedPage(Html);

impl ParsedPage {
    pub(super) fn read(page: &[u8]) -> ParsedPage {
        ParsedPage(Html::parse_document(&String::from_utf8_lossy(page)))
    }

    /// The value of an attribute of the first element that `selector` matches. Without one it is
    /// its text and that of all elements in it, trimmed.
    pub(super) fn value(&self, selector: &CssSelector, attribute: Option<&str>) -> Option<Vec<u8>> {
        let element = self.0.select(&selector.parsed).next()?;
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
