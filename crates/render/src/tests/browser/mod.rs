//! The pages in a real browser: each fixture's page is shown in Chromium, and used.
//!
//! With `KNEE_SCREENSHOTS=DIRECTORY` each page is also kept there as it was seen, wide and narrow,
//! light and dark, in pieces.

mod chromium;
mod used;

use crate::{Html, Renderer, fixtures, html_tour};
use chromium::Chromium;
use serde_json::{Value, json};

/// Of a desk and of a telephone, in pixels.
const WIDTHS: [u32; 2] = [1_280, 400];

const CHECKS: &str = include_str!("checks.js");

fn page_of<T>(shown: &T) -> String
where
    Html: Renderer<T>,
{
    let mut bytes = Vec::new();
    Html.render(shown, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn pages() -> Vec<(&'static str, String)> {
    let all = fixtures::all().into_iter();
    let mut pages: Vec<(&str, String)> =
        all.map(|(name, report)| (name, page_of(&report))).collect();
    pages.push(("compare_runs", page_of(&fixtures::slower())));
    pages.push(("compare_sweeps", page_of(&fixtures::sweeps())));
    let (sweep, run) = (fixtures::sweep_good(), fixtures::run_open());
    let mut tour = Vec::new();
    html_tour(&[("The knee", &sweep), ("One load", &run)], &mut tour).unwrap();
    pages.push(("tour", String::from_utf8(tour).unwrap()));
    pages
}

/// What does not hold of the page as it is shown now, though it must of any.
fn troubles(browser: &mut Chromium) -> Vec<String> {
    let found = browser.evaluate(CHECKS);
    let found = found.as_array().unwrap().iter();
    let mut troubles: Vec<String> = found.map(|t| t.as_str().unwrap().to_owned()).collect();
    let errors = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"];
    let errors = browser.events(&errors).into_iter();
    troubles.extend(errors.map(|e| format!("error: {}", e["params"])));
    let requests = browser.events(&["Network.requestWillBeSent"]);
    let urls = requests.iter().map(|r| &r["params"]["request"]["url"]);
    let is_page = |url: &&str| url.starts_with("file://") && url.ends_with("page.html");
    let others = urls.filter_map(Value::as_str).filter(|url| !is_page(url));
    troubles.extend(others.map(|url| format!("fetched: {url}")));
    troubles
}

/// Adds these troubles of one page in one state to those of all.
fn add(all: &mut Vec<String>, what: &str, found: Vec<String>) {
    all.extend(found.into_iter().map(|t| format!("{what}: {t}")));
}

#[track_caller]
fn none(all: &[String]) {
    assert!(all.is_empty(), "{}", all.join("\n"));
}

/// What a person sees or does without a name for one who does not see it.
fn nameless(browser: &mut Chromium) -> Vec<String> {
    let named = [
        "figure",
        "image",
        "img",
        "graphics-document",
        "button",
        "link",
        "combobox",
        "slider",
        "checkbox",
        "radio",
        "textbox",
        "application",
        "region",
        "table",
    ];
    let tree = browser.call("Accessibility.getFullAXTree", json!({}));
    let nodes = tree["nodes"].as_array().unwrap().iter();
    let is_nameless = |node: &&Value| {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        let name = node["name"]["value"].as_str().unwrap_or_default();
        node["ignored"] == false && named.contains(&role) && name.trim().is_empty()
    };
    nodes.filter(is_nameless).map(|node| format!("nameless {}", node["role"]["value"])).collect()
}

/// Keeps a page itself beside its pictures.
fn keep_page(html: &str, name: &str) {
    if let Some(directory) = std::env::var_os("KNEE_SCREENSHOTS") {
        let path = std::path::Path::new(&directory).join(format!("{name}.html"));
        std::fs::write(path, html).unwrap();
    }
}

fn keep_screenshot(browser: &mut Chromium, name: &str) {
    let Some(directory) = std::env::var_os("KNEE_SCREENSHOTS") else {
        return;
    };
    for (i, shot) in browser.screenshots(1_600.0).iter().enumerate() {
        let path = std::path::Path::new(&directory).join(format!("{name}-{}.png", i + 1));
        std::fs::write(path, decoded(shot)).unwrap();
    }
}

/// Bytes of base 64.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|c| *c != b'=').map(digit).collect();
    let mut bytes = Vec::new();
    for four in digits.chunks(4) {
        let all = four.iter().fold(0_u32, |all, d| all << 6 | u32::from(*d));
        let all = all << (6 * (4 - four.len()));
        bytes.extend_from_slice(&all.to_be_bytes()[1..four.len()]);
    }
    bytes
}

#[test]
fn every_page_is_fit_to_be_seen() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    let mut all = Vec::new();
    for (name, html) in pages() {
        assert!(html.len() < 1_000_000, "{name}: {}", html.len());
        keep_page(&html, name);
        for width in WIDTHS {
            browser.show(&html, width, "light");
            for scheme in ["light", "dark"] {
                let what = format!("{name}-{width}-{scheme}");
                browser.appear(width, scheme, "screen");
                add(&mut all, &what, troubles(&mut browser));
                keep_screenshot(&mut browser, &what);
            }
        }
        add(&mut all, name, nameless(&mut browser));
    }
    none(&all);
}

