//! Where the history lies.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Names the file itself, in the place of the one in the user's data directory.
pub const VARIABLE: &str = "KNEE_HISTORY";

/// The file of this user; else why there is none, in one line.
pub fn of_user() -> Result<PathBuf, String> {
    let variable = |name: &str| std::env::var_os(name);
    let place = place(
        variable(VARIABLE),
        variable("XDG_DATA_HOME"),
        variable("HOME"),
    );
    place.ok_or_else(|| {
        format!("there is no place for it: {VARIABLE}, XDG_DATA_HOME and HOME are not set")
    })
}

/// The file, by these variables. A data directory that is not absolute counts as not set (XDG Base
/// Directory Specification), and so does an empty one.
fn place(
    file: Option<OsString>,
    data_home: Option<OsString>,
    home: Option<OsString>,
) -> Option<PathBuf> {
    if let Some(file) = file.filter(|f| !f.is_empty()) {
        return Some(PathBuf::from(file));
    }
    let absolute = |path: OsString| Path::new(&path).is_absolute().then(|| PathBuf::from(path));
    let of_home = || Some(absolute(home?)?.join(".local/share"));
    let data = data_home.and_then(absolute).or_else(of_home)?;
    Some(data.join("knee/history.db"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_goes_before_the_data_directory_and_that_before_home() {
        let given = |text: &str| Some(OsString::from(text)).filter(|t| !t.is_empty());
        for (file, data_home, home, expected) in [
            ("here.db", "/data", "/home/a", Some("here.db")),
            ("", "/data", "/home/a", Some("/data/knee/history.db")),
            (
                "",
                "data",
                "/home/a",
                Some("/home/a/.local/share/knee/history.db"),
            ),
            (
                "",
                "",
                "/home/a",
                Some("/home/a/.local/share/knee/history.db"),
            ),
            ("", "", "home", None),
            ("", "", "", None),
        ] {
            let found = place(given(file), given(data_home), given(home));
            assert_eq!(
                found,
                expected.map(PathBuf::from),
                "{file} {data_home} {home}"
            );
        }
        let empty = place(Some(OsString::new()), None, given("/h"));
        assert_eq!(
            empty,
            Some(PathBuf::from("/h/.local/share/knee/history.db"))
        );
    }
}
