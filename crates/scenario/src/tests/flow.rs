//! Steps around other steps, what values have to be, and where they come from.

use super::{parse, with_steps};
use knee_load::session::{
    Expectation, Fills, Instruction, Match, Next, Origin, Source, Template, TemplatePiece, Users,
    Walk,
};
use knee_load::spec::{Cut, Part};
use knee_load::time::Nanos;
use std::rc::Rc;
use std::sync::Arc;

/// The paths that a session asks for, as many as there are or `most`, with what groups it left.
/// Of several branches the first is walked last.
fn walked(steps: &str, most: usize) -> (Vec<String>, Vec<String>) {
    let scenario = parse(&with_steps(steps)).unwrap_or_else(|wrong| panic!("{steps}: {wrong}"));
    let groups = scenario.plan.groups.clone();
    let users = Users::new(Arc::new(scenario.plan), (0, 1), 7);
    let mut users = users.of_origins([Origin::new(false, "h")]);
    let mut walk = Walk::default();
    assert!(walk.begin(&mut users, false));
    let mut paths = Vec::new();
    let mut requests = scenario.requests.iter().map(|request| request.cut(Part::Path)).collect();
    walk_on((&mut walk, &mut requests), &mut users, &mut Nanos::default(), (most, &mut paths));
    let ended = std::iter::from_fn(|| walk.take_left());
    let left = ended.map(|(group, from, to)| {
        format!("{}: {} ms", groups[usize::from(group)].name, (to - from).0 / 1_000_000)
    });
    (paths, left.collect())
}

/// Walks on to the end of a session or of a branch.
fn walk_on(
    (walk, requests): (&mut Walk, &mut Vec<Vec<Cut>>),
    users: &mut Users,
    due: &mut Nanos,
    (most, paths): (usize, &mut Vec<String>),
) {
    let mut is_forked = false;
    loop {
        match walk.next(users, *due, 0, &mut 1_000) {
            Next::Request(number) if paths.len() < most => {
                let cuts = &requests[number as usize];
                let mut path = Vec::new();
                let holes = cuts.iter().filter(|cut| matches!(cut, Cut::Hole(_)));
                let put = |fills: &Fills, out: &mut Vec<u8>| {
                    cuts.iter().for_each(|cut| cut.put(fills, out));
                    path.clone_from(out);
                };
                walk.fill(number, users, 0, &mut Fills::new(), (holes.count(), put)).unwrap();
                paths.push(String::from_utf8(path).unwrap());
                *due += Nanos::from_millis(10);
            }
            Next::Think(time) => *due += time,
            Next::Yield => {}
            Next::Unfit(_, reason) => return paths.push(format!("{reason:?}")),
            Next::Fork(at) => {
                let plan = Rc::clone(users.plan());
                let kind = &plan.kinds[usize::from(walk.kind())];
                let Instruction::Fork(begins) = &kind.program[at as usize] else { panic!("{at}") };
                for begin in begins {
                    let mut branch = Walk::default();
                    branch.branch_off(walk, *begin);
                    walk.lend(&mut branch);
                    walk_on((&mut branch, requests), users, due, (most, paths));
                    walk.lend(&mut branch);
                }
                is_forked = true;
            }
            Next::Join if is_forked => is_forked = false,
            Next::Join | Next::Request(_) | Next::Over => return,
        }
    }
}

fn paths(steps: &str) -> String {
    walked(steps, 30).0.join(" ")
}

