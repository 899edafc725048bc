//! Any text that is read has scenarios, and leads to a conclusion whose numbers are numbers.

use knee_core::experiment::latency::conclude_classic;
use knee_core::experiment::latency::parse_classic;
use knee_core::experiment::latency::report::LatencyConclusion;

/// Any bytes; those that are no text are none of its concern.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let classic = match parse_classic(text) {
        Ok(classic) => classic,
        Err(line) => {
            assert!(!line.chars().any(char::is_control), "one line: {line:?}");
            return;
        }
    };
    assert!(!classic.scenarios.is_empty());
    for scenario in &classic.scenarios {
        assert!(scenario.up + scenario.down > 0, "{scenario:?}");
        assert!(scenario.up > 0 || scenario.up_kib_per_s.is_none());
        assert!(scenario.down > 0 || scenario.down_kib_per_s.is_none());
    }
    let (findings, conclusion) = conclude_classic(&classic);
    assert_eq!(conclusion.scenarios.len(), classic.scenarios.len());
    // JSON has no infinities: they would be written as null, which reads back as another figure.
    let json = serde_json::to_string(&conclusion).expect("a conclusion serialises");
    match serde_json::from_str::<LatencyConclusion>(&json) {
        Ok(read) => assert_eq!(read, conclusion, "{json}"),
        Err(error) => panic!("{error}: {json}"),
    }
    for finding in findings {
        assert!(
            finding.evidence.values().all(|v| v.is_finite()) && !finding.text.contains("NaN"),
            "{}",
            finding.text
        );
    }
}
