//! What a reader does with a page: hovers, presses keys, zooms, changes the colours.

use super::chromium::Chromium;
use super::{add, none, page_of, pages, troubles};
use crate::fixtures;
use crate::number::count;
use serde_json::Value;

const PLACES: &str = include_str!("places.js");

/// The figure whose data a test knows.
const FIGURE: &str = "[...document.querySelectorAll('figure')].find((f) => \
                      f.querySelector('b').textContent === 'poisson@6000/s')";

/// Scrolls to a figure; where its plot then is in the window: left, top, width, height.
fn scrolled_to(browser: &mut Chromium, figure: &str) -> [f64; 4] {
    let script = format!(
        "(() => {{ const f = {figure}; f.scrollIntoView({{block: 'center', behavior: 'instant'}});
         const b = f.querySelector('.frame > svg').getBoundingClientRect();
         return [b.left, b.top, b.width, b.height]; }})()"
    );
    let sides = browser.evaluate(&script);
    [0, 1, 2, 3].map(|i| sides[i].as_f64().unwrap())
}

/// What stands in the box that follows the mouse; nothing where it is hidden.
fn tip(browser: &mut Chromium, figure: &str) -> String {
    let script = format!(
        "(() => {{ const t = {figure}.querySelector('.tip');
         return t.hidden ? '' : [...t.querySelectorAll('b, th, td')].map((e) => e.textContent)
         .join('|'); }})()"
    );
    browser.evaluate(&script).as_str().unwrap().to_owned()
}

#[test]
fn each_series_shows_on_hover_what_its_table_tells() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    let (mut all, mut hovered) = (Vec::new(), 0);
    for (name, html) in pages() {
        browser.show(&html, 1_280, "light");
        let figures = browser.evaluate(PLACES);
        for figure in figures.as_array().unwrap() {
            let number = &figure["number"];
            let found = format!("document.querySelectorAll('figure')[{number}]");
            let [left, top, width, height] = scrolled_to(&mut browser, &found);
            for place in figure["places"].as_array().unwrap() {
                let at = |side: &str| place[side].as_f64().unwrap();
                let at = [left + at("left") * width, top + at("top") * height];
                browser.mouse("mouseMoved", at, "none");
                let shown = tip(&mut browser, &found);
                let told = |part: &str| shown.split('|').any(|s| s == place[part]);
                if !told("row") || !told("cell") {
                    let what = format!("{name}, {}", figure["title"]);
                    add(&mut all, &what, vec![format!("{shown:?} at {place}")]);
                }
                hovered += 1;
            }
        }
    }
    none(&all);
    assert!(hovered > 200, "{hovered}");
}

/// Shows the datagrams of one trial over time.
fn shown() -> Option<Chromium> {
    let mut browser = Chromium::start()?;
    browser.show(&page_of(&fixtures::udp_lossy()), 1_280, "light");
    Some(browser)
}

/// What the table of the figure has to tell of one interval.
fn told(interval: usize) -> [String; 3] {
    let trial = &fixtures::udp_lossy().trials[0];
    let i = &trial.intervals[interval];
    [i.sent, i.received, i.dropped].map(|n| count(n.unwrap()))
}

#[test]
fn hover_shows_the_numbers_of_the_report() {
    let Some(mut browser) = shown() else {
        return;
    };
    let [left, top, width, height] = scrolled_to(&mut browser, FIGURE);
    for interval in [0, 3, 9] {
        let x = left + (interval as f64 + 0.5) / 10.0 * width;
        browser.mouse("mouseMoved", [x, top + 0.9 * height], "none");
        let shown = tip(&mut browser, FIGURE);
        let [sent, received, dropped] = told(interval);
        let expected = format!("|sent|{sent}|received|{received}|dropped|{dropped}");
        assert!(shown.ends_with(&expected), "{shown} {expected}");
    }
    browser.mouse("mouseMoved", [5.0, 5.0], "none");
    assert_eq!(tip(&mut browser, FIGURE), "");
}

#[test]
fn keys_walk_through_the_values_and_tell_them() {
    let Some(mut browser) = shown() else {
        return;
    };
    browser.evaluate(&format!("{FIGURE}.querySelector('.frame').focus()"));
    let said = format!("{FIGURE}.querySelector('[aria-live]').textContent");
    for (keys, interval, series, name) in [
        (&["ArrowRight"][..], 0, 0, "sent"),
        (&["ArrowRight", "ArrowRight"], 2, 0, "sent"),
        (&["ArrowDown"], 2, 1, "received"),
        (&["End"], 9, 1, "received"),
        (&["ArrowDown"], 9, 2, "dropped"),
        (&["ArrowLeft"], 8, 2, "dropped"),
        (&["Home"], 0, 2, "dropped"),
    ] {
        keys.iter().for_each(|key| browser.key(key));
        let said = browser.evaluate(&said);
        let expected = format!("{name} {}", told(interval)[series]);
        assert!(said.as_str().unwrap().ends_with(&expected), "{said} {expected}");
    }
    browser.key("Escape");
    assert_eq!(tip(&mut browser, FIGURE), "");
    assert_eq!(troubles(&mut browser), [""; 0]);
}