#[test]
fn every_page_prints() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    let mut all = Vec::new();
    for (name, html) in pages() {
        browser.show(&html, 1_280, "dark");
        let pdf = decoded(&browser.printed());
        assert!(pdf.starts_with(b"%PDF-") && pdf.len() > 5_000, "{name}");
        // On paper there is no dark, and no room for what is wider than it.
        browser.appear(700, "dark", "print");
        add(&mut all, &format!("{name} in print"), troubles(&mut browser));
    }
    none(&all);
}

/// However much was found, a reader sees the first figure of a sweep without scrolling.
#[test]
fn a_sweep_begins_with_its_plot() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    let mut crowded = fixtures::sweep_good();
    let finding = crowded.findings[0].clone();
    crowded.findings.extend(vec![finding; 4]);
    let top = "document.querySelector('.frame').getBoundingClientRect().top";
    for report in [crowded, fixtures::sweep_invalid(), fixtures::sweep_rates()] {
        for (width, height) in [(1_280, 900.0), (400, 1_800.0)] {
            browser.show(&page_of(&report), width, "light");
            let top = browser.evaluate(top).as_f64().unwrap();
            assert!(top < 0.7 * height, "{top} of {height}");
        }
    }
}

/// A finding is one line that tells what was found; what to do unfolds, and is on paper.
#[test]
fn findings_unfold() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    browser.show(&page_of(&fixtures::sweep_good()), 1_280, "light");
    let shown = "[...document.querySelectorAll('.findings .next')].filter((e) => \
                 e.checkVisibility({contentVisibilityAuto: true})).length";
    // What unfolds is visible from the next frame on.
    let becomes = |browser: &mut Chromium, count: u64| {
        (0..50).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            browser.evaluate(shown).as_u64() == Some(count)
        })
    };
    assert!(becomes(&mut browser, 0));
    browser.evaluate("document.querySelector('.findings summary').click()");
    assert!(becomes(&mut browser, 1));
    browser.appear(700, "light", "print");
    assert!(becomes(&mut browser, 2));
}

/// A table that is wider than the window scrolls by keys.
#[test]
fn a_wide_table_scrolls_by_keys() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    browser.show(&page_of(&fixtures::sweep_good()), 400, "light");
    let table = "document.querySelector('.wide[aria-label=\"Levels\"]')";
    browser.evaluate(&format!("{table}.focus()"));
    for _ in 0..3 {
        browser.key("ArrowRight");
    }
    let moved = (0..50).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        browser.evaluate(&format!("{table}.scrollLeft")).as_f64() > Some(20.0)
    });
    assert!(moved);
}
