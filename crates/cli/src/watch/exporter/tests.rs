//! What is made of URLs and of lists of pairs. The environment is tested from outside.

use super::super::exporter::*;

#[test]
fn metrics_have_a_path_below_an_endpoint() {
    for (given, url) in [
        ("http://collector:4318", "http://collector:4318/v1/metrics"),
        ("http://collector:4318/", "http://collector:4318/v1/metrics"),
        ("http://collector:4318/v1/metrics", "http://collector:4318/v1/metrics"),
        ("http://prometheus:9090/api/v1/otlp", "http://prometheus:9090/api/v1/otlp/v1/metrics"),
    ] {
        assert_eq!(below(given), url);
    }
}

#[test]
fn pairs_are_decoded_and_faults_do_not_quote_them() {
    let read = pairs("V", " a=1, b = two%20words%2C ,,c=d=e").unwrap();
    let read: Vec<_> = read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(read, [("a", "1"), ("b", "two words,"), ("c", "d=e")]);
    for wrong in ["secret", "=secret", "a=1,secret"] {
        let told = pairs("V", wrong).unwrap_err().line;
        assert_eq!(told, "V: expected NAME=VALUE,NAME=VALUE");
    }
}
