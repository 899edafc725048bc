//! Commands and options within a sentence, to be set as code.

/// Programs whose command lines occur in sentences.
const PROGRAMS: [&str; 10] =
    ["knee", "curl", "ethtool", "ip", "nft", "nstat", "sysctl", "taskset", "tc", "ulimit"];

/// Words that join clauses: a command ends before them.
const JOINS: [&str; 2] = ["and", "or"];

/// The pieces of a sentence, and whether each is to be typed:
///
/// - what stands between backticks, unless it is a mere name;
/// - an option with the value behind it, and the options that follow;
/// - a command line: a program where something is given, behind a colon, a comma or a bracket, with
///   its arguments. One of `knee` ends with the last of its arguments. Where more words follow, it
///   is only spoken of (`knee run does`). One of another program ends with the clause.
pub(super) fn pieces(sentence: &str) -> Vec<(bool, String)> {
    let mut pieces = TextPieces::default();
    for (i, part) in sentence.split('`').enumerate() {
        match i % 2 {
            0 => pieces.push_words(part),
            _ => pieces.push(part.contains(' ') || is_option(part), part),
        }
    }
    pieces.0
}

#[derive(Default)]
struct TextPieces(Vec<(bool, String)>);

impl TextPieces {
    fn push(&mut self, is_code: bool, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some((last, all)) if *last == is_code => all.push_str(text),
            _ => self.0.push((is_code, text.to_owned())),
        }
    }

    fn push_words(&mut self, text: &str) {
        let words: Vec<&str> = text.split(' ').collect();
        let mut begins_clause = true;
        let mut at = 0;
        while at < words.len() {
            let is_spoken_of = at > 0 && PROGRAMS.contains(&words[at - 1]);
            let typed = match command(&words[at..], begins_clause) {
                // The options of a program that is only spoken of are spoken of too.
                0 if is_spoken_of => 0,
                0 => options(&words[at..]),
                typed => typed,
            };
            let end = at + typed.max(1);
            for (i, word) in words[at..end].iter().enumerate() {
                let space = if at + i > 0 { " " } else { "" };
                self.push(typed > 0 && i > 0, space);
                let BareWord { open, word, close } = BareWord::of(word);
                self.push(false, open);
                self.push(typed > 0, word);
                self.push(false, close);
            }
            let last = words[end - 1];
            // Behind a semicolon a sentence begins, and its subject may be a program.
            begins_clause = last.ends_with([',', ':']) || JOINS.contains(&last);
            at = end;
        }
    }
}

/// A word without the brackets and the points around it.
#[derive(Clone, Copy)]
struct BareWord<'a> {
    open: &'a str,
    word: &'a str,
    close: &'a str,
}

impl<'a> BareWord<'a> {
    fn of(word: &'a str) -> BareWord<'a> {
        let inner = word.trim_start_matches('(');
        let bare = inner.trim_end_matches([',', ';', '.', ':', ')']);
        BareWord {
            open: &word[..word.len() - inner.len()],
            word: bare,
            close: &inner[bare.len()..],
        }
    }

    fn ends_clause(self) -> bool {
        !self.close.is_empty()
    }

    /// A lower-case word, as sentences are made of.
    fn is_plain(self) -> bool {
        !self.word.is_empty() && self.word.chars().all(|c| c.is_ascii_lowercase())
    }

    /// Text that occurs only in commands: a number, a setting, a NAME to replace.
    fn is_argument(self) -> bool {
        let is_name = self.word.chars().all(|c| c.is_ascii_uppercase());
        let has_sign = |c: char| c.is_ascii_digit() || ".:=/".contains(c);
        !self.word.is_empty() && (is_name || self.word.contains(has_sign))
    }
}

fn is_option(word: &str) -> bool {
    let is_name = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic());
    match word.strip_prefix("--") {
        Some(long) => is_name(long),
        None => word.strip_prefix('-').is_some_and(|short| short.len() == 1 && is_name(short)),
    }
}

/// The number of leading words that are options with their values.
fn options(words: &[&str]) -> usize {
    let mut n = 0;
    while let Some(word) = words.get(n) {
        let bare = BareWord::of(word);
        if !is_option(bare.word) || (n > 0 && !bare.open.is_empty()) {
            break;
        }
        n += 1;
        if bare.ends_clause() {
            break;
        }
        if is_value(&words[n..]) {
            n += 1;
            if BareWord::of(words[n - 1]).ends_clause() {
                break;
            }
        }
    }
    n
}

/// Whether the first of these words is the value of an option before it.
fn is_value(words: &[&str]) -> bool {
    let Some(first) = words.first() else {
        return false;
    };
    let bare = BareWord::of(first);
    let follows = words.get(1).map_or("", |next| next);
    let is_last = bare.ends_clause() || follows.is_empty() || follows.starts_with(['(', '-']);
    let is_word = !bare.word.is_empty() && bare.open.is_empty() && !is_option(bare.word);
    is_word && !JOINS.contains(&bare.word) && (bare.is_argument() || is_last)
}

/// The number of leading words that are one command line.
fn command(words: &[&str], begins_clause: bool) -> usize {
    let first = BareWord::of(words[0]);
    let is_introduced = begins_clause || !first.open.is_empty();
    if !PROGRAMS.contains(&first.word) || first.ends_clause() || !is_introduced {
        return 0;
    }
    match first.word {
        "knee" => of_knee(words),
        _ => of_another(words),
    }
}

/// `knee`, what it is to do, and its arguments.
fn of_knee(words: &[&str]) -> usize {
    let names = match words.get(1) {
        Some(&"serve") => 2,
        _ => 1,
    };
    let mut n = 1;
    for name in words.iter().skip(1).take(names) {
        if !BareWord::of(name).is_plain() {
            return 0;
        }
        n += 1;
        if BareWord::of(name).ends_clause() {
            return n;
        }
    }
    if n != 1 + names {
        return 0;
    }
    while let Some(word) = words.get(n) {
        let bare = BareWord::of(word);
        let typed = options(&words[n..]);
        let follows = words.get(n + 1).is_some_and(|next| is_option(next));
        let is_argument = bare.open.is_empty() && (bare.is_argument() || follows);
        match typed {
            // Words that go on with the sentence: the command was only spoken of.
            0 if is_argument => n += 1,
            0 if bare.is_plain() && bare.open.is_empty() && !JOINS.contains(&bare.word) => {
                return 0;
            }
            0 => break,
            typed => n += typed,
        }
        if BareWord::of(words[n - 1]).ends_clause() {
            break;
        }
    }
    n
}

/// Another program and all words to the end of the clause.
fn of_another(words: &[&str]) -> usize {
    let mut n = 1;
    for word in &words[1..] {
        let bare = BareWord::of(word);
        let is_cut_off = bare.word.is_empty() || bare.word == "…";
        if !bare.open.is_empty() || is_cut_off || JOINS.contains(&bare.word) {
            break;
        }
        n += 1;
        if bare.ends_clause() {
            break;
        }
    }
    // The name alone is only spoken of.
    if n > 1 { n } else { 0 }
}

#[cfg(test)]
mod tests;