/// What stands along x, and which part of the data is in sight.
fn axis(browser: &mut Chromium) -> Value {
    browser.evaluate(&format!(
        "[[...{FIGURE}.querySelectorAll('.xs .x text')].map((t) => t.textContent).join(' '),
          {FIGURE}.querySelector('.area').getAttribute('viewBox')]"
    ))
}

#[test]
fn zoom_changes_the_axis_and_reset_restores_it() {
    let Some(mut browser) = shown() else {
        return;
    };
    let [left, top, width, height] = scrolled_to(&mut browser, FIGURE);
    let whole = axis(&mut browser);
    let at = |share: f64| [left + share * width, top + 0.5 * height];
    browser.mouse("mousePressed", at(0.2), "left");
    browser.mouse("mouseMoved", at(0.3), "left");
    browser.mouse("mouseMoved", at(0.4), "left");
    browser.mouse("mouseReleased", at(0.4), "left");
    let part = axis(&mut browser);
    assert_ne!(part[0], whole[0]);
    let ticks = part[0].as_str().unwrap();
    assert!(ticks.contains('3') && !ticks.contains("8"), "{ticks}");
    assert_eq!(troubles(&mut browser), [""; 0]);
    let pressed = |browser: &mut Chromium, label: &str| {
        let script = format!(
            "(() => {{ const b = {FIGURE}.querySelector('button[aria-label=\"{label}\"]')
             .getBoundingClientRect();
             return [b.left + b.width / 2, b.top + b.height / 2]; }})()"
        );
        let at = browser.evaluate(&script);
        let at = [0, 1].map(|i| at[i].as_f64().unwrap());
        browser.mouse("mousePressed", at, "left");
        browser.mouse("mouseReleased", at, "left");
    };
    pressed(&mut browser, "Show all");
    assert_eq!(axis(&mut browser), whole);
    pressed(&mut browser, "Zoom in");
    assert_ne!(axis(&mut browser), whole);
    pressed(&mut browser, "Zoom out");
    assert_eq!(axis(&mut browser), whole);
    browser.evaluate(&format!("{FIGURE}.querySelector('.frame').focus()"));
    browser.character("+");
    assert_ne!(axis(&mut browser), whole);
    browser.character("0");
    assert_eq!(axis(&mut browser), whole);
}

#[test]
fn light_and_dark_are_a_choice_that_is_kept() {
    let Some(mut browser) = shown() else {
        return;
    };
    let background = "getComputedStyle(document.body).backgroundColor";
    let light = browser.evaluate(background);
    for _ in 0..2 {
        browser.evaluate("document.querySelector('button.theme').click()");
        assert_eq!(troubles(&mut browser), [""; 0]);
    }
    assert_eq!(browser.evaluate(background), light);
    browser.evaluate("document.querySelector('button.theme').click()");
    let dark = browser.evaluate(background);
    assert_ne!(dark, light);
    // The store is another process of the browser, which may take a while to hear of it.
    let kept = (0..10).any(|_| {
        browser.show(&page_of(&fixtures::udp_lossy()), 1_280, "light");
        browser.evaluate(background) == dark
    });
    assert!(kept);
}

#[test]
fn what_can_be_seen_needs_no_script() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    browser.call("Emulation.setScriptExecutionDisabled", serde_json::json!({"value": true}));
    let mut all = Vec::new();
    for (name, html) in pages() {
        browser.show(&html, 1_280, "light");
        let drawn = browser.evaluate("document.querySelectorAll('button').length");
        assert_eq!(drawn, 0, "{name}: a script ran");
        add(&mut all, name, troubles(&mut browser));
    }
    none(&all);
}

#[test]
fn nothing_in_a_report_becomes_markup_or_is_fetched() {
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    let evil = "</script></style></title><img src=http://127.0.0.1:9/x onerror='throw 1'>\"'&";
    for mut report in [fixtures::run_open(), fixtures::udp_compare()] {
        report.host.cpu_model = evil.into();
        report.spec.insert("target".into(), evil.into());
        for trial in &mut report.trials {
            trial.label = evil.into();
        }
        if let knee_core::report::Conclusion::Udp(c) = &mut report.conclusion {
            c.answer = evil.into();
            c.laws[0].label = evil.into();
        }
        browser.show(&page_of(&report), 1_280, "light");
        assert_eq!(browser.evaluate("document.querySelectorAll('img').length"), 0);
        let found = troubles(&mut browser);
        let grave = |t: &&String| t.starts_with("error") || t.starts_with("fetched");
        assert_eq!(found.iter().find(grave), None);
    }
}
