//! Recordings of browsers.

use super::{cases, read};
use crate::import::har;

#[test]
fn recordings_become_steps() {
    for (name, entries, expected) in cases(include_str!("recording_cases.txt")) {
        let text = format!("{{\"log\": {{\"entries\": [{entries}]}}}}");
        let imported =
            har(text.as_bytes(), &[]).unwrap_or_else(|wrong| panic!("{name}: {}", wrong.0));
        read(&imported);
        let yaml = imported.to_yaml("a recording");
        let (_, yaml) = yaml.split_once('\n').unwrap();
        assert_eq!(yaml.trim_end(), expected, "{name}");
    }
}
