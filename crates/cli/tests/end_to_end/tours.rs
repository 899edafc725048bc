//! The tour: all experiments against built-in servers, and the page that it ends in.

use crate::support::{Ended, TempPath, knee};
use std::time::Duration;

/// It takes about a minute by its own plan; a busy machine may need several.
const PATIENCE: Duration = Duration::from_secs(300);

const PARTS: usize = 5;

#[test]
fn all_experiments_end_in_one_page_that_needs_no_other() {
    let page = TempPath::new("tour.html");
    let child = knee(&["demo", "--quiet", "--html", page.str()]).spawn().unwrap();
    let ended = Ended::within(PATIENCE, child);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(ended.stderr, "");
    let last = ended.stdout.lines().last().unwrap();
    assert!(last.starts_with("6 of 6 in "), "{ended:?}");
    let html = std::fs::read_to_string(&page.0).unwrap();
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    for part in 0..PARTS {
        for sign in [format!(" id=\"part{part}\""), format!("\"#part{part}\"")] {
            assert_eq!(html.matches(&sign).count(), 1, "{sign}");
        }
    }
    for command in ["udp", "overload", "throttle", "latency", "sweep"] {
        let number = ended.stdout.find(&format!("\n$ knee {command} "));
        assert!(number.is_some(), "{command}: {ended:?}");
    }
    assert_no_outside_address(&html.to_lowercase());
}

/// Nothing is fetched or linked, and only servers of this host are spoken of.
fn assert_no_outside_address(html: &str) {
    for sign in ["https:", "//www", " src=", "@import", "url(", "xmlns", "<link"] {
        assert!(!html.contains(sign), "{sign}");
    }
    for address in html.split("http:").skip(1) {
        let address: String = address.chars().take(30).collect();
        assert!(address.starts_with("//127.0.0.1:"), "http:{address}");
    }
    let links = |sign: &str| html.matches(sign).count();
    assert_eq!(links("href="), links("href=\"#"));
}
