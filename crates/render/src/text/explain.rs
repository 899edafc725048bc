//! The meaning of a code: a page for one, or the list of all.

use super::Text;
use super::page::{INDENT, TextPage};
use crate::Renderer;
use crate::document::Fact;
use crate::document::line::{Ink, Line};
use knee_core::finding::Code;
use knee_core::report::codes::{CodeChapter, CodeEntry};
use std::io;

impl Renderer<CodeEntry> for Text {
    fn render(&self, entry: &CodeEntry, out: &mut dyn io::Write) -> io::Result<()> {
        let mut page = TextPage::new(self.width.max(super::WIDTH_MIN), self.unicode);
        let Code { name, cause, remedy } = entry.code;
        page.heading(name, "");
        page.facts(&[
            ("cause".to_owned(), Line::plain(cause)),
            ("remedy".to_owned(), Line::plain(remedy)),
        ]);
        if !entry.reasons.is_empty() {
            page.heading("Reasons", "'knee explain REASON' says more");
            list(&mut page, &entry.reasons);
        }
        page.write(self.color, out)
    }
}

impl Renderer<Vec<CodeChapter>> for Text {
    fn render(&self, chapters: &Vec<CodeChapter>, out: &mut dyn io::Write) -> io::Result<()> {
        let mut page = TextPage::new(self.width.max(super::WIDTH_MIN), self.unicode);
        for chapter in chapters {
            page.heading(&chapter.title, "");
            list(&mut page, &chapter.codes);
        }
        page.gap();
        page.paragraph(0, 0, Line::plain("'knee explain CODE' says more about one."));
        page.write(self.color, out)
    }
}

/// A line for each code: its name and the first sentence of its cause, as far as that fits.
fn list(page: &mut TextPage, codes: &[Code]) {
    let column = codes.iter().map(|c| c.name.len()).max().unwrap_or(0);
    let room = page.width.saturating_sub(INDENT + column + 2);
    let line = |code: &Code| {
        let text = shortened(first_sentence(code.cause), room);
        (code.name.to_owned(), Line::of(Ink::Plain, text))
    };
    let lines: Vec<Fact> = codes.iter().map(line).collect();
    page.facts(&lines);
}

/// Up to the first full stop that ends a sentence.
fn first_sentence(text: &str) -> &str {
    match text.find(". ") {
        Some(end) => &text[..=end],
        None => text,
    }
}

fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    match kept.rsplit_once(' ') {
        Some((kept, _)) => format!("{}…", kept.trim_end_matches([',', ':'])),
        None => kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_core::report::codes::{chapters, codes, entry};

    fn shown<T>(whole: &T, unicode: bool) -> String
    where
        Text: Renderer<T>,
    {
        let text = Text { full: true, color: false, width: 80, unicode };
        let mut out = Vec::new();
        text.render(whole, &mut out).expect("memory takes it");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_page_says_all_of_cause_and_remedy_within_the_width() {
        let unwrapped = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for code in codes() {
            let page = shown(&entry(code.name).expect("a code"), true);
            let text = unwrapped(&page);
            assert!(text.starts_with(code.name), "{page}");
            for part in [code.cause, code.remedy] {
                assert!(text.contains(&unwrapped(part)), "{page}");
            }
            assert!(page.lines().all(|l| l.chars().count() <= 80), "{page}");
        }
    }

    #[test]
    fn the_list_has_a_line_for_each_code() {
        let list = shown(&chapters(), true);
        for code in codes() {
            let line = format!("  {} ", code.name);
            let lines = list.lines().filter(|l| l.starts_with(&line));
            assert_eq!(lines.count(), 1, "{}: {list}", code.name);
        }
        let titles = chapters().len();
        let all = list.lines().filter(|l| !l.is_empty()).count();
        assert_eq!(all, codes().count() + titles + 1, "{list}");
        assert!(shown(&chapters(), false).is_ascii());
    }

    #[test]
    fn invalid_lists_its_reasons() {
        let page = shown(&entry("INVALID").expect("the verdict"), true);
        assert!(page.contains("  fell_behind "), "{page}");
        let other = shown(&entry("past_knee").expect("a finding"), true);
        assert!(!other.contains("fell_behind"), "{other}");
    }
}
