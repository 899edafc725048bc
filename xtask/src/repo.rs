//! Where things are in this repository.

use std::path::{Path, PathBuf};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask has a parent").to_path_buf()
}

/// Cargo's target directory.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A source file by its path from the root, with `/` between the parts.
#[derive(Clone, Debug, PartialEq)]
pub struct RepoFile {
    /// Path from the repository's root.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// All Rust, C, Markdown and Cargo.toml files of the repository, sorted by path. What else the
/// documentation consists of is there without its text.
pub fn sources(root: &Path) -> Result<Vec<RepoFile>, String> {
    let mut found = Vec::new();
    collect(root, root, &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn collect(root: &Path, dir: &Path, found: &mut Vec<RepoFile>) -> Result<(), String> {
    let in_dir = |e: std::io::Error| format!("{}: {e}", dir.display());
    for entry in std::fs::read_dir(dir).map_err(in_dir)? {
        let path = entry.map_err(in_dir)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !name.starts_with("target") {
                collect(root, &path, found)?;
            }
        } else {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            let is_read = [".rs", ".c", ".h", ".md"].iter().any(|s| name.ends_with(s));
            let text = if name == "Cargo.toml" || is_read {
                std::fs::read_to_string(&path).map_err(in_dir)?
            } else if relative.starts_with("docs") {
                String::new()
            } else {
                continue;
            };
            found.push(RepoFile { path: relative.to_string_lossy().replace('\\', "/"), text });
        }
    }
    Ok(())
}
