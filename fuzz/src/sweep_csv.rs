//! Any table that is accepted is in order and leads to a conclusion whose numbers are numbers.

use knee_core::experiment::sweep::conclude_table;
use knee_core::experiment::sweep::report::SweepConclusion;
use knee_core::experiment::sweep::table::parse_csv;

/// Any bytes.
pub fn check(data: &[u8]) {
    let table = match parse_csv(data) {
        Ok(table) => table,
        Err(error) => {
            let line = error.to_string();
            assert!(!line.chars().any(char::is_control), "one line: {line:?}");
            return;
        }
    };
    assert!(!table.is_empty());
    assert!(table.is_sorted_by_key(|slice| slice.round));
    assert!(table.iter().all(|slice| slice.throughput_per_s >= 0.0));
    let (findings, conclusion) = conclude_table(&table);
    // JSON has no infinities: they would be written as null, which reads back as no number.
    let json = serde_json::to_string(&conclusion).expect("a conclusion serialises");
    if let Err(error) = serde_json::from_str::<SweepConclusion>(&json) {
        panic!("{error}: {json}");
    }
    for finding in findings {
        let json = serde_json::to_string(&finding.evidence).expect("evidence serialises");
        assert!(!json.contains("null"), "{}: {json}", finding.text);
        assert!(
            !finding.text.contains("NaN") && !finding.text.contains("inf "),
            "{}",
            finding.text
        );
    }
}
