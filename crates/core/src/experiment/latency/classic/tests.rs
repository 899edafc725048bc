use super::*;
use proptest::prelude::*;

#[test]
fn the_form_of_2011_is_read() {
    let text = "\
loadlatency 1.0 against 10.0.0.2
MinRTT: 0.5ms

Scenario 1: 0 uploads, 1 downloads... 92342 KiB/s down, 3.10 Hz smoothness
Scenario 2: 1 uploads, 0 downloads... 105388 KiB/s up
Scenario 4: 1 uploads, 1 downloads... 50998 KiB/s up, 85859 KiB/s down, 2.90 Hz smoothness
  Scenario 16: 1 uploads, 31 downloads... 14712.5 KiB/s up, 1 KiB/s down, 0 Hz smoothness, \
4.5 Hz responsiveness (forced), settled
Scenarios are run in this order: or not...
OVERALL:
    Upload Capacity: 50450 KiB/s
  Download Capacity: 0 KiB/s
Link Responsiveness: 0 Hz
    Flow Smoothness: 0 Hz
";
    let classic = parse_classic(text).expect("reads");
    assert_eq!(classic.min_rtt_ns, Some(500_000));
    assert_eq!(classic.scenarios.len(), 4);
    let ScenarioRow { up, down, .. } = classic.scenarios[0];
    assert_eq!((up, down), (0, 1));
    assert_eq!(classic.scenarios[1].up_kib_per_s, Some(105_388.0));
    assert_eq!(classic.scenarios[1].smoothness_hz, None);
    assert_eq!(
        classic.scenarios[2],
        ScenarioRow {
            up: 1,
            down: 1,
            up_kib_per_s: Some(50_998.0),
            down_kib_per_s: Some(85_859.0),
            smoothness_hz: Some(2.9),
            responsiveness_hz: None,
            ..ScenarioRow::default()
        }
    );
    assert_eq!(classic.scenarios[3].up_kib_per_s, Some(14_712.5));
    assert_eq!(classic.scenarios[3].responsiveness_hz, Some(4.5));
    assert_eq!(classic.overall, [Some(50_450.0), Some(0.0), Some(0.0), Some(0.0)]);
}

#[test]
fn errors_name_the_line_and_what_is_right() {
    let good = "Scenario 1: 0 uploads, 1 downloads... 1 KiB/s down\n";
    for (line, wrong) in [
        ("Scenario 4 1 uploads", "line 2: a scenario without a colon"),
        ("Scenario 4: 1 uploads, 1 downloads", "without `...`"),
        ("Scenario 4: 1 uploads... 5 KiB/s up", "`1 uploads` are no flows"),
        ("Scenario 4: x uploads, 1 downloads... ", "are no flows"),
        ("Scenario 4: 0 uploads, 0 downloads... ", "are no flows"),
        ("Scenario 4: 1 uploads, 1 downloads... x KiB/s up", "`x` is no number of KiB/s"),
        ("Scenario 4: 1 uploads, 1 downloads... -5 KiB/s up", "`-5` is no number of KiB/s"),
        ("Scenario 4: 1 uploads, 1 downloads... NaN KiB/s up", "`NaN` is no number"),
        ("Scenario 4: 1 uploads, 1 downloads... 1e9 KiB/s up", "`1e9` is no number"),
        ("Scenario 4: 1 uploads, 1 downloads... 5 KiB/s left", "`5 KiB/s left` is no figure"),
        ("Scenario 4: 1 uploads, 1 downloads... 5 Hz smoth", "`5 Hz smoth` is no figure"),
        ("Scenario 4: 0 uploads, 1 downloads... 5 KiB/s up", "without a flow up"),
        ("Scenario 4: 1 uploads, 0 downloads... 5 KiB/s down", "without a flow down"),
        ("MinRTT: fast", "line 2: MinRTT: "),
        ("Upload Capacity: 5 MB/s", "`5 MB/s` is no Upload Capacity: give such as `50450 KiB/s`"),
        ("Flow Smoothness: Hz", "`Hz` is no Flow Smoothness"),
    ] {
        let error = parse_classic(&format!("{good}{line}\n")).expect_err(line);
        assert!(error.contains(wrong) && error.starts_with("line 2: "), "{error}");
    }
    let error = parse_classic("").expect_err("nothing");
    assert!(error.starts_with("no scenario found; give lines such as `Scenario 4: "), "{error}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_in_one_line(text in "(Scenario [0-9]: )?[ -~\n]{0,200}") {
        match parse_classic(&text) {
            Ok(classic) => prop_assert!(!classic.scenarios.is_empty()),
            Err(error) => prop_assert!(!error.chars().any(char::is_control)),
        }
    }
}
