//! A small shop for tests, examples and the demo: a login, a catalogue, carts. Its memory is
//! bounded, whatever the number of users.

use super::app_request::AppRequest;
use super::response::Reply;
use serde::Serialize;
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Longest name of a user, in bytes.
const NAME_MAX: usize = 100;

/// A small shop.
#[derive(Debug)]
pub(super) struct Shop {
    signer: Signer,
    carts: Carts,
    /// Number of pages with a hidden field so far.
    pages: u64,
}

impl Shop {
    /// An empty one, whose tokens are signed by `seed`.
    pub(super) fn new(seed: u64) -> Shop {
        Shop { signer: Signer::new(seed), carts: Carts::default(), pages: 0 }
    }

    /// Answers a request. HEAD is answered as GET: the body is left out elsewhere.
    pub(super) fn answer(&mut self, request: &AppRequest) -> Reply {
        if request.is_cut {
            return error(413, "the body is larger than 64 KiB");
        }
        let method = match request.method.as_str() {
            "HEAD" => "GET",
            method => method,
        };
        match (method, request.path()) {
            ("GET", "/") => self.front_page(),
            ("POST", "/login") => self.login(request),
            ("GET", "/items") => items(request),
            ("GET", "/cart") => self.cart(request),
            ("POST", "/cart") => self.add(request),
            ("GET", "/old") => {
                Reply::new(302, "text/plain", String::new()).with("location", "/items")
            }
            ("GET", path) if path.starts_with("/items/") => item(&path["/items/".len()..]),
            (_, "/login") => wrong_method("POST"),
            (_, "/cart") => wrong_method("GET, POST"),
            (_, path) if is_page(path) => wrong_method("GET"),
            _ => error(404, "no such page"),
        }
    }

    /// A page whose hidden field differs each time.
    fn front_page(&mut self) -> Reply {
        self.pages += 1;
        let csrf = self.signer.sign("page", &self.pages.to_string());
        let page = format!(
            "<!DOCTYPE html>\n<html><head><title>Shop</title></head><body>\n\
             <form action=\"/login\" method=\"post\">\n\
             <input type=\"hidden\" name=\"csrf\" value=\"{csrf}\">\n\
             <input name=\"name\"><input name=\"password\" type=\"password\">\n\
             </form>\n<a href=\"/items\">Items</a>\n</body></html>\n"
        );
        Reply::new(200, "text/html; charset=utf-8", page)
    }

    fn login(&self, request: &AppRequest) -> Reply {
        let value = |name| request.value(name).filter(|value| !value.is_empty());
        let (Some(name), Some(_)) = (value("name"), value("password")) else {
            return error(401, "name and password are needed");
        };
        if name.len() > NAME_MAX {
            return error(401, "the name is longer than 100 bytes");
        }
        let session = self.signer.token("session", &name);
        let token = self.signer.token("login", &name);
        json_reply(200, &json!({"token": token, "user": name}))
            .with("x-csrf", &self.signer.sign("csrf", &name))
            .with("set-cookie", &format!("session={session}; Path=/; HttpOnly"))
    }

    /// Puts an item into the cart of the user whose token comes with it.
    fn add(&mut self, request: &AppRequest) -> Reply {
        let token = request
            .authorization
            .split_once(' ')
            .and_then(|(kind, token)| kind.eq_ignore_ascii_case("bearer").then_some(token.trim()));
        let Some(user) = token.and_then(|token| self.signer.user("login", token)) else {
            return error(401, "the token of a login is needed").with("www-authenticate", "Bearer");
        };
        let Some(id) = request.value("id").filter(|id| find_item(id).is_some()) else {
            return error(400, "the id of an item is needed");
        };
        let items = self.carts.add(user, id);
        json_reply(201, &json!({"ok": true, "items": items}))
    }

    /// The cart of the user whose session it is.
    fn cart(&self, request: &AppRequest) -> Reply {
        let session = request.cookie("session");
        let Some(user) = session.and_then(|s| self.signer.user("session", s)) else {
            return error(401, "the cookie of a login is needed");
        };
        json_reply(200, &json!({"items": self.carts.of(&user)}))
    }
}

fn items(request: &AppRequest) -> Reply {
    let page = request.parameter("page").unwrap_or_else(|| "1".to_owned());
    match page.parse() {
        Ok(page) if page > 0 => {
            let items: Vec<_> = page_items(page).collect();
            json_reply(200, &json!({"page": page, "items": items}))
        }
        _ => error(400, "page: a number from 1 is needed"),
    }
}

fn item(id: &str) -> Reply {
    match find_item(id) {
        Some(item) => json_reply(200, &json!(item)),
        None => error(404, "no such item"),
    }
}

