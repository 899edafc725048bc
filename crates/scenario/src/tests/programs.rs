//! Programs that steps ask for values: what the file becomes, and a user who waits for them.

use super::super::{EXAMPLE, schema};
use super::parse;
use knee_load::session::{
    Fills, Next, PendingAction, PendingStep, Program, ProgramAnswer, SessionPlan, TemplatePiece,
    Users, Walk,
};
use knee_load::spec::{Cut, HttpRequest, Part, Question};
use knee_load::time::Nanos;
use serde_json::{Value, json};
use std::sync::Arc;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// A buyer who signs each of two orders, the second after a pause.
const SIGNED: &str = r#"
target: http://h
data: {users: users.csv}
sessions:
  buyer:
    data: users
    steps:
      - get: /cart?user=${users.name}
        extract: {cart: {json: /id}}
      - post: /orders?at=${now()}&id=${uuid()}
        name: order
        exec: [./sign.py, --key, "${env(SECRET)}"]
        gives: [signature, nonce]
        json: {cart: "${cart}", n: "${random(1,1000000)}", nonce: "${nonce}"}
        headers:
          X-Signature: "v1 ${signature}"
          X-Mixed: "${uuid()}${base64('${signature}')}"
          X-Once: "${uuid()}"
      - repeat: 2
        steps:
          - think: 20ms
          - put: /orders/${signature}
            exec: ./nonce.sh
            gives: signature
            timeout: 50ms
"#;

#[test]
fn a_program_and_what_it_gives() {
    let plan = parse(SIGNED).unwrap().plan;
    let program = |name: &str, file: &str, arguments: &[&str], at| Program {
        name: name.to_owned(),
        file: file.to_owned(),
        folder: "/shop".to_owned(),
        arguments: arguments.iter().map(ToString::to_string).collect(),
        at,
    };
    assert_eq!(
        plan.programs,
        [
            program("./sign.py", "/shop/sign.py", &["--key", "s3\"cret"], (12, 16)),
            program("./nonce.sh", "/shop/nonce.sh", &[], (23, 19)),
        ]
    );
    assert_eq!(plan.requests[0].ask, None);
    let order = plan.requests[1].ask.as_ref().unwrap();
    let named = |name: &str, number| (name.to_owned(), number);
    assert_eq!(order.gives, [named("signature", 1), named("nonce", 2)]);
    let told: Vec<_> = order.tells.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(told, ["cart", "users.name", "users.password"]);
    // The two of the path, then of the headers in their order, then of the body.
    assert_eq!(order.waits, [2, 3, 8], "{:?}", plan.requests[1].fills);
    let put = plan.requests[2].ask.as_ref().unwrap();
    assert_eq!((put.program, put.gives.len()), (1, 1));
    let told: Vec<_> = put.tells.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(told, ["cart", "nonce", "users.name", "users.password"]);
    // Which cookies are sent depends on the path, which waits.
    let cookies = &plan.requests[2].fills[1].value.0[..];
    assert_eq!((cookies, &put.waits[..]), (&[TemplatePiece::Cookies][..], &[0, 1][..]));
}

#[test]
fn the_same_program_is_started_once() {
    let steps = "[{get: /a, exec: ./sign.py, gives: x}, \
                 {get: '/${x}', exec: [sign.py], gives: [x]}, \
                 {get: /c, exec: [./sign.py, a], gives: y}]";
    let text = format!("target: http://h\nsessions: {{s: {{steps: {steps}}}}}");
    let plan = parse(&text).unwrap().plan;
    let programs = plan.requests.iter().map(|r| r.ask.as_ref().unwrap().program);
    assert_eq!(programs.collect::<Vec<_>>(), [0, 0, 1]);
    assert_eq!(plan.programs.len(), 2);
    // What follows redirections asks nothing.
    let text = "target: http://h\nsessions: {s: {steps: [{get: /a, exec: sign.py, gives: x, \
                redirects: 2, headers: {A: '${x}'}}]}}";
    let plan = parse(text).unwrap().plan;
    assert!(plan.requests[0].ask.is_some() && plan.requests[1].ask.is_none());
}

#[test]
fn the_schema_and_the_example_have_programs() {
    let step = &schema()["$defs"]["step"]["properties"];
    let exec = &step["exec"]["anyOf"];
    assert_eq!(exec[0]["type"], json!("string"));
    assert_eq!(exec[1]["type"], json!("array"));
    assert!(step["gives"].is_object());
    // In a comment: the example runs without a program.
    assert!(EXAMPLE.contains("#     exec: ./sign.py"));
    assert_eq!(parse(EXAMPLE).unwrap().plan.programs, []);
}

/// A user of that file, in virtual time.
struct World {
    users: Users,
    walk: Walk,
    requests: Vec<HttpRequest>,
    fills: Fills,
    due: Nanos,
}

impl World {
    fn new() -> World {
        let scenario = parse(SIGNED).unwrap();
        let plan: Arc<SessionPlan> = Arc::new(scenario.plan);
        let mut world = World {
            users: Users::new(plan, (1, 3), 7),
            walk: Walk::default(),
            requests: scenario.requests,
            fills: Fills::new(),
            due: Nanos::ZERO,
        };
        assert!(world.walk.begin(&mut world.users, false));
        world
    }

    fn ahead(&mut self) -> Next {
        let (pause, next) = self.walk.ahead(&mut self.users, self.due, 0, &mut 1_000);
        self.due += pause;
        next
    }

