use super::*;
use serde_json::Value;

fn asked(method: &str, target: &str) -> AppRequest {
    AppRequest { method: method.to_owned(), target: target.to_owned(), ..AppRequest::default() }
}

fn json(reply: &Reply) -> Value {
    serde_json::from_str(&reply.body).expect(&reply.body)
}

fn login(shop: &mut Shop, body: &str) -> Reply {
    let mut request = asked("POST", "/login");
    request.content_type = "application/json".to_owned();
    request.add_body(body.as_bytes());
    shop.answer(&request)
}

/// A token and a session cookie of this user.
fn credentials(shop: &mut Shop, user: &str) -> (String, String) {
    let reply = login(shop, &json!({"name": user, "password": "x"}).to_string());
    assert_eq!((reply.status, json(&reply)["user"].as_str()), (200, Some(user)));
    let token = json(&reply)["token"].as_str().expect("a token").to_owned();
    let cookie = reply.field("set-cookie").expect("a cookie");
    let pair = cookie.split(';').next().unwrap_or_default();
    (token, pair.to_owned())
}

fn add(shop: &mut Shop, authorization: &str, content_type: &str, body: &str) -> Reply {
    let mut request = asked("POST", "/cart");
    request.authorization = authorization.to_owned();
    request.content_type = content_type.to_owned();
    request.add_body(body.as_bytes());
    shop.answer(&request)
}

