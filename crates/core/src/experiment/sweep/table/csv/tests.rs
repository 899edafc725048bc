//! Tables as people write them, and what is wrong with others.

use super::*;
use proptest::prelude::*;

type TableRow = (u32, f64, Option<u64>, Option<u64>);

fn parsed(text: &str) -> Vec<SweepSlice> {
    parse_csv(text.as_bytes()).unwrap_or_else(|e| panic!("{text:?}: {e}"))
}

fn rows(text: &str) -> Vec<TableRow> {
    let row = |s: &SweepSlice| (level_vusers(s.level), s.throughput_per_s, s.mean_ns, s.p90_ns);
    let mut rows: Vec<TableRow> = parsed(text).iter().map(row).collect();
    rows.sort_by_key(|row| row.0);
    rows
}

#[test]
fn reads_what_people_write() {
    let plain = vec![(1, 1833.0, None, None), (300, 88_375.0, None, None)];
    for (what, text) in [
        ("plain", "vusers,throughput_per_s\n1,1833\n300,88375\n"),
        ("no newline at the end", "vusers,throughput_per_s\n1,1833\n300,88375"),
        ("other order of columns", "throughput_per_s,vusers\n1833,1\n88375,300"),
        ("descending", "vusers,throughput_per_s\n300,88375\n1,1833"),
        ("spaces and Windows", " vusers , throughput_per_s \r\n 1 , 1833 \r\n300,88375\r\n"),
        ("comments", "# mine\n\nvusers,throughput_per_s # head\n1,1833#x\n#\n300,88375"),
        ("thousands in quotes", "vusers,throughput_per_s\n1,\"1,833\"\n300,\"88,375.0\""),
        ("byte order mark", "\u{feff}VUSERS,Throughput_per_s\n1,1833\n300,88375"),
        ("optional cells empty", "vusers,throughput_per_s,mean_ms\n1,1833,\n300,88375,"),
    ] {
        assert_eq!(rows(text), plain, "{what}");
    }
    assert_eq!(
        rows("p90_ms,vusers,throughput_per_s,mean_ms\n2.5,10,4000,2"),
        [(10, 4000.0, Some(2_000_000), Some(2_500_000))]
    );
}

#[test]
fn tables_of_web_pages_are_read_without_header() {
    let plain = vec![(1, 1833.0, None, None), (5000, 88_318.0, None, None)];
    for text in [
        "1,1833\n5000,88318",
        "1, 1833\n5000, \"88,318\"",
        "1 1,833\n5,000 88,318",
        "  1    1,833 \n5,000   88,318\n",
        "1\t1,833\n5,000\t88,318",
        "1;1833\n5000;88,318",
        "1\t1,833 req/s\n5,000\t88,318 req/s",
        "1 1,833/s\n5,000 88,318/s",
        "1 users 1,833 req/s\n5,000 users 88,318 rps",
        "users throughput/s\n1 1,833\n5,000 88,318",
        "users\treq/s\n1\t1,833\n5,000\t88,318",
    ] {
        assert_eq!(rows(text), plain, "{text:?}");
    }
    assert_eq!(rows("10 4k/s 2ms 2.5 ms"), [(10, 4000.0, Some(2_000_000), Some(2_500_000))]);
}

#[test]
fn headers_of_other_tools_name_columns_and_units() {
    let plain = vec![
        (1, 1833.0, Some(545_000), Some(600_000)),
        (5000, 88_318.0, Some(56_600_000), Some(60_000_000)),
    ];
    for text in [
        "Users,Requests/sec,Mean (ms),p90 [ms]\n1,1833,0.545,0.6\n5000,\"88,318\",56.6,60",
        "Concurrency,Requests per second [#/sec],Time per request [s],90%\n\
         1,1833,0.000545,0.6\n5000,88318,0.0566,60",
        "| VUs | RPS | avg | p90 |\n| ---: | ---: | --- | --- |\n| 1 | 1,833 | 545 µs | 600us |\n\
         | 5,000 | 88,318 | 56.6ms | 0.06 s |",
        "clients\trps\tlatency_us\tp90_us\tp99_us\n1\t1,833\t545\t600\t900\n\
         5,000\t88,318\t56,600\t60,000\t90,000",
        "Our server\nUsers Requests/sec Mean (ms) p90 (ms)\n1 1,833 0.545 0.6\n\
         5,000 88,318 56.6 60",
        "vusers  requests per second  mean  p90\n1  1,833 /s  545 µs  600 µs\n\
         5,000  88,318 /s  56.6 ms  60 ms",
        "users;throughput;mean;p90\n;req/s;ms;ms\n1;1,833;0.545;0.6\n5,000;88,318;56.6;60",
        "Users\t1\t5,000\nRequests/sec\t1,833\t88,318\nMean (ms)\t0.545\t56.6\n\
         p90 (ms)\t0.6\t60",
    ] {
        assert_eq!(rows(text), plain, "{text:?}");
    }
    let two = vec![(1, 1833.0, None, None), (5000, 88_318.0, None, None)];
    for text in [
        "Requests/sec\nconnections\tnginx\n1\t1,833\n5,000\t88,318",
        "VUs | RPS\n--- | ---\n1 | 1833\n5000 | 88318",
        "Users 1 5,000\nRequests/sec: 1,833 88,318",
        "users throughput\n- requests/sec\n1 1,833\n5,000 88,318",
        "Table 3. Throughput of the server\nusers,throughput (k/s)\n1,1.833\n5000,88.318",
        "Users\tThroughput\n\tRequests/sec\n1\t1,833\n5,000\t88,318",
    ] {
        assert_eq!(rows(text), two, "{text:?}");
    }
}