#[test]
fn steps_are_done_as_the_file_says() {
    for (steps, want) in [
        ("- {set: {n: 3, m: 'a${n}'}}\n- {get: '/${m}/${n}'}", "/a3/3"),
        ("- {repeat: '${n}', steps: [{get: /}]}", ""),
        (
            "- {set: {n: 2}}\n- {repeat: '${n}', steps: [{get: /a}, {repeat: 2, steps: [{get: \
             /b}]}]}",
            "/a /b /b /a /b /b",
        ),
        ("- {repeat: {times: 3, as: i}, steps: [{get: '/${i}'}]}", "/0 /1 /2"),
        ("- {repeat: {over: [a, '${users.name}'], as: x}, steps: [{get: '/${x}'}]}", "/a /ann"),
        (
            "- {set: {l: '[\"x\", 2, null]'}}\n- {repeat: {over: '${l}', as: x}, steps: [{get: \
             '/${x}'}]}",
            "/x /2 /null",
        ),
        (
            "- {set: {a: ''}}\n- {repeat: {while: \"${a} != 'xx'\"}, steps: [{get: /}, {set: \
             {a: '${a}x'}}]}",
            "/ /",
        ),
        (
            "- {repeat: {until: '${a} == xx', at_most: 5}, steps: [{get: /}, {set: {a: '${a}x'}}]}",
            "/ /",
        ),
        ("- {repeat: {until: 1 == 2, at_most: 3, as: i}, steps: [{get: '/${i}'}]}", "/0 /1 /2"),
        ("- {when: 1 < 2, steps: [{get: /a}], else: [{get: /b}]}\n- {get: /c}", "/a /c"),
        ("- {when: 1 > 2, steps: [{get: /a}], else: [{get: /b}]}\n- {get: /c}", "/b /c"),
        (
            "- {when: \"${users.name} matches '^an+$' and not (1 == 2 or 2 == 3)\", steps: [{get: \
             /}]}",
            "/",
        ),
        ("- {choose: [{steps: [{get: /a}, {get: /b}]}]}\n- {get: /c}", "/a /b /c"),
        ("- {parallel: [{get: /a}, {get: /b}, {get: /c}]}\n- {get: /d}", "/b /c /a /d"),
        (
            "- {repeat: {over: [1, 2], as: i}, steps: [{parallel: [{set: {a: '${i}'}}, {repeat: 2, \
             steps: [{get: '/b${i}'}]}]}, {get: '/${a}'}]}",
            "/b1 /b1 /1 /b2 /b2 /2",
        ),
        ("- {set: {n: x}}\n- {repeat: '${n}', steps: [{get: /}]}", "NoCount"),
        ("- {set: {n: x}}\n- {repeat: {over: '${n}'}, steps: [{get: /}]}", "NoArray"),
    ] {
        let steps = if steps.starts_with("- {repeat: '${n}'") {
            format!("- {{set: {{n: 0}}}}\n{steps}")
        } else {
            steps.to_owned()
        };
        let indented = steps.lines().map(|line| format!("      {line}\n")).collect::<String>();
        assert_eq!(paths(&indented), want, "{steps}");
    }
}

#[test]
fn branches_know_nothing_of_each_other_and_do_not_nest() {
    let nested = "      - parallel: [{get: /a}, {when: 1 < 2, steps: [{parallel: [{get: /b}]}]}]";
    let other = "      - parallel: [{get: /a, extract: {t: {header: x}}}, {get: '/${t}'}]";
    let passes =
        "      - parallel: [{repeat: {times: 2, as: i}, steps: [{get: /a}]}, {get: '/${i}'}]";
    let many = format!("      - parallel: [{}]", ["{get: /}"; 33].join(", "));
    for (steps, want) in [
        (nested, "'parallel' within 'parallel': write all steps in one list"),
        (other, "'t' has no value yet"),
        (passes, "'i' has no value yet"),
        (&many, "no step, or too many at the same time: expected 1 to 32"),
        ("      - parallel: []", "no step, or too many at the same time: expected 1 to 32"),
        ("      - parallel: {get: /a}", "'parallel' is a list of steps"),
    ] {
        let wrong = parse(&with_steps(steps)).err().map(|wrong| wrong.to_string());
        assert!(wrong.as_ref().is_some_and(|wrong| wrong.contains(want)), "{steps}: {wrong:?}");
    }
    let after = "      - parallel: [{get: /a, extract: {t: {header: x}}}, {get: /b}]\n\
                 \x20     - {get: '/${t}'}";
    assert!(parse(&with_steps(after)).is_ok());
}

#[test]
fn groups_are_timed_with_their_pauses() {
    let steps = "      - group: buy\n        steps:\n        - {get: /a}\n        - {think: 5ms}\n\
                 \x20       - {group: pay, steps: [{get: /b}]}\n      - {think: 1s}\n\
                 \x20     - {get: /c}";
    let (paths, left) = walked(steps, 9);
    assert_eq!(paths, ["/a", "/b", "/c"]);
    assert_eq!(left, ["buy: 25 ms", "pay: 10 ms"]);
}

#[test]
fn groups_have_names_of_their_own_that_thresholds_know() {
    let text = with_steps(
        "      - {group: a, steps: [{get: /}]}\n      - {group: a, steps: [{get: /, name: a}]}",
    );
    let scenario = parse(&format!("{text}fail_if: ['a p99>5ms', 's: a (2) p99>5ms']\n")).unwrap();
    let names: Vec<_> = scenario.plan.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["a", "a (2)"]);
    assert_eq!(scenario.plan.requests[1].name, "a (3)");
}

#[test]
fn choices_have_the_sum_of_their_weights() {
    let text = with_steps(
        "      - choose:\n        - {weight: 3, steps: [{get: /a}]}\n        - {steps: [{get: /b}, \
         {get: /c}]}",
    );
    let program = &parse(&text).unwrap().plan.kinds[0].program;
    assert_eq!(program[0], Instruction::Choose(vec![(3, 1), (4, 3)]));
    assert_eq!(program[2], Instruction::Jump(6));
}

