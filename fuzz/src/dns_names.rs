//! Each line of a file of names is a question that its path asks, a comment or counted as skipped.

use knee_load::spec::{DnsQuestion, Url, parse_names};

/// The bytes are the file.
pub fn check(data: &[u8]) {
    let names = match parse_names(data) {
        Ok(names) => names,
        Err(error) => return assert!(!error.to_string().contains('\n'), "{error}"),
    };
    let lines = data.split(|byte| *byte == b'\n').count();
    assert!(names.paths.len() + names.skipped.count as usize <= lines);
    assert_eq!(names.skipped.count == 0, names.skipped.first == 0);
    for path in names.paths {
        let url = Url::parse(&format!("dns://h{path}")).expect("a URL");
        assert_eq!(url.path(), path);
        let question = DnsQuestion::of_path(&path).expect("a question");
        assert!(question.name.len() <= 255);
    }
}
