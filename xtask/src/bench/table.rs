//! Markdown tables.

use crate::repo;

/// Rows under a header.
pub struct Table {
    columns: usize,
    text: String,
}

impl Table {
    /// The first column holds names, the others numbers.
    pub fn new(header: &[&str]) -> Self {
        let rule = vec!["---:"; header.len() - 1].join(" | ");
        let text = format!("| {} |\n| --- | {rule} |\n", header.join(" | "));
        Table {
            columns: header.len(),
            text,
        }
    }

    /// Adds a row; a cell per column.
    pub fn row(&mut self, cells: &[String]) {
        debug_assert_eq!(cells.len(), self.columns);
        self.text += &format!("| {} |\n", cells.join(" | "));
    }

    /// The table as Markdown, with a blank line after it.
    pub fn finish(self) -> String {
        self.text + "\n"
    }
}

/// The contenders' command lines as a list.
pub fn command_lines(lines: impl IntoIterator<Item = String>) -> String {
    // As they are typed in the repository's folder, wherever that is.
    let root = format!("{}/", repo::root().display());
    let list: String = lines
        .into_iter()
        .map(|line| format!("- `{}`\n", line.replace(&root, "")))
        .collect();
    format!("Command lines:\n\n{list}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown() {
        let mut table = Table::new(&["who", "how much"]);
        table.row(&["knee".into(), "1".into()]);
        assert_eq!(
            table.finish(),
            "| who | how much |\n| --- | ---: |\n| knee | 1 |\n\n"
        );
    }

    #[test]
    fn command_lines_hold_in_any_checkout() {
        let file = repo::root().join("bench/file").display().to_string();
        let shown = command_lines([format!("knee run {file} -d 1s")]);
        assert!(shown.contains("- `knee run bench/file -d 1s`\n"), "{shown}");
    }
}
