use super::*;
use crate::law::Law;
use crate::session::{
    Condition, DataSet, Deal, Escape, Extraction, Fill, Fills, Function, Match, Origin, Passes,
    Redirected, Relation, Repetition, RequestStep, SessionKind, TemplatePiece, TimeFormat,
};
use std::sync::Arc;

fn text(text: &str) -> Template {
    Template(vec![TemplatePiece::Text(text.to_owned())])
}

fn variable(number: u16) -> Template {
    Template(vec![TemplatePiece::Variable(number)])
}

fn step(fills: Vec<Template>) -> RequestStep {
    let fill = |value| Fill { value, escape: Escape::None };
    RequestStep { fills: fills.into_iter().map(fill).collect(), ..RequestStep::default() }
}

/// What follows the redirections of a GET.
fn get(number: u32) -> Redirected {
    Redirected { same: number, get: number, is_post: false }
}

fn times(times: Template) -> Repetition {
    Repetition { passes: Passes::Times(times), at_most: 0, variable: None }
}

fn plan(program: Vec<Instruction>, requests: Vec<RequestStep>) -> SessionPlan {
    SessionPlan {
        kinds: vec![SessionKind {
            name: "buyer".to_owned(),
            weight: 1,
            data: vec![0],
            program,
            variables: vec!["a".to_owned(), "b".to_owned()],
            repetitions: Vec::new(),
            new_connection: false,
        }],
        requests,
        data: vec![DataSet {
            name: "users".to_owned(),
            columns: vec!["name".to_owned()],
            rows: vec![vec!["ada".to_owned()], vec!["bob".to_owned()]],
            deal: Deal::Unique,
        }],
        ..SessionPlan::default()
    }
}

/// A user, and all that it shares.
struct World {
    users: Users,
    readings: ResponseReaders,
    walk: Walk,
}

/// The servers of the target.
fn servers() -> [Origin; 2] {
    [Origin::new(false, "h:81"), Origin::new(true, "login.test")]
}

impl World {
    fn new(plan: SessionPlan) -> World {
        let plan = Arc::new(plan);
        let mut world = World {
            users: Users::new(Arc::clone(&plan), (0, 1), 1).of_origins(servers()),
            readings: ResponseReaders::new(&plan, 1),
            walk: Walk::default(),
        };
        assert!(world.walk.begin(&mut world.users, false));
        world
    }

    fn next(&mut self) -> Next {
        self.next_at(0)
    }

    fn next_at(&mut self, due: u64) -> Next {
        self.walk.next(&mut self.users, Nanos(due), 0, &mut { STEPS_AT_ONCE_MAX })
    }

    fn ahead(&mut self, due: u64, realtime_ns: u64) -> (Nanos, Next) {
        let mut steps_left = STEPS_AT_ONCE_MAX;
        self.walk.ahead(&mut self.users, Nanos(due), realtime_ns, &mut steps_left)
    }

    fn fills(&mut self, request: u32) -> Vec<String> {
        let mut fills = Fills::default();
        let path_of = |fills: &Fills, path: &mut Vec<u8>| path.extend_from_slice(fills.get(0));
        let path = (1, path_of);
        let filled = self.walk.fill(request, &mut self.users, 0, &mut fills, path);
        filled.unwrap();
        let text = |at| String::from_utf8(fills.get(at).to_vec()).unwrap();
        (0..fills.count()).map(text).collect()
    }

    fn answer(
        &mut self,
        request: u32,
        status: u16,
        fields: &[(&str, &str)],
        body: &str,
    ) -> AfterResponse {
        let reads_as = self.walk.reads_as(request, self.users.plan());
        self.readings.begin(0, 0, reads_as as usize);
        for (name, value) in fields {
            self.readings.field(0, name.as_bytes(), value.as_bytes());
        }
        self.readings.body(0, body.as_bytes());
        let answered = answered(status);
        self.walk.answered(request, answered, &mut self.readings, &mut self.users)
    }

