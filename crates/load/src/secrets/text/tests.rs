use super::*;

fn hidden(text: &str, found: &[FoundSecret]) -> String {
    let mut out = text.to_owned();
    for one in found.iter().rev() {
        out.replace_range(one.at.clone(), "*");
    }
    out
}

fn of_text(text: &str) -> String {
    hidden(text, &secrets_of(&SecretNames::default(), text))
}

#[test]
fn secrets_of_any_text() {
    for (text, expected) in [
        ("http://me:pw@h/a", "http://*@h/a"),
        ("'http://me:p/w@h' is wrong", "'http://me:p/w@h' is wrong"),
        ("https://ghp_1@h:8/?a=b@c", "https://*@h:8/?a=b@c"),
        ("'http://me:secr…' is no URL", "'http://*…' is no URL"),
        ("http://h:80…", "http://h:80…"),
        ("GET /a?token=x&b=1", "GET /a?token=*&b=1"),
        ("GET /a?code=404&key=abc", "GET /a?code=404&key=*"),
        ("a password='x y' b", "a password='*' b"),
        (r#"{"password": "a\"b", "n": 1}"#, r#"{"password": "*", "n": 1}"#),
        (r#"{"pin":1234,"code":404}"#, r#"{"pin":*,"code":404}"#),
        (r#"{"token":null,"secret":true}"#, r#"{"token":null,"secret":true}"#),
        (r#"{"secrets":1,"secret":["a",["b"]],"c":1}"#, r#"{"secrets":1,"secret":*,"c":1}"#),
        (r#"'{\"token\":\"abc\",\"a\":1}'"#, r#"'{\"token\":\"*\",\"a\":1}'"#),
        (r#"{"token":"cut"#, r#"{"token":"*"#),
        ("authorization: Bearer x\r\nHost: h", "authorization: *\r\nHost: h"),
        ("-H 'X-Api-Key: x' -c 1", "-H 'X-Api-Key: *' -c 1"),
        ("Cookie: a=b; c=d", "Cookie: *"),
        ("<password>x</password>", "<password>*</password>"),
    ] {
        assert_eq!(of_text(text), expected);
    }
}

#[test]
fn ordinary_text_stays() {
    for text in [
        "",
        "=",
        "http://h/a?page=2&sort=key#token",
        "GET /items?user=me&max_tokens=100",
        "vusers=10",
        "--cookie: 'a' is no cookie: write NAME=VALUE",
        "--token: is missing",
        "give -H 'Authorization: …' instead",
        r#"{"id":1,"name":"token","key":7}"#,
        "Accept: text/html",
        "a user@host://x",
        "<token/> <b>x</b>",
    ] {
        assert_eq!(of_text(text), text);
    }
}

#[test]
fn only_ampersands_divide_a_query_or_a_form() {
    let names = SecretNames::default();
    let url = "http://h/token=1?token=a;b'c&d=1#token=e";
    let found = secrets_of_url(&names, url);
    assert_eq!(hidden(url, &found), "http://h/token=1?token=*&d=1#token=*");
    let form = "user=me&password=a b;c#d&x=1";
    assert_eq!(hidden(form, &secrets_of_form(&names, form)), "user=me&password=*&x=1");
}

#[test]
fn each_cookie_has_a_value() {
    let text = "a=1; sid=x=y;c";
    assert_eq!(hidden(text, &cookies(text)), "a=*; sid=*;c");
}

#[test]
fn hostile_text_is_scanned_in_linear_time() {
    for part in [r#"\""#, "\"", "x-token:", ":", "=", "://", "<token>", "\"token\":{", "é\""] {
        let _ = of_text(&part.repeat(20_000));
    }
}