#[test]
fn a_login_needs_a_name_and_a_password() {
    let mut shop = Shop::new(1);
    let fine = login(&mut shop, r#"{"name":"ann","password":"p"}"#);
    assert_eq!((fine.status, fine.content_type), (200, "application/json"));
    assert_eq!(fine.field("x-csrf").map(str::len), Some(16));
    assert!(fine.field("set-cookie").is_some_and(|c| c.starts_with("session=")));
    let long = "n".repeat(NAME_MAX + 1);
    for bad in [
        "",
        "{}",
        "[",
        r#"{"name":"ann"}"#,
        r#"{"name":"","password":"p"}"#,
        r#"{"name":"ann","password":""}"#,
        r#"{"name":1,"password":"p"}"#,
        &format!(r#"{{"name":"{long}","password":"p"}}"#),
    ] {
        let reply = login(&mut shop, bad);
        assert_eq!(reply.status, 401, "{bad}");
        assert!(json(&reply)["error"].is_string(), "{bad}");
        assert_eq!(reply.field("set-cookie"), None);
    }
}

#[test]
fn the_catalogue_has_pages_of_ten() {
    let mut shop = Shop::new(1);
    let first = shop.answer(&asked("GET", "/items"));
    assert_eq!(first.body, shop.answer(&asked("GET", "/items?page=1")).body);
    let page = json(&shop.answer(&asked("GET", "/items?page=7")));
    assert_eq!(
        (page["page"].as_u64(), page["items"].as_array().map(Vec::len)),
        (Some(7), Some(10))
    );
    let id = page["items"][3]["id"].as_str().expect("an id");
    let item = json(&shop.answer(&asked("GET", &format!("/items/{id}"))));
    assert_eq!(item, page["items"][3]);
    assert!(item["price"].as_f64().is_some_and(|p| p > 0.0) && item["name"].is_string());
    let beyond = json(&shop.answer(&asked("GET", "/items?page=101")));
    assert_eq!(beyond["items"], json!([]));
    for page in ["0", "-1", "x", "", "99999999999"] {
        let reply = shop.answer(&asked("GET", &format!("/items?page={page}")));
        assert_eq!(reply.status, 400, "{page}");
    }
    for id in ["", "i0", "i1001", "i01", "i+1", "x", "1"] {
        assert_eq!(shop.answer(&asked("GET", &format!("/items/{id}"))).status, 404, "{id}");
    }
}

#[test]
fn a_cart_takes_items_of_whoever_has_logged_in() {
    let mut shop = Shop::new(1);
    let (token, session) = credentials(&mut shop, "ann");
    let bearer = format!("Bearer {token}");
    let one = add(&mut shop, &bearer, "application/x-www-form-urlencoded", "id=i3");
    assert_eq!((one.status, json(&one)), (201, json!({"ok": true, "items": 1})));
    let two = add(&mut shop, &bearer, "application/json", r#"{"id":"i5"}"#);
    assert_eq!(json(&two)["items"], 2);
    let mut request = asked("GET", "/cart");
    request.cookie = format!("other=1; {session}");
    assert_eq!(json(&shop.answer(&request)), json!({"items": ["i3", "i5"]}));
    for body in ["", "id=", "id=i9999", "x=i1"] {
        assert_eq!(add(&mut shop, &bearer, "", body).status, 400, "{body}");
    }
    let (_, other) = credentials(&mut shop, "bob");
    request.cookie = other;
    assert_eq!(json(&shop.answer(&request)), json!({"items": []}));
}

#[test]
fn a_token_that_was_never_given_opens_nothing() {
    let mut shop = Shop::new(1);
    let (token, session) = credentials(&mut shop, "ann");
    let session = session.trim_start_matches("session=").to_owned();
    let (foreign, _) = credentials(&mut Shop::new(2), "ann");
    let (name, signature) = token.split_once('.').expect("a signature");
    for authorization in [
        String::new(),
        token.clone(),
        format!("Basic {token}"),
        "Bearer ".to_owned(),
        format!("Bearer {name}"),
        format!("Bearer {name}00.{signature}"),
        format!("Bearer {name}0.{signature}"),
        format!("Bearer ff.{signature}"),
        format!("Bearer {session}"),
        format!("Bearer {foreign}"),
    ] {
        let reply = add(&mut shop, &authorization, "", "id=i1");
        assert_eq!(reply.status, 401, "{authorization}");
    }
    let mut request = asked("GET", "/cart");
    assert_eq!(shop.answer(&request).status, 401);
    request.cookie = format!("session={token}");
    assert_eq!(shop.answer(&request).status, 401, "a token is no session");
}

#[test]
fn other_pages_and_methods() {
    let mut shop = Shop::new(1);
    let old = shop.answer(&asked("GET", "/old"));
    assert_eq!((old.status, old.field("location")), (302, Some("/items")));
    let hidden = |shop: &mut Shop| {
        let page = shop.answer(&asked("GET", "/")).body;
        let (_, rest) = page.split_once("name=\"csrf\" value=\"").expect("a hidden field");
        rest.split('"').next().unwrap_or_default().to_owned()
    };
    let (first, second) = (hidden(&mut shop), hidden(&mut shop));
    assert!(first.len() == 16 && first != second);
    for (method, path, status) in [
        ("HEAD", "/items", 200),
        ("GET", "/nothing", 404),
        ("GET", "", 404),
        ("GET", "/login", 405),
        ("DELETE", "/cart", 405),
        ("POST", "/items/i1", 405),
        ("POST", "/", 405),
    ] {
        let reply = shop.answer(&asked(method, path));
        assert_eq!(reply.status, status, "{method} {path}");
        assert_eq!(reply.field("allow").is_some(), status == 405);
    }
    let mut large = asked("POST", "/login");
    large.is_cut = true;
    assert_eq!(shop.answer(&large).status, 413);
}

#[test]
fn the_oldest_go_first() {
    let mut carts = Carts::default();
    for n in 0..=CARTS_MAX {
        assert_eq!(carts.add(format!("u{n}"), "i1".to_owned()), 1);
    }
    assert_eq!((carts.by_user.len(), carts.begun.len()), (CARTS_MAX, CARTS_MAX));
    assert!(carts.of("u0").is_empty() && carts.of("u1") == ["i1"]);
    let counts: Vec<usize> =
        (0..=ITEMS_MAX).map(|n| carts.add("x".to_owned(), format!("i{n}"))).collect();
    assert_eq!((counts[0], counts[ITEMS_MAX]), (1, ITEMS_MAX));
    assert_eq!(carts.of("x")[0], "i1");
}
