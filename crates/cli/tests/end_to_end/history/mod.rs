//! Every run is kept, however it ends, and no run suffers from it.

mod kept;
mod killed;
mod trends;
mod troubles;

use crate::support::{Ended, KneeServer, TempPath, knee};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// A data directory of its own, gone when dropped.
struct Data(PathBuf);

impl Data {
    fn new(name: &str) -> Data {
        let TempPath(path) = &TempPath::new(&format!("history-{name}"));
        fs::create_dir_all(path).unwrap();
        Data(path.clone())
    }

    fn file(&self) -> PathBuf {
        self.0.join("knee/history.db")
    }

    fn knee(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = knee(arguments);
        command.env("XDG_DATA_HOME", &self.0);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.knee(arguments).spawn().unwrap())
    }

    /// A run of 20 operations, which ends as it should.
    fn load(&self, server: &KneeServer, options: &[&str]) -> Ended {
        let url = server.url();
        let ended = self.run(&[&["run", &url, "-n", "20"], options].concat());
        assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
        ended
    }

    /// What succeeds; its standard output.
    fn told(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.status, Some(0), "{arguments:?}: {ended:?}");
        assert_eq!(ended.stderr, "", "{arguments:?}");
        ended.stdout
    }

    /// What is refused with one line.
    fn refused(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.status, Some(2), "{arguments:?}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{arguments:?}: {ended:?}");
        ended.stderr
    }

    fn list(&self, options: &[&str]) -> Vec<Value> {
        let told = self.told(&[&["history", "--json", "-"], options].concat());
        let list: Value = serde_json::from_str(&told).unwrap();
        list["runs"].as_array().unwrap().clone()
    }

    fn ids(&self, options: &[&str]) -> Vec<i64> {
        let id = |run: &Value| run["id"].as_i64().unwrap();
        self.list(options).iter().map(id).collect()
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
