use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn options(value: Value) -> BTreeMap<String, Value> {
    serde_json::from_value(value).unwrap()
}

fn hidden(value: Value) -> Value {
    let mut options = options(value);
    Secrets::default().hide_options(&mut options);
    json!(options)
}

#[test]
fn options_refer_to_variables() {
    for (given, expected) in [
        (
            json!({"header": ["Authorization: Bearer abc", "Accept: */*", "x-api-key:k1"]}),
            json!({"header": ["Authorization: $KNEE_SECRET_AUTHORIZATION", "Accept: */*",
                              "x-api-key:$KNEE_SECRET_X_API_KEY"]}),
        ),
        (
            json!({"url": "http://h/?token=a%20b&page=2", "cookie": ["a=b; c=d"]}),
            json!({"url": "http://h/?token=$KNEE_SECRET_TOKEN&page=2",
                   "cookie": ["$KNEE_SECRET_COOKIE"]}),
        ),
        (
            json!({"user": "me:pa:ss", "body": "{\"password\": \"a\\\"b\", \"n\": 1}"}),
            json!({"user": "me:$KNEE_SECRET_PASSWORD_2",
                   "body": "{\"password\": \"$KNEE_SECRET_PASSWORD\", \"n\": 1}"}),
        ),
        (
            json!({"data": ["user=me&password=a;b c", "@file"], "data-urlencode": ["pwd=a&b"],
                   "form": ["token=abc;type=text/plain", "token=@file"]}),
            json!({"data": ["user=me&password=$KNEE_SECRET_PASSWORD", "@file"],
                   "data-urlencode": ["pwd=$KNEE_SECRET_PWD"],
                   "form": ["token=$KNEE_SECRET_TOKEN;type=text/plain", "token=@file"]}),
        ),
        (
            json!({"header": ["X-Token: abc", "X-Token: abc", "X-Token: def"]}),
            json!({"header": ["X-Token: $KNEE_SECRET_X_TOKEN", "X-Token: $KNEE_SECRET_X_TOKEN",
                              "X-Token: $KNEE_SECRET_X_TOKEN_2"]}),
        ),
        (
            json!({"header": ["X-Token: same-value-1", "X-Other: same-value-1"]}),
            json!({"header": ["X-Token: $KNEE_SECRET_X_TOKEN", "X-Other: $KNEE_SECRET_X_TOKEN"]}),
        ),
        (json!({"user": "me:***"}), json!({"user": "me:$KNEE_SECRET_PASSWORD"})),
        (json!({"user": "me:"}), json!({"user": "me:"})),
        (
            json!({"key": "key=a.pem", "body": "@token=file", "rate": 5, "vusers": [1, 2]}),
            json!({"key": "key=a.pem", "body": "@token=file", "rate": 5, "vusers": [1, 2]}),
        ),
    ] {
        let once = hidden(given);
        assert_eq!(once, expected);
        assert_eq!(hidden(once), expected, "twice is as once");
    }
}

#[test]
fn a_value_is_hidden_wherever_it_is_repeated() {
    let mut secrets = Secrets::default();
    let mut given = options(json!({
        "header": ["Authorization: Bearer tok-123456"], "user": "me:pässwort-1",
        "cookie": ["theme=dark; other=cookie-value-1"], "url": "http://h/?key=status",
    }));
    secrets.hide_options(&mut given);
    let encoded = BASE64.encode("me:pässwort-1");
    for text in ["invalid: tok-123456", "pässwort-1", "p%C3%A4sswort-1", "cookie-value-1", &encoded]
    {
        let hidden = secrets.hide(text);
        assert!(hidden.ends_with(MASK), "{text}: {hidden}");
    }
    for text in ["dark", "status 200", "me", "Bearer", "Basic"] {
        assert_eq!(secrets.hide(text), text);
    }
}

#[test]
fn credentials_of_basic_authentication_are_learnt_decoded() {
    let mut secrets = Secrets::default();
    secrets.learn_header("Authorization", &format!("Basic {}", BASE64.encode("me:hunter-42")));
    assert_eq!(secrets.hide("no user hunter-42"), "no user ***");
}

#[test]
fn further_names_hide_and_showing_undoes_all() {
    let secrets = Secrets::with(["tenant".to_owned()]);
    assert_eq!(secrets.hide("GET /?tenant=a&b=c"), "GET /?tenant=***&b=c");
    let mut shown = Secrets::default().shown();
    shown.learn("a-long-secret");
    let text = "GET /?token=a-long-secret";
    assert_eq!(shown.hide(text), text);
    let mut given = options(json!({"user": "me:pw"}));
    shown.hide_options(&mut given);
    assert_eq!(given, options(json!({"user": "me:pw"})));
}

proptest! {
    /// Whatever surrounds it, a secret under a known name is not there afterwards.
    #[test]
    fn a_named_secret_never_stays(
        before in "[ -~é\n]{0,20}",
        after in "[ -~é\n]{0,20}",
        value in "[A-Za-z0-9]{6,20}7",
        shape in 0..6,
    ) {
        let text = match shape {
            0 => format!("{before} /?token={value}&{after}"),
            1 => format!("{before}{{\"password\": \"{value}\"}}{after}"),
            2 => format!("{before}\nAuthorization: {value}\n{after}"),
            3 => format!("{before} http://me:{value}@host/{after}"),
            4 => format!("{before} 'x-api-key: {value}'{after}"),
            _ => format!("{before} {{\\\"token\\\":\\\"{value}\\\"}}{after}"),
        };
        let hidden = Secrets::default().hide(&text).into_owned();
        // A quote before a name of JSON may leave it outside of its own quotes.
        let is_apart = !before.contains(['"', '\\']) || !matches!(shape, 1 | 5);
        prop_assert!(!is_apart || !hidden.contains(&value), "{text} became {hidden}");
    }

    #[test]
    fn hiding_twice_is_as_hiding_once(
        text in "([a-z /?&=:\"{}@.;<>-]|token|key|\\*\\*\\*|://|Cookie: ){0,30}",
    ) {
        let once = Secrets::default().hide(&text).into_owned();
        let secrets = Secrets::default();
        let twice = secrets.hide(&once);
        prop_assert_eq!(&twice, &once);
    }

    #[test]
    fn a_learnt_value_never_stays(
        before in "[ -~é]{0,9}",
        value in "[!-~]{8,20}",
        after in ".{0,9}",
    ) {
        let mut secrets = Secrets::default();
        secrets.learn(&value);
        let text = format!("{before} {value} {after}");
        let stays = secrets.hide(&text).contains(&value);
        prop_assert!(!stays || MASK.contains(&value), "{}", secrets.hide(&text));
    }
}