#[test]
fn rounds_are_parts_with_each_level_once_or_a_column() {
    let rounds = |text: &str| parsed(text).iter().map(|s| s.round).collect::<Vec<_>>();
    assert_eq!(rounds("1 100\n2 150\n2 300\n1 200\n1 100\n2 150"), [1, 1, 2, 2, 3, 3]);
    assert_eq!(rounds("1 100\n1 200\n1 100\n2 150\n2 300\n2 150"), [0; 6]);
    assert_eq!(rounds("1 100\n2 150"), [0; 2]);
    // Sorted by level, with the number of the repeat from 0 on.
    let by_level = "users,repeat,rps\n1,0,100\n1,1,0\n1,3,102\n2,0,150\n2,1,151\n2,3,150";
    let slices = parsed(by_level);
    let levels: Vec<_> = slices.iter().map(|s| (s.round, level_vusers(s.level))).collect();
    assert_eq!(levels, [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]);
    assert_eq!(slices[2].marks, ["outage"]);
    assert_eq!(slices[2].outage_ns, None, "the table tells no times");
    let timed = parsed("round vusers rps begin_s\n1 1 5 0\n1 2 9 1\n2 2 0 2.5\n2 1 5 3");
    assert_eq!(timed[2].outage_ns, Some([2_500_000_000, 3_000_000_000]));
    assert_eq!(rounds("round vusers rps\n4 1 5\n4 2 9"), [0, 0], "one round is none");
}

#[test]
fn errors_name_line_and_column_and_what_is_right() {
    for (text, place, hint) in [
        ("", "line 1", "give vusers,throughput_per_s"),
        ("load,1833", "line 1, column 1", "from 1"),
        ("load,rate", "line 1, column 1", "the header is vusers"),
        ("1 5 parsecs", "line 1, column 3", "`parsecs`"),
        ("1;1,83;", "line 1, column 2", "per second"),
        ("1 5 ms", "line 1, column 2", "per second"),
        ("vusers", "line 1, column 2", "`throughput_per_s` is missing"),
        ("vusers,vusers", "line 1, column 2", "comes twice"),
        ("vusers,throughput_per_s", "line 2", "one line per number of users"),
        ("vusers,throughput_per_s\n1", "line 2, column 2", "1 values where"),
        ("vusers,throughput_per_s\n1,88,318", "line 2, column 3", "in quotes"),
        ("vusers,throughput_per_s\n\n0,5", "line 3, column 1 (vusers)", "from 1"),
        ("vusers,throughput_per_s\n1.5,5", "line 2, column 1 (vusers)", "whole"),
        ("vusers,throughput_per_s\n1,x", "line 2, column 2 (throughput_per_s)", "`x`"),
        ("vusers,throughput_per_s\n1,nan", "line 2, column 2", "per second"),
        ("vusers,rps,round\n1,5,1.5", "line 2, column 3 (round)", "number of the round"),
        ("vusers,throughput_per_s\n1,\"8,31\"", "line 2, column 2", "88,318"),
        ("vusers,throughput_per_s\n1,\"5", "line 2, column 2", "not closed"),
        ("vusers,throughput_per_s,p90_ms\n1,5,-1", "line 2, column 3 (p90_ms)", "above 0"),
    ] {
        let error = parse_csv(text.as_bytes()).expect_err(text).to_string();
        assert!(error.contains(place), "{text:?}: {error}");
        assert!(error.contains(hint), "{text:?}: {error}");
    }
    let error = parse_csv(b"vusers,throughput_per_s\n1,\xff").expect_err("not UTF-8");
    assert!(error.to_string().contains("line 2 is not UTF-8"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_csv(&bytes);
        let mut after_header = b"vusers,throughput_per_s,p90_ms\n".to_vec();
        after_header.extend(&bytes);
        let _ = parse_csv(&after_header);
    }

    #[test]
    fn never_panics_on_what_is_almost_right(text in "[0-9,.\"#e\n -]{0,60}") {
        if let Ok(points) = parse_csv(format!("vusers,throughput_per_s\n{text}").as_bytes()) {
            let is_sound = |s: &SweepSlice| level_vusers(s.level) >= 1 && s.throughput_per_s >= 0.0;
            prop_assert!(points.iter().all(is_sound));
        }
    }
}
