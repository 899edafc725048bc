//! One request as a session of one step, for what is expected of it on the command line.

use super::request::{CompiledRequest, redirected};
use knee_load::session::{
    Expectation, Instruction, Match, Redirected, RequestStep, SessionKind, SessionPlan, Source,
    Template, TemplatePiece,
};
use knee_load::spec::HttpRequest;

/// What is expected of the responses to a single request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// The ranges of statuses that will do; none given: any below 400.
    pub status: Vec<(u16, u16)>,
    /// A text that the body has to contain.
    pub body: Option<String>,
    /// The most redirections that are followed.
    pub redirects: u32,
}

impl Expected {
    /// Whether nothing is.
    pub fn is_nothing(&self) -> bool {
        *self == Expected::default()
    }

    /// The request with what follows its redirections, and the session that sends it.
    pub fn of(&self, request: HttpRequest) -> (Vec<HttpRequest>, SessionPlan) {
        let status = (!self.status.is_empty()).then(|| Expectation::Status(self.status.clone()));
        let body = self.body.as_ref().map(|text| Expectation::Value {
            source: Source::Body,
            is: Match::Contains(Template(vec![TemplatePiece::Text(text.clone())])),
        });
        let mut step = RequestStep {
            name: format!("{} {}", request.method, request.path),
            expect: status.into_iter().chain(body).collect(),
            redirects: self.redirects,
            ..RequestStep::default()
        };
        let asked = CompiledRequest { request, fills: Vec::new(), server: 0, leads: false };
        let mut requests = vec![asked.request.clone()];
        let mut steps = Vec::new();
        if self.redirects > 0 {
            let get = 1 + u32::from(asked.changes_to_get());
            let is_post = asked.request.method == "POST";
            step.redirected = Some(Redirected { same: 1, get, is_post });
            for as_get in &[false, true][..get as usize] {
                let next = redirected(&asked, *as_get, (0, &asked.request.host));
                steps.push(RequestStep { fills: next.fills, ..step.redirected() });
                requests.push(next.request);
            }
        }
        steps.insert(0, step);
        let kind = SessionKind {
            name: "request".to_owned(),
            weight: 1,
            program: vec![Instruction::Request(0)],
            ..SessionKind::default()
        };
        let plan = SessionPlan { kinds: vec![kind], requests: steps, ..SessionPlan::default() };
        (requests, plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_status;
    use knee_load::spec::Url;

    #[test]
    fn redirections_of_a_request_have_its_body_or_none() {
        let url = Url::parse("http://h/a?b").unwrap();
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = vec![header("Content-Type", "x/y"), header("X-A", "1")];
        let request = HttpRequest::new("POST", &url, headers, b"body".to_vec(), 1).unwrap();
        let expected =
            Expected { status: vec![(200, 299)], body: Some("ok".to_owned()), redirects: 3 };
        let (requests, plan) = expected.of(request.clone());
        assert_eq!(requests.len(), 3);
        assert_eq!(requests[0], request);
        assert_eq!((requests[1].method.as_str(), &*requests[1].body), ("POST", &b"body"[..]));
        assert_eq!(requests[1].headers, request.headers);
        assert_eq!((requests[2].method.as_str(), requests[2].body.len()), ("GET", 0));
        assert_eq!(requests[2].headers, [header("X-A", "1")]);
        assert_eq!(plan.requests[0].expect.len(), 2);
        let redirected = Redirected { same: 1, get: 2, is_post: true };
        assert_eq!(plan.requests[0].redirected, Some(redirected));
        assert_eq!(plan.requests[1].redirects, 0);
        let head = HttpRequest::new("HEAD", &url, vec![], vec![], 1).unwrap();
        assert_eq!(expected.of(head).0[1].method, "HEAD");
        let plain = Expected { body: Some(String::new()), ..Expected::default() };
        assert_eq!(plain.of(request).0.len(), 1);
        assert!(!plain.is_nothing() && Expected::default().is_nothing());
    }

    #[test]
    fn statuses() {
        assert_eq!(parse_status("404"), Ok((404, 404)));
        assert_eq!(parse_status("2xx"), Ok((200, 299)));
        assert_eq!(parse_status("200-204"), Ok((200, 204)));
        assert!(parse_status("20").is_err());
    }
}
