//! Mistakes, each reported in one line with its place.

use super::{SHOP, parse};

/// Each mistake is `=== NAME`, the file (in which → is a tab), and `--- LINE:COLUMN: WORDS`, which
/// the line has to begin with and to hold.
const MISTAKES: &str = include_str!("mistakes.txt");

#[test]
fn mistakes() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for block in MISTAKES.split("\n=== ").skip(1) {
        let (name, rest) = block.split_once('\n').expect("a name");
        let (text, want) = rest.rsplit_once("--- ").expect("what is said");
        let (place, words) = want.trim_end().split_once(": ").expect("a place");
        let text = text.strip_suffix('\n').unwrap_or(text).replace('→', "\t");
        count += 1;
        let told = parse(&text).expect_err(name);
        assert!(!told.chars().any(char::is_control), "{name}: {told:?}");
        let begins = told.starts_with(&format!("shop.yaml:{place}: "));
        if !begins || !told.contains(words) {
            wrong.push(format!("{name}: {told}"));
        }
    }
    assert!(wrong.is_empty(), "of {count}:\n{}", wrong.join("\n"));
    assert!(count > 200, "{count}");
}

#[test]
fn a_threshold_of_no_step_is_told_with_the_steps_that_there_are() {
    let unnamed = SHOP.replace("name: checkout, ", "");
    let told = parse(&unnamed).unwrap_err();
    assert!(told.starts_with("shop.yaml:27:11: unknown step 'checkout': expected "));
    assert!(told.contains("'POST /cart'") && told.contains("'buyer'"), "{told}");
    let misspelt = SHOP.replace("checkout p99", "chekout p99");
    let told = parse(&misspelt).unwrap_err();
    assert!(told.ends_with("unknown step 'chekout': did you mean 'checkout'?"), "{told}");
}

#[test]
fn bytes_that_are_no_text_have_a_place() {
    let told = super::super::parse_scenario(b"a: 1\nb: \"\xff\"", "f", &mut super::Folder);
    let told = told.unwrap_err().0;
    assert_eq!(told, "f:2:5: this is not UTF-8 text: save the file as UTF-8");
}

#[test]
fn bombs_are_refused_at_once() {
    let mut aliases = "x-a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..20 {
        let inner = vec![format!("*a{}", n - 1); 10].join(", ");
        aliases += &format!("x-a{n}: &a{n} [{inner}]\n");
    }
    let long = format!("x-a: &a \"{}\"\nx-b: [{}]", "y".repeat(1 << 20), "*a, ".repeat(1_000));
    let wide = format!("x-a: [{}]", "1, ".repeat(600_000));
    let maps = (0..600_000).map(|n| format!("x-{n}: 1\n")).collect::<String>();
    let rows = [
        ("aliases of aliases", aliases.as_str(), "too many values"),
        ("aliases of a long text", &long, "too many values"),
        ("many values", &wide, "too many values"),
        ("many keys", &maps, "too many values"),
        ("lists in lists", &"[".repeat(1 << 20), "nested too deeply"),
        ("maps in maps", &"{a: ".repeat(1 << 18), "nested too deeply"),
        ("blocks in blocks", &"- ".repeat(1 << 18), "nested too deeply"),
        ("keys in keys", &"? ".repeat(1 << 18), ""),
        ("brackets that close", &"]".repeat(1 << 20), "not YAML"),
        ("anchors", &"&a ".repeat(1 << 18), "not YAML"),
        ("a long line", &"a".repeat(1 << 22), "is a map, not a text"),
        ("quotes", &"\"\n".repeat(1 << 20), "not YAML"),
        ("colons", &": ".repeat(1 << 18), ""),
        ("too large", &" ".repeat((16 << 20) + 1), "at most 16 MiB"),
    ];
    for (name, text, want) in rows {
        let told = parse(text).expect_err(name);
        assert!(told.contains(want), "{name}: {told}");
        assert!(!told.chars().any(char::is_control) && told.len() < 1_000, "{name}");
    }
}

/// What multiplies without aliases is bounded too.
#[test]
fn products_are_bounded() {
    let header = format!("A: \"{}\"", "y".repeat(1 << 20));
    let steps = "{get: /}, ".repeat(9_000);
    let text = format!(
        "target: http://h\ndefaults: {{headers: {{{header}}}}}\nsessions: {{s: {{steps: \
            [{steps}]}}}}"
    );
    assert!(parse(&text).unwrap_err().contains("too large here"));
    let many =
        format!("target: http://h\nsessions: {{s: {{steps: [{}]}}}}", "{get: /}, ".repeat(11_000));
    assert!(parse(&many).unwrap_err().contains("at most 10000 requests"));
    let names = (0..200).map(|n| format!("A{n}: b, ")).collect::<String>();
    let headers =
        format!("target: http://h\nsessions: {{s: {{steps: [{{get: /, headers: {{{names}}}}}]}}}}");
    assert!(parse(&headers).unwrap_err().contains("too many headers"));
}
