//! A small shop for tests, examples and the demo: a login, a catalogue, carts. Requests in, replies
//! out; it holds no more memory than its bounds say, however many users come.

mod cart;
mod catalogue;
mod signature;

use super::asked::Asked;
use super::response::Reply;
use cart::Carts;
use serde_json::json;
use signature::Signer;

/// No name of a user is longer, in bytes.
const NAME_MAX: usize = 100;

/// The application.
#[derive(Debug)]
pub(super) struct Shop {
    signer: Signer,
    carts: Carts,
    /// How many pages with a hidden field were given out.
    pages: u64,
}

impl Shop {
    /// An empty one, whose tokens are signed by `seed`.
    pub(super) fn new(seed: u64) -> Shop {
        Shop {
            signer: Signer::new(seed),
            carts: Carts::default(),
            pages: 0,
        }
    }

    /// What it answers. HEAD is answered as GET: the body is left out elsewhere.
    pub(super) fn answer(&mut self, asked: &Asked) -> Reply {
        if asked.is_cut {
            return error(413, "the body is larger than 64 KiB");
        }
        let method = match asked.method.as_str() {
            "HEAD" => "GET",
            method => method,
        };
        match (method, asked.path()) {
            ("GET", "/") => self.front_page(),
            ("POST", "/login") => self.login(asked),
            ("GET", "/items") => items(asked),
            ("GET", "/cart") => self.cart(asked),
            ("POST", "/cart") => self.add(asked),
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

    fn login(&self, asked: &Asked) -> Reply {
        let given = |name| asked.value(name).filter(|value| !value.is_empty());
        let (Some(name), Some(_)) = (given("name"), given("password")) else {
            return error(401, "name and password are needed");
        };
        if name.len() > NAME_MAX {
            return error(401, "the name is longer than 100 bytes");
        }
        let session = self.signer.token("session", &name);
        let token = self.signer.token("login", &name);
        json_reply(200, &json!({"token": token, "user": name}))
            .with("x-csrf", &self.signer.sign("csrf", &name))
            .with(
                "set-cookie",
                &format!("session={session}; Path=/; HttpOnly"),
            )
    }

    /// Puts an item into the cart of the user whose token comes with it.
    fn add(&mut self, asked: &Asked) -> Reply {
        let token = asked
            .authorization
            .split_once(' ')
            .and_then(|(kind, token)| {
                let is_bearer = kind.eq_ignore_ascii_case("bearer");
                is_bearer.then_some(token.trim())
            });
        let Some(user) = token.and_then(|token| self.signer.user("login", token)) else {
            return error(401, "the token of a login is needed").with("www-authenticate", "Bearer");
        };
        let Some(id) = asked.value("id").filter(|id| catalogue::find(id).is_some()) else {
            return error(400, "the id of an item is needed");
        };
        let items = self.carts.add(user, id);
        json_reply(201, &json!({"ok": true, "items": items}))
    }

    /// The cart of the user whose session it is.
    fn cart(&self, asked: &Asked) -> Reply {
        let session = asked.cookie("session");
        let Some(user) = session.and_then(|s| self.signer.user("session", s)) else {
            return error(401, "the cookie of a login is needed");
        };
        json_reply(200, &json!({"items": self.carts.of(&user)}))
    }
}

fn items(asked: &Asked) -> Reply {
    let page = asked.parameter("page").unwrap_or_else(|| "1".to_owned());
    match page.parse() {
        Ok(page) if page > 0 => {
            let items: Vec<_> = catalogue::page(page).collect();
            json_reply(200, &json!({"page": page, "items": items}))
        }
        _ => error(400, "page: a number from 1 is needed"),
    }
}

fn item(id: &str) -> Reply {
    match catalogue::find(id) {
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

fn error(status: u16, wrong: &str) -> Reply {
    json_reply(status, &json!({"error": wrong}))
}

fn json_reply(status: u16, document: &serde_json::Value) -> Reply {
    Reply::new(status, "application/json", document.to_string())
}

#[cfg(test)]
mod tests;