fn expected(expect: &str) -> Vec<(Source, Match)> {
    let text = with_steps(&format!("      - {{get: /, expect: {expect}}}"));
    let scenario = parse(&text).unwrap_or_else(|wrong| panic!("{expect}: {wrong}"));
    let values = scenario.plan.requests[0].expect.iter().map(|expectation| match expectation {
        Expectation::Value { source, is } => (source.clone(), is.clone()),
        other => panic!("{other:?}"),
    });
    values.collect()
}

#[test]
fn values_are_expected_in_many_ways() {
    let not = |is| Match::Not(Box::new(is));
    let text = |text: &str| Template(vec![TemplatePiece::Text(text.to_owned())]);
    let json = || Source::Json("/n".to_owned());
    let header = || Source::Header("a".to_owned());
    let both = expected("{body: {json: /n, above: 3, at_most: 10, not: {equals: 7, contains: 8}}}");
    let relations = both.iter().map(|(_, is)| format!("{is:?}")).collect::<Vec<_>>();
    assert_eq!(both.len(), 4);
    assert!(
        relations[0].starts_with("Number(Greater") && relations[1].starts_with("Number(AtMost")
    );
    assert_eq!(
        both[2..],
        [(json(), not(Match::Equals(text("7")))), (json(), not(Match::Contains(text("8")))),]
    );
    assert_eq!(expected("{body: {json: /n, exists: false}}"), [(json(), not(Match::Exists))]);
    assert_eq!(expected("{header: {A: {exists: true}}}"), [(header(), Match::Exists)]);
    let pattern = expected("{header: {A: {not: {matches: '^x'}}}, body: {matches: 'b\\d'}}");
    assert_eq!(pattern[0], (header(), not(Match::Matches("^x".to_owned().try_into().unwrap()))));
    assert_eq!(pattern[1].0, Source::Body);
    let list = expected("{body: [a, {not: {contains: b}}]}");
    assert_eq!(list[1], (Source::Body, not(Match::Contains(text("b")))));
    let filled = expected("{body: {json: /n, at_least: '${users.name}', below: 1e3}}");
    assert_eq!(filled.len(), 2);
}

#[test]
fn values_are_extracted_in_many_ways() {
    for (extract, want) in [
        ("{regex: 'a(b)'}", "a match of /a(b)/ in the body 1 false"),
        ("{regex: 'ab'}", "a match of /ab/ in the body 0 false"),
        ("{regex: 'a(b)(c)', group: 2, unescape: true}", "a match of /a(b)(c)/ in the body 2 true"),
        (
            "{css: 'input[name=a]', attribute: VALUE}",
            "the attribute value of an element 'input[name=a]' in the body",
        ),
        ("{css: h1}", "an element 'h1' in the body"),
        ("{between: [a, b], unescape: true}", "a text between 'a' and 'b' in the body true"),
    ] {
        let text = with_steps(&format!("      - {{get: /, extract: {{x: {extract}}}}}"));
        let scenario = parse(&text).unwrap_or_else(|wrong| panic!("{extract}: {wrong}"));
        let source = &scenario.plan.requests[0].extract[0].source;
        let rest = match source {
            Source::Regex { group, unescape, .. } => format!(" {group} {unescape}"),
            Source::Between { unescape, .. } => format!(" {unescape}"),
            _ => String::new(),
        };
        assert_eq!(format!("{source}{rest}"), want);
    }
}

#[test]
fn parts_of_a_form_are_sent_as_browsers_do() {
    let text = with_steps(
        "      - post: /\n        multipart:\n          \"na\\\"me\": ${users.name}!\n          \
         many: [1, {text: '{}', type: application/json}]\n          file: {file: users.csv}\n\
         \x20         page: {file: order.xml, type: text/xml, filename: o.xml}",
    );
    let scenario = parse(&text).unwrap();
    let request = &scenario.requests[0];
    let content_type = &request.headers[0];
    assert_eq!(content_type.1, "multipart/form-data; boundary=----knee0000000000000000");
    let body = String::from_utf8(request.body.to_vec()).unwrap();
    let part = |head: &str, content: &str| {
        format!(
            "------knee0000000000000000\r\nContent-Disposition: form-data; {head}\r\n\r\n\
             {content}\r\n"
        )
    };
    let want = [
        part("name=\"na%22me\"", "!"),
        part("name=\"many\"", "1"),
        part("name=\"many\"\r\nContent-Type: application/json", "{}"),
        part(
            "name=\"file\"; filename=\"users.csv\"\r\nContent-Type: application/octet-stream",
            "name,password\nann,a1\n\"bob, jr\",\"b\"\"2\"\n",
        ),
        part("name=\"page\"; filename=\"o.xml\"\r\nContent-Type: text/xml", "<order/>"),
        "------knee0000000000000000--\r\n".to_owned(),
    ];
    assert_eq!(body, want.concat());
    let hole = request.holes.iter().find(|hole| hole.part == Part::Body).unwrap();
    assert_eq!(hole.at as usize, body.find("!\r\n").unwrap());
    let clash = with_steps("      - {post: /, multipart: {a: '----knee0000000000000000'}}");
    let clash = parse(&clash).unwrap();
    assert!(clash.requests[0].headers[0].1.ends_with("knee0000000000000001"));
}