fn is_page(path: &str) -> bool {
    matches!(path, "/" | "/items" | "/old") || path.starts_with("/items/")
}

fn wrong_method(allowed: &'static str) -> Reply {
    error(405, "this page has another method").with("allow", allowed)
}

fn error(status: u16, message: &str) -> Reply {
    json_reply(status, &json!({"error": message}))
}

fn json_reply(status: u16, document: &serde_json::Value) -> Reply {
    Reply::new(status, "application/json", document.to_string())
}

/// Carts kept. Beyond, the oldest one is dropped.
const CARTS_MAX: usize = 10_000;
/// Items kept of each cart. Beyond, the oldest one is dropped.
const ITEMS_MAX: usize = 100;

/// Carts of all users.
#[derive(Debug, Default)]
pub(super) struct Carts {
    by_user: HashMap<String, VecDeque<String>>,
    /// Their users, in the order in which the carts were begun.
    begun: VecDeque<String>,
}

impl Carts {
    /// Puts an item into a cart, and returns the number of items in it.
    pub(super) fn add(&mut self, user: String, id: String) -> usize {
        if !self.by_user.contains_key(&user) {
            if self.begun.len() >= CARTS_MAX
                && let Some(first) = self.begun.pop_front()
            {
                self.by_user.remove(&first);
            }
            self.begun.push_back(user.clone());
        }
        let cart = self.by_user.entry(user).or_default();
        if cart.len() >= ITEMS_MAX {
            cart.pop_front();
        }
        cart.push_back(id);
        cart.len()
    }

    /// The ids in a cart, the first first.
    pub(super) fn of(&self, user: &str) -> Vec<&str> {
        self.by_user.get(user).into_iter().flatten().map(String::as_str).collect()
    }
}

/// Number of items.
const ITEMS: u32 = 1000;
/// Items on a page.
const PAGE: u32 = 10;

/// An item of the catalogue.
#[derive(Debug, PartialEq, Serialize)]
struct ShopItem {
    /// `i1` to `i1000`.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) price: f64,
}

/// The item with this id.
fn find_item(id: &str) -> Option<ShopItem> {
    let number = id.strip_prefix('i')?.parse().ok()?;
    // One id each: neither `i01` nor `i+1` is another.
    let item = (1..=ITEMS).contains(&number).then(|| item_of(number))?;
    (item.id == id).then_some(item)
}

/// The items of a page, from 1; none beyond the last page.
fn page_items(page: u32) -> impl Iterator<Item = ShopItem> {
    let first = page.saturating_sub(1).saturating_mul(PAGE).saturating_add(1);
    (first..first.saturating_add(PAGE)).take_while(|&number| number <= ITEMS).map(item_of)
}

fn item_of(number: u32) -> ShopItem {
    const KINDS: [&str; 7] = ["cup", "lamp", "chair", "clock", "book", "scarf", "kettle"];
    const LOOKS: [&str; 5] = ["red", "round", "quiet", "small", "old"];
    let (kind, look) = (number as usize % KINDS.len(), number as usize % LOOKS.len());
    ShopItem {
        id: format!("i{number}"),
        name: format!("{} {}", LOOKS[look], KINDS[kind]),
        price: f64::from(100 + number * 37 % 9900) / 100.0,
    }
}

/// Signs names. It tells a token that was given from an invented one, and is no protection against
/// attacks.
#[derive(Debug)]
struct Signer {
    seed: u64,
}

impl Signer {
    /// A signer of this seed.
    pub(super) fn new(seed: u64) -> Signer {
        Signer { seed }
    }

    /// 16 hexadecimal digits for this text as used for this purpose.
    pub(super) fn sign(&self, purpose: &str, text: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (self.seed, purpose, text).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// A token of this user: the name in hexadecimal digits, and its signature.
    pub(super) fn token(&self, purpose: &str, user: &str) -> String {
        let name: String = user.bytes().map(|b| format!("{b:02x}")).collect();
        format!("{name}.{}", self.sign(purpose, user))
    }

    /// Whose token this is; `None` if it was never given for this purpose.
    pub(super) fn user(&self, purpose: &str, token: &str) -> Option<String> {
        let (name, signature) = token.split_once('.')?;
        let digits = name.as_bytes().chunks(2);
        let bytes: Option<Vec<u8>> = digits
            .map(|pair| {
                let text = std::str::from_utf8(pair).ok().filter(|t| t.len() == 2)?;
                u8::from_str_radix(text, 16).ok()
            })
            .collect();
        let user = String::from_utf8(bytes?).ok()?;
        (self.sign(purpose, &user) == signature).then_some(user)
    }
}

#[cfg(test)]
mod tests;