    fn unexpected(&mut self, number: u16, request: u32, status: u16) -> Unexpected {
        let (readings, users) = (&mut self.readings, &mut self.users);
        self.walk.describe_unexpected(number, request, answered(status), readings, users)
    }
}

fn answered(status: u16) -> WholeResponse {
    let response = Nanos::from_millis(20);
    WholeResponse { session: 0, status, is_success: status < 400, response, realtime_ns: 0 }
}

#[test]
fn a_program_repeats_pauses_and_asks() {
    let is_ada = Condition::Compared {
        left: Template(vec![TemplatePiece::Column { data: 0, column: 0 }]),
        relation: Relation::Equal,
        right: text("ada"),
    };
    let program = vec![
        Instruction::Begin(0),
        Instruction::Pass { repetition: 0, end: 8 },
        Instruction::Request(0),
        Instruction::Begin(1),
        Instruction::Pass { repetition: 1, end: 7 },
        Instruction::Request(1),
        Instruction::Jump(4),
        Instruction::Jump(1),
        Instruction::Unless { condition: is_ada, to: 10 },
        Instruction::Request(2),
        Instruction::Think(Law::Fixed(Nanos(5))),
    ];
    let mut plan = plan(program, vec![step(vec![]), step(vec![]), step(vec![])]);
    plan.kinds[0].repetitions = vec![times(text("2")), times(text("2"))];
    let mut world = World::new(plan);
    let walked = |world: &mut World| {
        let mut all = Vec::new();
        loop {
            match world.next() {
                Next::Over => return all,
                next => all.push(next),
            }
        }
    };
    let request = Next::Request;
    let repeated = [request(0), request(1), request(1)].repeat(2);
    let mut ada = repeated.clone();
    ada.extend([request(2), Next::Think(Nanos(5))]);
    assert_eq!(walked(&mut world), ada);
    assert!(world.walk.begin(&mut world.users, false), "bob");
    let mut bob = repeated;
    bob.push(Next::Think(Nanos(5)));
    assert_eq!(walked(&mut world), bob);
    assert!(!world.walk.begin(&mut world.users, false), "no third");
    assert_eq!(world.users.exhausted().map(|set| &*set.name), Some("users"));
}

#[test]
fn an_endless_program_lets_others_go_on() {
    let program = vec![
        Instruction::Begin(0),
        Instruction::Pass { repetition: 0, end: 3 },
        Instruction::Jump(1),
    ];
    let mut plan = plan(program, Vec::new());
    plan.kinds[0].repetitions = vec![times(text("1000000000"))];
    let mut world = World::new(plan);
    assert_eq!(world.next(), Next::Yield);
    let mut plan = SessionPlan::clone(world.users.plan());
    plan.kinds[0].program.insert(2, Instruction::Think(Law::Fixed(Nanos::ZERO)));
    plan.kinds[0].program[1] = Instruction::Pass { repetition: 0, end: 4 };
    let mut pausing = World::new(plan);
    assert_eq!(pausing.ahead(0, 0), (Nanos::ZERO, Next::Yield), "pauses of no time are steps too");
}

/// The values of the variable 0 at each pass, and what came after the last.
fn passes(passes: Passes, at_most: u32, set: Option<&str>) -> (Vec<String>, Next) {
    let sets = set.map(|value| Instruction::Set { variable: 1, value: text(value) });
    let mut program = vec![
        Instruction::Begin(0),
        Instruction::Pass { repetition: 0, end: 0 },
        Instruction::Request(0),
    ];
    program.extend(sets);
    program.push(Instruction::Jump(1));
    program[1] = Instruction::Pass { repetition: 0, end: program.len() as u32 };
    let mut plan = plan(program, vec![step(vec![])]);
    plan.kinds[0].repetitions = vec![Repetition { passes, at_most, variable: Some(0) }];
    let mut world = World::new(plan);
    let mut values = Vec::new();
    loop {
        match world.next() {
            Next::Request(0) => {
                let value = world.walk.learnt.variable(0).to_vec();
                values.push(String::from_utf8(value).unwrap());
            }
            next => return (values, next),
        }
    }
}

