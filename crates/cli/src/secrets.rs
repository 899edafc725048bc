//! The secrets of this process's command line, hidden in its messages.

use knee_load::secrets::Secrets;

/// The rule that the command line asks for, with the secrets that it has.
pub fn of_command_line() -> Secrets {
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    Secrets::of_command_line(&words)
}

/// The same with the secrets of a file's lines, for what is wrong with the file.
pub fn of_command_line_and(file: &str) -> Secrets {
    let mut secrets = of_command_line();
    secrets.learn_lines(file);
    secrets
}