    fn fill(&mut self, request: u32, is_answered: bool) {
        let cuts = self.requests[request as usize].cut(Part::Path);
        let holes = cuts.iter().filter(|cut| matches!(cut, Cut::Hole(_)));
        let holes = holes.count();
        let path_of =
            |fills: &Fills, out: &mut Vec<u8>| cuts.iter().for_each(|cut| cut.put(fills, out));
        let (path, realtime) = ((holes, path_of), 1_000_000 * self.due.0);
        let (users, fills) = (&mut self.users, &mut self.fills);
        let filled = if is_answered {
            self.walk.fill_waiting(request, users, realtime, fills, path)
        } else {
            self.walk.fill(request, users, realtime, fills, path)
        };
        filled.unwrap();
    }

    /// Asks for the step of this request, and returns what the program receives.
    fn ask(&mut self, request: u32) -> Value {
        let plan = std::rc::Rc::clone(self.users.plan());
        let step = &plan.requests[request as usize];
        let ask = step.ask.as_ref().unwrap();
        self.walk.forget_given(ask);
        self.fill(request, false);
        let question = Question::new(&self.requests[request as usize], "buyer", &step.name);
        let mut line = Vec::new();
        let whose = (&self.walk, &mut self.users);
        question.put(5, (ask, &self.fills), whose, 0, &mut line);
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        serde_json::from_slice(&line).unwrap()
    }

    fn take(&mut self, request: u32, answer: &str) {
        let plan = std::rc::Rc::clone(self.users.plan());
        let ask = plan.requests[request as usize].ask.as_ref().unwrap();
        let answer = ProgramAnswer::read(answer.as_bytes()).unwrap();
        self.walk.take_given(answer.values(ask).unwrap());
        self.fill(request, true);
    }

    /// A part of what is sent.
    fn sent(&self, request: u32, part: Part) -> String {
        let mut bytes = Vec::new();
        let cuts = self.requests[request as usize].cut(part);
        cuts.iter().for_each(|cut| cut.put(&self.fills, &mut bytes));
        String::from_utf8(bytes).unwrap()
    }
}

#[test]
fn what_is_sent_is_what_the_program_was_told() {
    let mut world = World::new();
    assert_eq!(world.ahead(), Next::Request(0));
    assert_eq!(world.ahead(), Next::Request(1));
    let told = world.ask(1);
    assert_eq!(told["id"], 5);
    assert_eq!(told["session"], 2, "of the second of three workers");
    assert_eq!((&told["kind"], &told["step"]), (&json!("buyer"), &json!("order")));
    assert_eq!(told["method"], "POST");
    let variables = json!({"cart": "", "users.name": "bob, jr", "users.password": "b\"2"});
    assert_eq!(told["variables"], variables);
    // What the program gives is not known yet.
    assert_eq!(told["headers"]["X-Signature"], "v1 ");
    assert_eq!(told["headers"].get("X-Mixed"), None, "it would not be sent");
    assert_eq!(told["headers"].get("Cookie"), None);
    let body: Value = serde_json::from_str(told["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["nonce"], "");

    world.take(1, r#"{"set": {"signature": "a\"b", "nonce": 12}}"#);
    assert_eq!(told["path"], world.sent(1, Part::Path));
    assert_eq!(told["headers"]["X-Once"], world.sent(1, Part::Header(2)));
    assert_eq!(world.sent(1, Part::Header(0)), "v1 a\"b");
    assert!(world.sent(1, Part::Header(1)).ends_with("YSJi"));
    let sent: Value = serde_json::from_str(&world.sent(1, Part::Body)).unwrap();
    assert_eq!((&sent["n"], &sent["cart"]), (&body["n"], &body["cart"]));
    assert_eq!(sent["nonce"], "12");
}

#[test]
fn values_of_the_time_before_are_forgotten_and_others_kept() {
    let mut world = World::new();
    world.ahead();
    world.ahead();
    world.ask(1);
    world.take(1, r#"{"set": {"signature": "first", "nonce": "n"}}"#);
    for round in 0..2 {
        assert_eq!(world.ahead(), Next::Request(2));
        let told = world.ask(2);
        assert_eq!(told["path"], "/orders/", "round {round}");
        assert_eq!(told["variables"]["nonce"], "n");
        assert_eq!(told["variables"].get("signature"), None);
        world.take(2, r#"{"set": {"signature": "x y"}}"#);
        assert_eq!(world.sent(2, Part::Path), "/orders/x%20y");
    }
    assert_eq!(world.ahead(), Next::Over);
}

#[test]
fn a_user_waits_for_a_value_and_only_the_generator_is_late() {
    let mut world = World::new();
    world.ahead();
    world.ahead();
    // The order was answered at 100 ms: the pause begins, and the program is asked.
    world.due = MS(100);
    let Next::Request(request) = world.ahead() else {
        panic!("it puts next");
    };
    assert_eq!(world.due, MS(120), "after the pause");
    world.ask(request);
    let limit = world.users.plan().requests[2].timeout.unwrap();
    let mut early = PendingStep::new(5, request, (world.due, limit), MS(100));
    let mut late = early;
    // Answered within the pause, it is sent when it was intended …
    assert_eq!(early.answered(true), PendingAction::Still);
    assert_eq!(early.on_time(), PendingAction::Nothing);
    // … and after it at once, by so much too late.
    assert_eq!(late.on_time(), PendingAction::Still);
    assert_eq!(late.took(MS(150)), (MS(50), MS(30)));
    assert_eq!(late.answered(true), PendingAction::Nothing);
    assert_eq!(late.until, MS(170), "the step's own limit, from its intended time");
}