#[test]
fn steps_are_repeated_by_values_lists_and_conditions() {
    let is = |relation, to| Condition::Compared { left: variable(1), relation, right: text(to) };
    let list =
        Passes::List(vec![text("a"), Template(vec![TemplatePiece::Column { data: 0, column: 0 }])]);
    let elements = |json| Passes::Elements(text(json));
    for (given, at_most, set, want) in [
        (Passes::Times(text("3")), 0, None, &["0", "1", "2"][..]),
        (Passes::Times(text(" 2.0 ")), 0, None, &["0", "1"]),
        (Passes::Times(text("0")), 0, None, &[]),
        (list, 0, None, &["a", "ada"]),
        (
            elements(r#"["a b", 1.5, {"c": [true]}, null]"#),
            0,
            None,
            &["a b", "1.5", "{\"c\":[true]}", "null"],
        ),
        (elements("[]"), 0, None, &[]),
        (Passes::While(is(Relation::Equal, "")), 9, Some("x"), &["0"]),
        (Passes::While(is(Relation::Equal, "x")), 9, Some("x"), &[]),
        (Passes::While(is(Relation::Equal, "")), 2, None, &["0", "1"]),
        (Passes::Until(is(Relation::Equal, "x")), 9, Some("x"), &["0"]),
        (Passes::Until(is(Relation::Equal, "x")), 3, None, &["0", "1", "2"]),
    ] {
        let shown = format!("{given:?}");
        let got = passes(given, at_most, set);
        assert_eq!(got, (want.iter().map(|s| (*s).to_owned()).collect(), Next::Over), "{shown}");
    }
    for (given, reason) in [
        (Passes::Times(text("many")), UnfitReason::NoCount),
        (Passes::Times(text("1.5")), UnfitReason::NoCount),
        (Passes::Times(text("-1")), UnfitReason::NoCount),
        (Passes::Times(text("1e10")), UnfitReason::NoCount),
        (elements(""), UnfitReason::NoArray),
        (elements("{}"), UnfitReason::NoArray),
    ] {
        assert_eq!(passes(given, 0, None), (Vec::new(), Next::Unfit(0, reason)));
    }
}

#[test]
fn one_of_several_ways_is_chosen_by_weight() {
    let program = vec![
        Instruction::Choose(vec![(3, 1), (4, 3)]),
        Instruction::Request(0),
        Instruction::Jump(4),
        Instruction::Request(1),
    ];
    let mut plan = plan(program, vec![step(vec![]), step(vec![])]);
    plan.kinds[0].data.clear();
    let mut world = World::new(plan);
    let mut counts = [0, 0];
    for _ in 0..4_000 {
        match world.next() {
            Next::Request(request) => counts[request as usize] += 1,
            next => panic!("{next:?}"),
        }
        assert_eq!(world.next(), Next::Over);
        assert!(world.walk.begin(&mut world.users, false));
    }
    assert!((2_900..3_100).contains(&counts[0]), "{counts:?}");
}

#[test]
fn a_group_takes_from_its_first_step_to_its_end() {
    let pause = Instruction::Think(Law::Fixed(Nanos(5)));
    let program = vec![
        pause.clone(),
        Instruction::Enter(1),
        Instruction::Request(0),
        Instruction::Enter(0),
        pause,
        Instruction::Leave(0),
        Instruction::Leave(1),
    ];
    let mut world = World::new(plan(program.clone(), vec![step(vec![])]));
    assert_eq!(world.next_at(100), Next::Think(Nanos(5)));
    assert_eq!(world.next_at(105), Next::Request(0));
    assert_eq!(world.next_at(125), Next::Think(Nanos(5)));
    assert_eq!(world.walk.take_left(), None);
    assert_eq!(world.next_at(130), Next::Over);
    let left = std::iter::from_fn(|| world.walk.take_left());
    assert_eq!(
        left.collect::<Vec<_>>(),
        [(1, Nanos(105), Nanos(130)), (0, Nanos(125), Nanos(130))]
    );

    let mut world = World::new(plan(program, vec![step(vec![])]));
    world.ahead(100, 0);
    world.ahead(125, 0);
    let left = std::iter::from_fn(|| world.walk.take_left());
    assert_eq!(
        left.collect::<Vec<_>>(),
        [(1, Nanos(105), Nanos(130)), (0, Nanos(125), Nanos(130))]
    );
}

#[test]
fn the_step_after_a_pause_is_settled_before_it() {
    let now = TemplatePiece::Call(Box::new(Function::Now(TimeFormat::UnixMs)));
    let condition = Condition::Compared {
        left: Template(vec![now]),
        relation: Relation::Equal,
        right: text("10"),
    };
    let pause = |ms| Instruction::Think(Law::Fixed(Nanos::from_millis(ms)));
    let program = vec![
        pause(3),
        pause(4),
        Instruction::Unless { condition, to: 4 },
        Instruction::Request(0),
        Instruction::Request(1),
    ];
    for (from_ms, request) in [(3, 0), (2, 1), (10, 1)] {
        let mut world = World::new(plan(program.clone(), vec![step(vec![]), step(vec![])]));
        let realtime_ns = Nanos::from_millis(from_ms).0;
        let next = world.ahead(1, realtime_ns);
        let want = (Nanos::from_millis(7), Next::Request(request));
        assert_eq!(next, want, "from {from_ms} ms on");
    }
}

#[test]
fn what_is_extracted_and_set_is_in_the_next_request() {
    let mut login = step(vec![Template(vec![TemplatePiece::Column { data: 0, column: 0 }])]);
    login.extract = vec![
        Extraction {
            name: "token".to_owned(),
            variable: 0,
            source: Source::Json("/token".to_owned()),
            otherwise: None,
        },
        Extraction {
            name: "page".to_owned(),
            variable: 1,
            source: Source::Json("/page".to_owned()),
            otherwise: Some("7".to_owned()),
        },
    ];
    let cookies = Template(vec![TemplatePiece::Cookies]);
    let items = step(vec![text("/items/1"), variable(0), variable(1), cookies]);
    let program = vec![Instruction::Request(0), Instruction::Request(1)];
    let mut world = World::new(plan(program, vec![login, items]));
    assert_eq!(world.next(), Next::Request(0));
    assert_eq!(world.fills(0), ["ada"]);
    let set = [("Set-Cookie", "id=1; Path=/items"), ("Set-Cookie", "x=2; Path=/cart")];
    assert_eq!(world.answer(0, 200, &set, "{\"token\": \"t\"}"), AfterResponse::Next);
    assert_eq!(world.next(), Next::Request(1));
    assert_eq!(world.fills(1), ["/items/1", "t", "7", "id=1"]);
    let missing = world.answer(0, 200, &[], "<html>");
    assert_eq!(missing, AfterResponse::Unexpected(0));
    let described = world.unexpected(0, 0, 200);
    assert_eq!(described.expected, "/token in the JSON of the body for 'token'");
    assert_eq!(
        (described.came.as_str(), described.sample.as_str()),
        ("the body is not one whole JSON text", "'<html>'")
    );
}

#[test]
fn a_session_that_goes_on_has_what_a_failure_gives() {
    for goes_on in [false, true] {
        let mut login = step(vec![]);
        login.goes_on = goes_on;
        let extraction = |variable, source| Extraction {
            name: "of it".to_owned(),
            variable,
            source,
            otherwise: None,
        };
        let token = extraction(1, Source::Json("/token".to_owned()));
        login.extract = vec![token, extraction(0, Source::Status)];
        let shown = step(vec![variable(0), variable(1)]);
        let program = vec![Instruction::Request(0), Instruction::Request(1)];
        let mut world = World::new(plan(program, vec![login, shown]));
        world.next();
        assert_eq!(world.answer(0, 404, &[], "{}"), AfterResponse::BadStatus);
        assert_eq!(world.next(), Next::Request(1));
        let status = if goes_on { "404" } else { "" };
        assert_eq!(world.fills(1), [status, ""]);
        assert_eq!(world.answer(0, 200, &[], "{}"), AfterResponse::Unexpected(0));
    }
}

#[test]
fn expectations() {
    let value = |source, is| Expectation::Value { source, is };
    let body = || Source::Body;
    let rows = [
        ("a status", Expectation::Status(vec![(200, 201)]), 201, true),
        ("another", Expectation::Status(vec![(200, 201)]), 202, false),
        ("a failure that is expected", Expectation::Status(vec![(404, 404)]), 404, true),
        ("in time", Expectation::Time(Nanos::from_millis(20)), 200, true),
        ("too late", Expectation::Time(Nanos::from_millis(19)), 200, false),
        ("a part", value(body(), Match::Contains(text("lo"))), 200, true),
        ("not a part", value(body(), Match::Contains(text("ol"))), 200, false),
        ("the same", value(body(), Match::Equals(text("hello"))), 200, true),
        ("not the same", value(body(), Match::Equals(text("hell"))), 200, false),
        ("a header", value(Source::Header("x-a".to_owned()), Match::Exists), 200, true),
        ("no header", value(Source::Header("x-b".to_owned()), Match::Exists), 200, false),
        ("status as a value", value(Source::Status, Match::Equals(text("200"))), 200, true),
    ];
    for (name, expectation, status, is_met) in rows {
        let mut request = step(vec![]);
        request.expect = vec![expectation];
        let mut world = World::new(plan(vec![Instruction::Request(0)], vec![request]));
        world.next();
        let got = world.answer(0, status, &[("X-A", "1")], "hello");
        let want = if is_met { AfterResponse::Next } else { AfterResponse::Unexpected(0) };
        assert_eq!(got, want, "{name}");
        if !is_met {
            let described = world.unexpected(0, 0, status);
            assert!(
                !described.expected.is_empty() && !described.came.is_empty(),
                "{name}: {described:?}"
            );
        }
    }
    let mut world = World::new(plan(vec![Instruction::Request(0)], vec![step(vec![])]));
    world.next();
    assert_eq!(world.answer(0, 404, &[], ""), AfterResponse::BadStatus);
    assert_eq!(world.answer(0, 302, &[], ""), AfterResponse::Next, "not followed");
}

#[test]
fn redirections_are_followed_as_far_as_permitted() {
    let mut first = step(vec![text("/a/b?c")]);
    (first.redirects, first.redirected) = (2, Some(get(1)));
    first.expect = vec![Expectation::Status(vec![(200, 200)])];
    let other = step(vec![text("")]);
    let mut world = World::new(plan(vec![Instruction::Request(0)], vec![first, other]));
    world.next();
    assert_eq!(world.fills(0), ["/a/b?c"]);
    let to = |location| [("Location", location)];
    let redirected = AfterResponse::Redirected(1);
    assert_eq!(world.answer(0, 302, &to("d e"), ""), redirected);
    assert_eq!(world.fills(1), ["/a/d%20e"]);
    assert_eq!(world.answer(1, 301, &to("http://h:81/x?y#z"), ""), redirected);
    assert_eq!(world.fills(1), ["/x?y"]);
    assert_eq!(world.walk.clone().redirects_left, 0);
    let last = world.answer(1, 302, &to("/again"), "");
    assert_eq!(last, AfterResponse::Unexpected(0), "two were permitted");
    assert_eq!(world.unexpected(0, 1, 302).request, 0, "it is the step's expectation");
}

#[test]
fn one_redirection_too_many_is_a_failure() {
    let redirected = AfterResponse::Redirected(1);
    let to = [("Location", "/next")];
    for (status, location, expect, want) in [
        (302, &to[..], None, AfterResponse::TooManyRedirections),
        (308, &to, None, AfterResponse::TooManyRedirections),
        (302, &to, Some(200), AfterResponse::Unexpected(0)),
        (302, &to, Some(302), AfterResponse::Next),
        (302, &[], None, AfterResponse::Next),
        (302, &[("Location", "http://other/")], None, AfterResponse::Next),
        (304, &to, None, AfterResponse::Next),
        (200, &to, None, AfterResponse::Next),
        (404, &to, None, AfterResponse::BadStatus),
    ] {
        let mut first = step(vec![text("/a")]);
        (first.redirects, first.redirected) = (1, Some(get(1)));
        let expect = expect.map(|status| Expectation::Status(vec![(status, status)]));
        first.expect.extend(expect);
        let steps = vec![first, step(vec![text("")])];
        let mut world = World::new(plan(vec![Instruction::Request(0)], steps));
        world.next();
        world.fills(0);
        assert_eq!(world.answer(0, 301, &to, ""), redirected);
        world.fills(1);
        assert_eq!(world.answer(1, status, location, ""), want, "{status} {location:?}");
    }
}

/// RFC 9110 §15.4, as curl does it.
#[test]
fn the_status_decides_how_a_redirection_is_followed() {
    let to = Redirected { same: 1, get: 2, is_post: false };
    let post = Redirected { is_post: true, ..to };
    for (status, other, of_post) in [
        (300, Some(1), Some(1)),
        (301, Some(1), Some(2)),
        (302, Some(1), Some(2)),
        (303, Some(2), Some(2)),
        (304, None, None),
        (305, None, None),
        (307, Some(1), Some(1)),
        (308, Some(1), Some(1)),
        (200, None, None),
        (201, None, None),
    ] {
        for sent in [0, 1] {
            let after = (to.after(status, sent), post.after(status, sent));
            assert_eq!(after, (other, of_post), "{status}");
        }
        // What became a GET stays one.
        let again = other.map(|_| 2);
        assert_eq!((to.after(status, 2), post.after(status, 2)), (again, again), "{status}");
    }
}

#[test]
fn what_is_sent_again_is_what_was_sent() {
    let call = |function| Template(vec![TemplatePiece::Call(Box::new(function))]);
    let cookies = || Template(vec![TemplatePiece::Cookies]);
    let sent = |hole| Template(vec![TemplatePiece::Sent(hole)]);
    let mut first = step(vec![text("/a"), call(Function::Seq), cookies(), call(Function::Uuid)]);
    (first.redirects, first.redirected) = (3, Some(get(1)));
    let again = step(vec![text(""), sent(1), cookies(), sent(3)]);
    let program = vec![Instruction::Request(0), Instruction::Request(0)];
    let mut world = World::new(plan(program, vec![first, again]));
    let mut before = Vec::new();
    for number in ["1", "2"] {
        world.next();
        let mut fills = Fills::default();
        let mut fill = |world: &mut World, request| {
            let path_of = |fills: &Fills, path: &mut Vec<u8>| path.extend_from_slice(fills.get(0));
            world.walk.fill(request, &mut world.users, 0, &mut fills, (1, path_of)).unwrap();
            (0..4).map(|hole| String::from_utf8_lossy(fills.get(hole)).into_owned()).collect()
        };
        let asked: Vec<String> = fill(&mut world, 0);
        assert_eq!(asked[1], number);
        assert_ne!(asked[3], before.last().cloned().unwrap_or_default(), "another body");
        for (path, set) in [("/b", "x=1"), ("/c", "x=2"), ("/d", "x=3")] {
            let headers = [("Location", path), ("Set-Cookie", set)];
            assert_eq!(world.answer(0, 307, &headers, ""), AfterResponse::Redirected(1));
            let again: Vec<String> = fill(&mut world, 1);
            assert_eq!(again, [path, &*asked[1], set, &*asked[3]]);
        }
        assert_eq!(world.answer(1, 200, &[], ""), AfterResponse::Next);
        before = asked;
    }
}

#[test]
fn what_leads_to_another_origin_is_not_followed() {
    let mut first = step(vec![text("/a")]);
    (first.redirects, first.redirected) = (2, Some(get(1)));
    let plan = plan(vec![Instruction::Request(0)], vec![first, step(vec![text("")])]);
    for (location, follows) in [
        ("http://other/x", AfterResponse::Next),
        ("https://h:81/x", AfterResponse::Next),
        ("http://h:81/x", AfterResponse::Redirected(1)),
        ("", AfterResponse::Next),
    ] {
        let mut world = World::new(plan.clone());
        world.next();
        let got = world.answer(0, 302, &[("Location", location)], "");
        assert_eq!(got, follows, "{location}");
    }
}

/// A plan of these steps, each with a variant for either server.
fn on_both_servers(first: RequestStep, further: RequestStep) -> SessionPlan {
    let variants = [first, further].into_iter().zip([0, 2]).flat_map(|(step, number)| {
        let other = RequestStep { server: 1, variant_of: Some(number), ..step.clone() };
        [step, other]
    });
    plan(vec![Instruction::Request(0), Instruction::Request(2)], variants.collect())
}

#[test]
fn redirections_lead_to_other_servers_and_back() {
    let mut first = step(vec![text("/a")]);
    (first.redirects, first.redirected) = (9, Some(get(2)));
    first.expect = vec![Expectation::Status(vec![(200, 200)])];
    let mut world = World::new(on_both_servers(first, step(vec![text("")])));
    world.next();
    world.fills(0);
    for (asked, location, goes_to, path) in [
        (0, "https://login.test/b/c", 3, "/b/c"),
        (3, "d", 3, "/b/d"),
        (3, "//login.test/e", 3, "/e"),
        (3, "http://h:81/f", 2, "/f"),
        (2, "g?h", 2, "/g?h"),
    ] {
        let after = world.answer(asked, 302, &[("Location", location)], "");
        assert_eq!(after, AfterResponse::Redirected(goes_to), "{location}");
        assert_eq!(world.fills(goes_to), [path], "{location}");
    }
    assert_eq!(world.walk.reads_as(2, world.users.plan()), 0);
    assert_eq!(world.answer(2, 200, &[], ""), AfterResponse::Next);
}

#[test]
fn a_value_leads_to_another_server() {
    let link = |variable| Fill {
        value: Template(vec![TemplatePiece::Variable(variable)]),
        escape: Escape::Link,
    };
    let of_link = RequestStep { fills: vec![link(0)], ..step(vec![]) };
    let mut world = World::new(on_both_servers(of_link.clone(), of_link));
    for (before, value, sent, path) in [
        (0, "https://login.test/form?a", 1, "/form?a"),
        (0, "/b", 1, "/b"),
        (2, "c", 3, "/c"),
        (2, "http://h:81/d/e", 2, "/d/e"),
        (0, "f", 0, "/d/f"),
    ] {
        world.walk.take_given(vec![(0, value.as_bytes().to_vec())]);
        let mut fills = Fills::default();
        let path_of = |fills: &Fills, path: &mut Vec<u8>| path.extend_from_slice(fills.get(0));
        let path_of = (1, path_of);
        let filled = world.walk.fill(before, &mut world.users, 0, &mut fills, path_of);
        assert_eq!(filled, Ok(sent), "{value}");
        assert_eq!(fills.get(0), path.as_bytes(), "{value}");
        assert_eq!(world.walk.reads_as(sent, world.users.plan()), before);
    }
}

/// What happens next in the simulated network: at a time, to a user, whose pause or service ends.
type Agenda = std::collections::BinaryHeap<std::cmp::Reverse<(u64, u32, bool)>>;

/// Sessions per second of `count` users where one worker serves all in turn. Each user asks three
/// times and pauses after each.
fn simulated(count: u32, think: Nanos, service: Nanos, end: Nanos) -> f64 {
    let pause = || Instruction::Think(Law::Exp(think));
    let ask = || Instruction::Request(0);
    let program = vec![ask(), pause(), ask(), pause(), ask(), pause()];
    let mut closed = plan(program, vec![step(vec![])]);
    closed.kinds[0].data.clear();
    let mut users = Users::new(Arc::new(closed), (0, 1), 7);
    let mut rng = crate::rng::stream(7, 1);
    let mut walks = vec![Walk::default(); count as usize];
    let mut queue = std::collections::VecDeque::new();
    let mut agenda = Agenda::new();
    for (user, walk) in walks.iter_mut().enumerate() {
        assert!(walk.begin(&mut users, false));
        agenda.push(std::cmp::Reverse((user as u64, user as u32, false)));
    }
    let mut completed = 0;
    while let Some(std::cmp::Reverse((now, user, is_service))) = agenda.pop() {
        if now > end.0 {
            break;
        }
        let mut serve = |user, agenda: &mut Agenda| {
            let ends = now + Law::Exp(service).sample(&mut rng).0;
            agenda.push(std::cmp::Reverse((ends, user, true)));
        };
        if is_service {
            queue.pop_front();
            if let Some(&next) = queue.front() {
                serve(next, &mut agenda);
            }
        }
        let walk = &mut walks[user as usize];
        let mut next = walk.next(&mut users, Nanos::ZERO, now, &mut { STEPS_AT_ONCE_MAX });
        if next == Next::Over {
            completed += 1;
            assert!(walk.begin(&mut users, false));
            next = walk.next(&mut users, Nanos::ZERO, now, &mut { STEPS_AT_ONCE_MAX });
        }
        match next {
            Next::Think(time) => agenda.push(std::cmp::Reverse((now + time.0, user, false))),
            _ => {
                queue.push_back(user);
                if queue.len() == 1 {
                    serve(user, &mut agenda);
                }
            }
        }
    }
    completed as f64 / end.as_secs_f64()
}

#[test]
fn sessions_with_pauses_have_the_throughput_of_theory() {
    let (think, service) = (Nanos::from_millis(10), Nanos::from_millis(1));
    for count in [1, 8, 15, 40] {
        // Mean value analysis of one queue and a delay (Reiser and Lavenberg 1980), per session.
        let (demand_s, delay_s) = (3.0 * service.as_secs_f64(), 3.0 * think.as_secs_f64());
        let (mut waiting, mut want) = (0.0, 0.0);
        for n in 1..=count {
            let response_s = demand_s * (1.0 + waiting);
            want = f64::from(n) / (response_s + delay_s);
            waiting = want * response_s;
        }
        let got = simulated(count, think, service, Nanos::from_secs(300));
        assert!((got / want - 1.0).abs() < 0.02, "{count} users: {got}/s, not {want}/s");
    }
}

#[test]
fn value_that_doubles_each_time_ends() {
    let of = |variable| TemplatePiece::Variable(variable);
    let twice = Template(vec![of(1), of(1)]);
    let set = |value| Instruction::Set { variable: 1, value };
    let mut program = vec![set(text("abcd"))];
    // 4 bytes become 16 MiB with 22 steps.
    program.extend(vec![set(twice); 22]);
    program.push(Instruction::Request(0));
    program.extend(vec![set(Template(vec![of(1), of(1)])); 18]);
    program.push(Instruction::Request(1));
    let mut plan = plan(program, vec![step(vec![]), step(vec![])]);
    plan.kinds[0].data.clear();
    let mut world = World::new(plan);
    assert_eq!(world.next(), Next::Request(0));
    assert_eq!(world.next(), Next::Unfit(1, UnfitReason::TooLong));
    assert!(world.walk.learnt.variable(1).len() <= FILLED_BYTES_MAX);
}