/// Whatever stands under a key is taken, or refused in one line with a place. A key with a letter
/// too few is met with the right one.
#[test]
fn odd_values_have_a_place_and_odd_keys_their_nearest() {
    const VALUES: [&str; 30] = [
        "",
        "''",
        "~",
        "[]",
        "{}",
        "[[]]",
        "[{}]",
        "{a: b}",
        "{a: [b]}",
        "[a, b]",
        "0",
        "-1",
        "1.5",
        "1e99",
        "true",
        "99999999999999999999",
        "'${'",
        "'${x'",
        "'${}'",
        "'${nosuch}'",
        "'${users.name}'",
        "'${random(1,'",
        "'a == b'",
        "'a == '",
        "'(('",
        "'a['",
        "\"\\0\"",
        "\"a\\nb\"",
        "{file: nosuch, text: x}",
        "[{steps: []}]",
    ];
    const FIRST: &str = "      - get: /\n";
    const STEPS: [(&str, &str); 22] = [
        ("set", "{¦set: @}"),
        ("choose", "{¦choose: @}"),
        ("weight", "{choose: [{¦weight: @, steps: [{get: /}]}]}"),
        ("group", "{¦group: @, steps: [{get: /}]}"),
        ("else", "{when: a == b, steps: [{get: /}], ¦else: @}"),
        ("when", "{¦when: @, steps: [{get: /}]}"),
        ("repeat", "{¦repeat: @, steps: [{get: /}]}"),
        ("times", "{repeat: {¦times: @}, steps: [{get: /}]}"),
        ("over", "{repeat: {¦over: @}, steps: [{get: /}]}"),
        ("while", "{repeat: {¦while: @}, steps: [{get: /}]}"),
        ("until", "{repeat: {¦until: @}, steps: [{get: /}]}"),
        ("at_most", "{repeat: {while: a == b, ¦at_most: @}, steps: [{get: /}]}"),
        ("multipart", "{post: /, ¦multipart: @}"),
        ("filename", "{post: /, multipart: {a: {text: b, ¦filename: @}}}"),
        ("matches", "{get: /, expect: {body: {¦matches: @}}}"),
        ("above", "{get: /, expect: {body: {¦above: @}}}"),
        ("exists", "{get: /, expect: {body: {json: /a, ¦exists: @}}}"),
        ("not", "{get: /, expect: {body: {¦not: @}}}"),
        ("regex", "{get: /, extract: {x: {¦regex: @}}}"),
        ("css", "{get: /, extract: {x: {¦css: @}}}"),
        ("attribute", "{get: /, extract: {x: {css: a, ¦attribute: @}}}"),
        ("unescape", "{get: /, extract: {x: {regex: a, ¦unescape: @}}}"),
    ];
    let mut refused = 0;
    for (key, step) in STEPS {
        let head = format!("      - {}", step.split('¦').next().unwrap());
        let column = head.chars().count() + 1;
        for value in VALUES {
            let text = with_steps(&format!(
                "{FIRST}      - {}",
                step.replace('¦', "").replace('@', value)
            ));
            let Err(told) = parse(&text) else { continue };
            refused += 1;
            let place = told.strip_prefix("shop.yaml:7:").unwrap_or_else(|| panic!("{told}"));
            let at: usize = place.split(':').next().unwrap().parse().unwrap();
            // A key that is missing is missed in the map, which begins before.
            assert!(at + 1 >= column || told.contains("lacks"), "{key}: {value}: {told}");
            assert!(!told.contains('\n') && told.len() < 400, "{key}: {value}: {told}");
        }
        for at in 0..key.len() {
            let mut odd = key.to_owned();
            odd.remove(at);
            let written = step.replace(&format!("¦{key}"), &odd).replace('@', "x");
            let Err(told) = parse(&with_steps(&format!("{FIRST}      - {written}"))) else {
                panic!("{key}: {written}")
            };
            let is_told = told.contains(&format!("shop.yaml:7:{column}: unknown key '{odd}'"));
            // Two letters are near to other keys as well.
            assert!(is_told && (odd.len() < 3 || told.contains("did you mean")), "{told}");
        }
    }
    assert!(refused > 400, "{refused}");
}
