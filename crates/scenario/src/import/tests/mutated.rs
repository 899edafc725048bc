//! Sources that are damaged anywhere: one line or a scenario, never a panic.

use super::described::{JSON, YAML};
use super::plans::everything;
use super::scripts::JMETER;
use super::{HAR, VEGETA, no_file, read};
use crate::import::{Imported, curl_line, har, jmeter, openapi, vegeta};
use knee_load::quantity::ParseError;
use proptest::prelude::*;
use std::sync::LazyLock;

const CURL: &str = "curl 'http://h/a?b=1' -X POST -H 'a: b' -b 'c=d' \
                    --data-raw $'{\"e\":\"\\u0041\"}' \
                    -F 'g=h;type=i' --next http://h/ -u j:k | l";

/// A plan with elements of all kinds.
static PLAN: LazyLock<String> = LazyLock::new(everything);

/// A source with some of its bytes replaced.
fn damaged(source: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let noise =
        prop::collection::vec(prop_oneof![any::<u8>(), Just(b'"'), Just(b'{'), Just(b'\'')], 0..6);
    (0..source.len(), 0..8_usize, noise).prop_map(move |(at, length, noise)| {
        let mut bytes = source.as_bytes().to_vec();
        let end = (at + length).min(bytes.len());
        bytes.splice(at..end, noise);
        bytes
    })
}

fn check(imported: Result<Imported, ParseError>) {
    match imported {
        Ok(imported) => drop(read(&imported)),
        Err(wrong) => assert!(!wrong.0.contains('\n'), "{wrong}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn curl_lines(bytes in damaged(CURL)) {
        check(curl_line(&String::from_utf8_lossy(&bytes), &mut no_file));
    }

    #[test]
    fn recordings(bytes in damaged(HAR)) {
        check(har(&bytes, &[]));
    }

    #[test]
    fn descriptions(json in damaged(JSON), yaml in damaged(YAML)) {
        check(openapi(&json, None, &mut no_file));
        check(openapi(&yaml, None, &mut no_file));
    }

    #[test]
    fn plans(bytes in damaged(JMETER)) {
        check(jmeter(&bytes));
    }

    #[test]
    fn large_plans(bytes in damaged(&PLAN)) {
        check(jmeter(&bytes));
    }

    #[test]
    fn targets(bytes in damaged(VEGETA)) {
        check(vegeta(&bytes, &mut no_file));
    }
}
