//! The description of a step's request for the program that gives values to it.

use super::{Cut, HttpRequest, Part};
use crate::session::{Ask, Fills, TemplatePiece, Users, Walk};

/// A longer body is not told.
const BODY_MAX: usize = 256 << 10;

/// The questions of one step, but for what each session puts into them.
#[derive(Clone, Debug)]
pub struct Question {
    /// From the name of the step to the begin of the path.
    before: String,
    path: Vec<Cut>,
    headers: Vec<(String, Vec<Cut>)>,
    /// `None`: it is not told.
    body: Option<Vec<Cut>>,
}

impl Question {
    /// The question of the step `step` of sessions of this kind, which sends this request.
    pub fn new(request: &HttpRequest, kind: &str, step: &str) -> Question {
        let headers = (0u16..).zip(&request.headers);
        let headers = headers.map(|(number, (name, _))| {
            let value = request.cut(Part::Header(number));
            (name.clone(), value)
        });
        Question {
            before: format!(
                ", \"kind\": {}, \"step\": {}, \"method\": {}",
                serde_json::json!(kind),
                serde_json::json!(step),
                serde_json::json!(request.method),
            ),
            path: request.cut(Part::Path),
            headers: headers.collect(),
            body: (request.body.len() <= BODY_MAX).then(|| request.cut(Part::Body)),
        }
    }

    /// Writes the question number `id` of a session as a line of JSON. What it puts into its
    /// request is in `fills`, but for what it waits for.
    pub fn put(
        &self,
        id: u64,
        (ask, fills): (&Ask, &Fills),
        (walk, users): (&Walk, &mut Users),
        realtime_ns: u64,
        line: &mut Vec<u8>,
    ) {
        let mut value = |piece: &TemplatePiece| walk.value(piece, users, realtime_ns);
        self.write((id, walk.number()), (ask, fills), &mut value, line);
    }

    /// Writes the question that a program is asked before any session begins: that of this step,
    /// all values in it empty.
    pub fn put_first(&self, ask: &Ask, line: &mut Vec<u8>) {
        let no_fills = Fills::new();
        self.write((0, 0), (ask, &no_fills), &mut |_| Vec::new(), line);
    }

    fn write(
        &self,
        (id, session): (u64, u64),
        (ask, fills): (&Ask, &Fills),
        value: &mut dyn FnMut(&TemplatePiece) -> Vec<u8>,
        line: &mut Vec<u8>,
    ) {
        line.extend_from_slice(format!("{{\"id\": {id}, \"session\": {session}").as_bytes());
        line.extend_from_slice(self.before.as_bytes());
        line.extend_from_slice(b", \"path\": ");
        put_text(&filled(&self.path, fills), line);
        line.extend_from_slice(b", \"headers\": {");
        let mut is_first = true;
        for (name, cuts) in &self.headers {
            let value = filled(cuts, fills);
            // As it is not sent.
            let is_left_out = value.is_empty() && cuts.iter().any(|c| matches!(c, Cut::Hole(_)));
            if !is_left_out {
                put_named(name, &value, &mut is_first, line);
            }
        }
        line.extend_from_slice(b"}, \"body\": ");
        let body = self.body.as_ref().map(|cuts| filled(cuts, fills));
        match body.map(String::from_utf8) {
            Some(Ok(text)) => put_text(text.as_bytes(), line),
            Some(Err(_)) | None => line.extend_from_slice(b"null"),
        }
        line.extend_from_slice(b", \"variables\": {");
        let mut is_first = true;
        for (name, piece) in &ask.tells {
            let value = value(piece);
            put_named(name, &value, &mut is_first, line);
        }
        line.extend_from_slice(b"}}\n");
    }
}

fn filled(cuts: &[Cut], fills: &Fills) -> Vec<u8> {
    let mut bytes = Vec::new();
    cuts.iter().for_each(|cut| cut.put(fills, &mut bytes));
    bytes
}

fn put_named(name: &str, value: &[u8], is_first: &mut bool, line: &mut Vec<u8>) {
    if !std::mem::take(is_first) {
        line.extend_from_slice(b", ");
    }
    put_text(name.as_bytes(), line);
    line.extend_from_slice(b": ");
    put_text(value, line);
}

/// As a JSON string; what is no UTF-8 is replaced.
fn put_text(text: &[u8], line: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(text);
    // Writing a text to memory cannot fail.
    let _ = serde_json::to_writer(line, &text);
}
