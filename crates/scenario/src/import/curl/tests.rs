//! What pasted texts of curl become.

use super::curl_line;
use crate::import::ImportedScenario;
use crate::import::tests::{no_file, read, step_count};
use proptest::prelude::*;

#[track_caller]
fn imported(text: &str) -> ImportedScenario {
    curl_line(text, &mut no_file).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// The only request: its header `x-q`, a line end and its body.
#[track_caller]
fn sent(text: &str) -> String {
    let imported = imported(text);
    assert_eq!(imported.left_out, [""; 0], "{text}");
    let requests = read(&imported).requests;
    assert_eq!(requests.len(), 1, "{text}");
    let header = requests[0].headers.iter().find(|(name, _)| name == "x-q");
    let header = header.map_or("", |(_, value)| value.as_str());
    format!("{header}\n{}", String::from_utf8_lossy(&requests[0].body))
}

#[test]
fn each_command_that_begins_with_curl_is_a_transfer() {
    for text in [
        "curl 'http://h/login' -H 'x-q: secret'\ncurl 'http://h/order' -d a=1\n",
        "# two\r\n\r\n$ curl http://h/login -H 'x-q: secret'\r\n$ curl http://h/order -da=1\r\n",
        "curl 'http://h/login' -H 'x-q: secret' ;\ncurl 'http://h/order' -d a=1",
        "curl 'http://h/login' -H 'x-q: secret' && curl 'http://h/order' -d a=1",
        "curl ^\"http://h/login^\" ^\r\n  -H ^\"x-q: secret^\" &\r\n\
         curl ^\"http://h/order^\" ^\r\n  --data-raw ^\"a=1^\"",
        "curl ^\n http://h/login -H \"x-q: secret\"\ncurl http://h/order -d a=1\n",
    ] {
        let imported = imported(text);
        assert_eq!(imported.left_out, [""; 0], "{text}");
        let targets: Vec<_> = imported.targets.iter().map(|target| target.literal()).collect();
        assert_eq!(targets, [Some("http://h")], "{text}");
        let requests = read(&imported).requests;
        let [login, order] = &requests[..] else {
            panic!("{text}: {requests:?}");
        };
        assert_eq!((&*login.method, &*login.path, &*login.body), ("GET", "/login", &b""[..]));
        assert!(login.headers.contains(&("x-q".to_owned(), "secret".to_owned())), "{text}");
        assert_eq!((&*order.method, &*order.path, &*order.body), ("POST", "/order", &b"a=1"[..]));
        assert!(order.headers.iter().all(|(name, _)| name != "x-q"), "{text}");
    }
}

#[test]
fn lines_of_other_programs_are_refused() {
    for line in [
        "Invoke-WebRequest -UseBasicParsing -Uri \"http://h/a\" -Headers @{\"a\"=\"b\"}",
        "$session = New-Object Microsoft.PowerShell.Commands.WebRequestSession\n\
         Invoke-WebRequest -Uri \"http://h/a\" -WebSession $session",
        "irm http://h/a",
        "wget -q http://h/a",
        "http POST h/a b=c",
        "fetch(\"http://h/a\", {\n  \"method\": \"GET\"\n});",
    ] {
        let error = curl_line(line, &mut no_file).unwrap_err().to_string();
        assert!(error.contains("is not curl"), "{line}: {error}");
    }
    // These are URLs, and what stands beside curl.
    for line in ["http://h/a", "https://h/a -d b=c", "curl h/http", "wget h/b\ncurl h/c"] {
        assert!(curl_line(line, &mut no_file).is_ok(), "{line}");
    }
}

#[test]
fn json_has_its_headers_in_a_url_too() {
    let requests = read(&imported("curl http://h/a --get --json '{\"a\":1}'")).requests;
    for (name, value) in [("Content-Type", "application/json"), ("Accept", "application/json")] {
        let has =
            requests[0].headers.iter().any(|(n, v)| n.eq_ignore_ascii_case(name) && v == value);
        assert!(has, "{name}: {:?}", requests[0].headers);
    }
    assert_eq!((&*requests[0].method, &*requests[0].body), ("GET", &b""[..]));
    let error = curl_line("curl 'http://h/a b'", &mut no_file).unwrap_err().to_string();
    assert!(error.contains("write %20"), "{error}");
}

#[test]
fn commands_that_are_no_transfer_are_named() {
    for (text, steps, left_out) in [
        ("curl h | jq . | less", 1, &["what follows curl: | jq . | less"][..]),
        ("curl h/a -o x; wget h/b\ncurl h/c", 2, &["what follows curl: ; wget h/b"]),
        ("curl h 2>/dev/null || exit 1", 1, &["what follows curl: >/dev/null || exit 1"]),
        (
            "set -e\ncurl h\n{\"it's\": 1}\n",
            1,
            &["what stands before curl: set -e", "what follows curl: {\"it's\": 1}"],
        ),
        (
            "curl ^\n h > nul\ncurl h/2 | more",
            2,
            &["what follows curl: > nul", "what follows curl: | more"],
        ),
        // Options alone.
        ("-d a=1 h\nb", 1, &["what follows curl: b"]),
        (
            "curl \"h/$ID\" -H \"x-q: Bearer $TOKEN\" -d $(date +%s) -H \"y: ${ID}`z`\"; echo $A",
            1,
            &[
                "$ID: variables of the shell are sent as they stand",
                "$TOKEN: variables of the shell are sent as they stand",
                "$(date +%s): commands of the shell are sent as they stand",
                "${ID}: variables of the shell are sent as they stand",
                "`z`: commands of the shell are sent as they stand",
                "what follows curl: ; echo $A",
            ],
        ),
    ] {
        let imported = imported(text);
        assert_eq!(imported.left_out, left_out, "{text}");
        assert_eq!(step_count(&imported), steps, "{text}");
    }
}

#[test]
fn quotes_do_not_change_what_is_sent() {
    for (options, sent_by_curl) in [
        (
            r#"-d $'{"city":"M\xc3\xbcnchen","o":"\303\244"}'"#,
            "\n{\"city\":\"München\",\"o\":\"ä\"}",
        ),
        (r"-d $'\cA\q\x7f'", "\n\u{1}\\q\u{7f}"),
        (r"-d $'a\0b'c", "\nac"),
        (r#"-d $'{"re":"\d+"}'"#, "\n{\"re\":\"\\d+\"}"),
        ("-H 'x-q: $A ${B} `c`' -d '$(d)'", "$A ${B} `c`\n$(d)"),
        ("-H \"x-q: 5$ \\$A\" -d '$'", "5$ $A\n$"),
        ("^\n -H \"x-q: a\"\"b\" --data-raw \"{\"\"a\"\":1}\"", "a\"b\n{\"a\":1}"),
        ("^\n -H \"x-q: a\" -d \"\"", "a\n"),
    ] {
        assert_eq!(sent(&format!("curl http://h/ {options}")), sent_by_curl, "{options}");
    }
}

#[test]
fn bytes_that_are_no_text_are_sent_or_named() {
    for (line, path, wrong) in [
        (r"curl $'http://h/a\377\xc3\xa9'", "/a%FF%C3%A9", ""),
        (r"curl -G --data-urlencode $'q=\377' h", "/?q=%FF", ""),
        (r"curl -d $'\377' h", "", "its body is not text"),
        (r#"curl -d $'{"city":"Caf\xe9"}' h"#, "", "its body is not text"),
        (r"curl -F $'a=\377' h", "", "its body is not text"),
        (r"curl -H $'A: \377' h", "", "--header: its value is not UTF-8 text"),
        (r"curl -u $'a:\377' h", "", "--user: its value is not UTF-8 text"),
        (r"curl -X $'\xe9' h", "", "--request: its value is not UTF-8 text"),
    ] {
        match super::curl_line(line, &mut no_file) {
            Ok(imported) => {
                assert_eq!(read(&imported).requests[0].path, path, "{line}")
            }
            Err(refused) => {
                assert!(!wrong.is_empty() && refused.0.contains(wrong), "{line}: {refused:?}")
            }
        }
    }
}

#[test]
fn typographic_signs_are_named() {
    for (line, wrong) in [
        ("curl “http://h/”", Some("'“' is a typographic quote, which no shell reads: write \"")),
        ("curl ”http://h/”", Some("write \"")),
        ("curl -H ‘A: b’ h", Some("'‘' is a typographic quote, which no shell reads: write '")),
        ("curl –X POST h", Some("'–' is a typographic dash, which no shell reads: write -")),
        ("curl —data a h", Some("'—' is a typographic dash, which no shell reads: write --")),
        ("curl -d «a» h", Some("write \"")),
        ("curl -H 'A: “b”' h", None),
        ("curl -d '“hi”' h", None),
        ("curl -d \"it’s – so\" h", None),
        ("curl h/“b”", None),
        ("curl h; echo “x”", None),
    ] {
        let refused = super::curl_line(line, &mut no_file).err().map(|refused| refused.0);
        match wrong {
            Some(wrong) => {
                assert!(refused.as_ref().is_some_and(|r| r.contains(wrong)), "{line}: {refused:?}")
            }
            None => assert_eq!(refused, None, "{line}"),
        }
    }
    // As a shell passes them.
    for (words, is_wrong) in [
        (&["curl", "“http://h/”"][..], true),
        (&["curl", "-H", "“A:", "b”", "h"], true),
        (&["curl", "–X", "POST", "h"], true),
        (&["curl", "-d", "“hi” there", "h"], false),
        (&["curl", "-d", "— a dash", "h"], false),
    ] {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(super::curl_words(&words, &mut no_file).is_err(), is_wrong, "{words:?}");
    }
}

#[test]
fn names_of_json_have_no_values() {
    let body = r#"{"filter":{"${gt}":5,"a\"${b}":"c\\","d":["${e}: f","\"${g}\":"]},":":"${h}"}"#;
    assert_eq!(sent(&format!("curl http://h/ --json '{body}'")), format!("\n{body}"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn all_of_a_text_is_in_its_commands(text in r#"[ac2ü \n\r|;&<>'"`$(){}\\^x#-]{0,30}"#) {
        for text in [text.clone(), format!("\"\" ^\"{text}"), format!("$'{text}'")] {
            let Ok(commands) = super::commands(&text) else {
                continue;
            };
            let letters = |text: &str| text.matches(['a', 'c', 'ü']).count();
            let named: usize = commands.iter().map(|command| letters(&command.text)).sum();
            // Comments at the end of a line are of no command.
            prop_assert!(text.contains('#') || letters(&text) == named, "{text}: {commands:?}");
        }
    }
}

/// What is proved without being sent is not sent in the clear.
#[test]
fn a_password_for_another_scheme_is_left_out() {
    let has_password = |imported: &ImportedScenario| {
        let requests = read(imported).requests;
        requests[0].headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    };
    for option in ["--digest", "--ntlm", "--negotiate", "--anyauth", "--aws-sigv4 aws:amz:x:s3"] {
        for line in [
            format!("curl {option} -u ann:secret https://h/"),
            format!("curl {option} https://ann:secret@h/"),
        ] {
            let imported = imported(&line);
            assert!(!has_password(&imported), "{line}");
            let left_out = imported.left_out.join("\n");
            let is_said = left_out.contains("the credentials, which go with");
            assert!(is_said && !left_out.contains("secret"), "{line}: {left_out}");
        }
    }
    assert!(has_password(&imported("curl --basic -u ann:secret https://h/")));
}

/// A scenario has no place for them: a run has such options.
#[test]
fn options_of_connections_are_named() {
    for (options, left_out) in [
        ("-k --http1.1", &["option --insecure", "option --http1.1"][..]),
        ("--http2-prior-knowledge", &["option --http2-prior-knowledge"]),
        ("--http3", &["option --http3"]),
        ("--no-alpn -6", &["option --ipv6", "option --no-alpn"]),
        ("--cert a.pem --key b.pem", &["option --cert a.pem", "option --key b.pem"]),
        ("--cacert a.pem --tlsv1.2", &["option --cacert a.pem", "option --tlsv1.2"]),
        ("--noproxy '*'", &["option --noproxy *"]),
        ("--compressed -s -i", &[]),
    ] {
        let imported = imported(&format!("curl https://h/ {options}"));
        assert_eq!(imported.left_out, left_out, "{options}");
    }
}

#[test]
fn connect_to_is_the_url_of_the_other_server() {
    let first = imported("curl http://h:81/a?b --connect-to h:81:g:82");
    assert_eq!(first.left_out, [""; 0]);
    let request = &read(&first).requests[0];
    assert_eq!((&*request.path, first.targets[0].literal()), ("/a?b", Some("http://g:82")));
    assert!(request.headers.contains(&("Host".to_owned(), "h:81".to_owned())), "{request:?}");
    let secure = imported("curl https://h/ --connect-to ::g:8443");
    assert_eq!(secure.left_out, ["option --connect-to: give knee run --sni h"]);
    let other = imported("curl http://h/ --connect-to x:80:g:82");
    assert_eq!(other.targets[0].literal(), Some("http://h"));
}

#[test]
fn get_without_data_has_no_query() {
    for (line, path) in [
        ("curl -G http://h/x", "/x"),
        ("curl -G http://h/x -d ''", "/x?"),
        ("curl -G http://h/x -d a=1", "/x?a=1"),
        ("curl -G 'http://h/x?b' -d a=1", "/x?b&a=1"),
    ] {
        assert_eq!(read(&imported(line)).requests[0].path, path, "{line}");
    }
}

#[test]
fn forms_are_sent_byte_for_byte() {
    for body in
        ["a=b%20c", "a=b+c", "a[]=1&a[x]=2", "a;b=1", "a=~", "a=%c3%a9", "a=%C3%A9", "a=1&b=2", "a"]
    {
        let request = &read(&imported(&format!("curl http://h/ -d '{body}'"))).requests[0];
        assert_eq!(String::from_utf8_lossy(&request.body), body);
    }
}
