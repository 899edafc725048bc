//! Bad input in all its kinds: from argv to the one line that says what is wrong.

use super::{MACHINE, parse};
use crate::command::raw::RawCommand;

/// The line that refuses the whole command line.
pub fn refusal(arguments: &str) -> String {
    let command = match parse(arguments) {
        Ok(command) => command,
        Err(line) => return line,
    };
    let refused = match command {
        RawCommand::Run(raw) => raw.resolve(&MACHINE).map(|_| ()),
        RawCommand::Sweep(raw) => raw.resolve(&MACHINE).map(|_| ()),
        RawCommand::Overload(raw) => raw.resolve(&MACHINE).map(|_| ()),
        RawCommand::Recover(raw) => raw.resolve(&MACHINE).map(|_| ()),
        RawCommand::Throttle(raw) => raw.resolve().map(|_| ()),
        RawCommand::Udp(raw) => raw.resolve(&MACHINE).map(|_| ()),
        RawCommand::Latency(raw) => raw.resolve(&MACHINE).map(|_| ()),
        RawCommand::Serve(raw) => raw.resolve().map(|_| ()),
        RawCommand::Observe(raw) => raw.resolve().map(|_| ()),
        _ => Ok(()),
    };
    match refused {
        Ok(()) => panic!("{arguments}: was accepted"),
        Err(failure) => failure.line,
    }
}

#[test]
fn bad_input_gets_one_clear_line() {
    check(REFUSED);
}

/// Each of these command lines is refused in a line of these words.
pub fn check(refused: &[(&str, &str)]) {
    for (arguments, expected) in refused {
        let line = refusal(arguments);
        assert!(!line.contains('\n'), "{arguments}: {line}");
        match expected.strip_suffix('…') {
            Some(beginning) => assert!(line.starts_with(beginning), "{arguments}: {line}"),
            None => assert_eq!(&line, expected, "{arguments}"),
        }
    }
}

/// Arguments and the line; `…` stands for words of core's parsers, which have tests of their own.
const REFUSED: &[(&str, &str)] = &[
    ("observe --listen 127.0.0.1:0", "--port: is missing"),
    ("observe --port 0", "--port: '0' is not a whole number from 1 to 65535"),
    (
        "observe --port 80 --listen 0.0.0.0:9300",
        "--token: is needed at 0.0.0.0:9300, which others can reach: give the same secret here and \
         to knee run, sweep or overload with --token-file FILE or KNEE_TOKEN, or listen at \
         127.0.0.1",
    ),
    (
        "observe --port 80 --listen server:9300",
        "--listen: 'server:9300' is no ADDR:PORT, such as 127.0.0.1:9300 or [::1]:0",
    ),
    (
        "run http://127.0.0.1/ --observe server",
        "--observe: 'server' is no HOST:PORT, such as 192.168.1.5:9300, nor 'here' or 'none'",
    ),
    ("run http://127.0.0.1/ --observe-token x", "--observe: is missing"),
    (
        "run http://x/ --unix-socket /tmp/s --observe here",
        "--observe: a Unix socket has no SYNs to watch: leave it out",
    ),
    ("juggle", "juggle: unknown command; --help lists all"),
    ("rn", "rn: unknown command; --help lists all"),
    ("run", "URL: is missing: give one, such as http://127.0.0.1:8080/"),
    ("run --foobar", "--foobar: unknown; --help lists all"),
    ("run --ratee 5", "--ratee: unknown; did you mean --rate?"),
    (
        "run http://h/ http://h/",
        "'http://h/': one URL too many: --targets FILE reads several, one a line",
    ),
    (
        "run 10s http://h/",
        "'http://h/': one argument too many: '10s' is in the place of the URL; values follow their \
         options, as in -c 10 -d 10s",
    ),
    ("run http://h/ 10s", "'10s': one argument too many; values follow their options"),
    ("http://h/", "http://h/: unknown command; did you mean knee run http://h/?"),
    ("localhost:8080", "localhost:8080: unknown command; did you mean knee run localhost:8080?"),
    ("shop.yaml", "shop.yaml: unknown command; did you mean knee run shop.yaml?"),
    ("-c 10 http://h/", "-c: goes behind a command: knee run -c …"),
    ("--rate=5 http://h/", "--rate=5: goes behind a command: knee run --rate=5 …"),
    ("wrk -t2 http://h/", "wrk: unknown command; did you mean run?"),
    (
        "run curl -X POST http://h/",
        "curl: a command line of curl goes behind '--': knee run -- curl …",
    ),
    ("run http://h/ -rate=50/1s", "-rate: names of more than one letter have two dashes: --rate"),
    ("run http://h/ -duration 5s", "-duration: names of more than one letter have two dashes:…"),
    ("run http://h/ -concurrency 5", "-concurrency: names of more than one letter have two…"),
    ("run http://h/ -q 50", "-q: unknown; did you mean --rate?"),
    ("run http://h/ -q", "-q: unknown; did you mean --quiet?"),
    (
        "run http://h/ -s post.lua",
        "-s: unknown; a scenario does what scripts do: knee scenario new…",
    ),
    ("run http://h/ --latency", "--latency: unknown; percentiles are always shown; leave it out"),
    ("run http://h/ --resolve h:80:x", "--resolve: 'h:80:x' is no rule for a name:…"),
    ("run http://h/ -d {\"a\":1}", "--duration: '{\\\"a\\\":1}' is not a duration:…"),
    (
        "run http://h/ -t 30s",
        "--threads: '30s' is not a whole number such as 100; for the duration…",
    ),
    ("run http://h/ -c 10s", "--connections: '10s' is not a whole number such as 100; for the…"),
    ("run http://h/ --json-body @/nonexistent", "--json-body: /nonexistent: cannot be read: …"),
    ("run http://h/ --data-binary @/nonexistent", "--data-binary: /nonexistent: cannot be read: …"),
    (
        "run http://h/ -R 1000000000",
        "--rate: 1000000000/s is more than this machine can start: at most 20000000/s",
    ),
    (
        "run http://h/ --arrival ramp(1,1000M)",
        "--arrival: 1000000000/s is more than this machine can start: at most 20000000/s",
    ),
    (
        "recover http://h/ -R 1000M --trigger 2x",
        "--rate: 1000000000/s is more than this machine can start: at most 20000000/s",
    ),
    (
        "run https://h/ --http2 -c 1 --vusers 4000000000",
        "--vusers: 4000000000 users are too many: at most 1000000",
    ),
    (
        "run urls.txt",
        "urls.txt: is a file: 'knee run --targets FILE' reads URLs from it, one a line",
    ),
    ("run script.js", "script.js: cannot be read: no such file"),
    ("run plan.jmx", "plan.jmx: is a plan of JMeter: 'knee import jmeter' makes a scenario of it"),
    (
        "sweep shop.har",
        "shop.har: is a browser's recording: 'knee import har' makes a scenario of it",
    ),
    ("run targets.csv", "targets.csv: is a table: …"),
    ("run access.log", "access.log: is a log: 'knee import log' makes a recording of it,…"),
    ("run post.lua", "post.lua: is a script of wrk: a scenario does its work; …"),
    ("run /etc/hostname", "/etc/hostname: is a file: expected a URL, or a scenario FILE.yaml"),
    (
        "compare http://a/ http://b/",
        "compare: two URLs are compared under load with --live: knee compare --live A B",
    ),
    ("run http://h/ --retries 0", "--retries: '0' is none: leave it out, or give 1 to 100"),
    ("run http://h/ --retries 101", "--retries: '101' is too many: at most 100"),
    ("run http://h/ --backoff 1s", "--backoff: needs --retries, such as 3"),
    ("sweep http://h/ --retry-on 5xx", "--retry-on: needs --retries, such as 3"),
    ("run http://h/ --retries 1 --backoff exp(1s)", "--backoff: 'exp(1s)' lacks its longest…"),
    ("run http://h/ --retries 1 --retry-budget 10", "--retry-budget: '10' is no budget:…"),
    ("run http://h/ --retries 1 --retry-on oops", "--retry-on: 'oops' is no failure to retry:…"),
    ("recover http://h/", "--rate: is missing"),
    (
        "recover http://h/ -R 100 --for forever",
        "--for: forever needs a load that stays: give --trigger, such as 2x",
    ),
    ("recover http://h/ -R 100 --for never --trigger 2x", "--for: 'never' is not a duration:…"),
    ("recover http://h/ -R 100 --trigger-max 80", "--trigger-max: is not above the base load of…"),
    (
        "recover http://h/ -R 100 --trigger-max 3x --trigger 2x",
        "--trigger-max and --trigger exclude each other: leave one out",
    ),
    ("recover http://h/ -R 100 --hysteresis 0", "--hysteresis: '0' is no time at all:…"),
    ("recover http://h/ -R 100 --trigger 50", "--trigger: is not above the base load of 100/s"),
    ("recover http://h/ -R 100 --trigger 1x", "--trigger: '1x' is no multiple above 1:…"),
    (
        "recover http://h/ -R 100 --trigger 3x --retries 3",
        "--retries: users who retry need a time after which they do: give --timeout, such as 500ms",
    ),
    ("run http://h/ --rate", "--rate: a value is missing"),
    ("run http://h/ --rate 0", "--rate: '0' would offer nothing:…"),
    ("run http://h/ --rate -5", "--rate: '-5' is not a rate:…"),
    ("run http://h/ --rate 1 --rate 2", "--rate: given more than once"),
    ("run http://h/ --rate fast", "--rate: 'fast' is not a rate:…"),
    (
        "run http://h/ --rate 5 --vusers 3",
        "--vusers: users make a closed loop, --rate an open one: leave one out",
    ),
    (
        "run http://h/ --rate 5 --think 1s",
        "--think: only virtual users pause: leave it or the rate out",
    ),
    ("run http://h/ --rate 5 --arrival weekly", "--arrival: 'weekly' is no arrival process:…"),
    (
        "run http://h/ --rate 5 --arrival ramp(1,2)",
        "--rate: 'ramp(1,2)' carries its own rate: leave one out",
    ),
    (
        "run http://h/ --arrival ramp(1,-2)",
        "--arrival: '-2' is not a rate: give operations per second above 0,…",
    ),
    (
        "run http://h/ --arrival ramp(1,2) -n 5",
        "--arrival: a ramp takes its length from --duration: give it too",
    ),
    (
        "run http://h/ --arrival poisson",
        "--arrival: needs a rate: give --rate, such as --rate 1000",
    ),
    (
        "run http://h/ --arrival trace(/nonexistent)",
        "--arrival: /nonexistent: cannot be read: No such file or directory (os error 2)",
    ),
    (
        "run http://h/ --max-in-flight 5",
        "--max-in-flight: only an open loop sheds: give --rate with it",
    ),
    ("run http://h/ --vusers 0", "--vusers: '0' is too few: at least 1"),
    ("run http://h/ --vusers 1,2", "--vusers: '1,2' is not a whole number such as 100"),
    (
        "run http://h/ --vusers 3 -c 3",
        "--connections: in HTTP/1.1 each virtual user has a connection of its own: leave it out",
    ),
    ("run http://h/ -c", "--connections: a value is missing"),
    ("run http://h/ -c many", "--connections: 'many' is not a whole number such as 100"),
    ("run http://h/ -n 0", "--requests: '0' is too few: at least 1"),
    ("run http://h/ -n -5", "--requests: '-5' is not a whole number such as 100"),
    ("run http://h/ -n 5 --warmup 1s", "--warmup: with -n every operation counts: leave one out"),
    (
        "run http://h/ -d 0",
        "--duration: '0' is no time at all: it takes more than 0, such as 500ms",
    ),
    ("run http://h/ -d -3s", "--duration: '-3s' is not a duration:…"),
    ("run http://h/ -d soon", "--duration: 'soon' is not a duration:…"),
    (
        "run http://h/ --timeout 0",
        "--timeout: '0' is no time at all: it takes more than 0, such as 500ms",
    ),
    ("run http://h/ --interval 1ms", "--interval: '1ms' is too short: at least 10ms"),
    (
        "run http://h/ --think 1s --cycle 1s",
        "--think and --cycle exclude each other: leave one out",
    ),
    ("run http://h/ --cycle often", "--cycle: 'often' is no law:…"),
    ("run http://h/ -t 0", "--threads: '0' is too few: at least 1"),
    ("run http://h/ --backend kqueue", "--backend: 'kqueue' is not one of auto, epoll, io_uring"),
    ("run http://h/ --wait doze", "--wait: 'doze' is not one of auto, hybrid, sleep, spin"),
    ("run http://h/ --seed x", "--seed: 'x' is not a whole number such as 100"),
    ("run http://h/ --quiet=yes", "--quiet: takes no value, but 'yes' was given"),
    (
        "run http://h/ --json /nonexistent/run.json",
        "--json: '/nonexistent/run.json' cannot be written: No such file or directory (os error 2)",
    ),
    ("run http://h/ --fail-if p99", "--fail-if: 'p99' compares nothing:…"),
    ("run dns://h/a..b", "URL: the name 'a..b' has an empty label: …"),
    ("run dns://h/a?type=AX", "URL: 'AX' is no type: give a name, …"),
    ("run http://h/ --edns 1232", "--edns: is of DNS: give dns://, dns+tcp:// or dns+tls://"),
    ("run dns://h/ -n 5", "URL: asks for no name: …"),
    ("run dns://h/a -b x", "--body: is of HTTP, and a query of DNS has none: leave it out"),
    ("run --targets urls.txt http://h/", "--targets: has the URLs of HTTP itself: …"),
    (
        "run --targets /nonexistent",
        "--targets: /nonexistent: cannot be read: No such file or directory (os error 2)",
    ),
    (
        "run http://h/ -b @/nonexistent",
        "--body: /nonexistent: cannot be read: No such file or directory (os error 2)",
    ),
    ("run http://h/ -H nonsense", "--header: 'nonsense' is no header:…"),
    ("run http://h/ --pick worst", "--pick: 'worst' is not one of in-order, random"),
    (
        "run ftp://127.0.0.1/",
        "URL: 'ftp://127.0.0.1/' has the scheme 'ftp': use http://, https://,…",
    ),
    (
        "run http://127.0.0.1:0/",
        "URL: 'http://127.0.0.1:0/' has the port '0': a port is 1 to 65535",
    ),
    (
        "run http://127.0.0.1:99999/",
        "URL: 'http://127.0.0.1:99999/' has the port '99999': a port is 1 to 65535",
    ),
    ("run http:///", "URL: 'http:///' has no host:…"),
    ("run http://h/ -m A,B", "--method: 'A,B' is no method:…"),
    ("run http://h/ -H Transfer-Encoding:x", "--header: Transfer-Encoding:…"),
    (
        "run http://h/ -c 3000",
        "--connections: 3000 connections need 3064 open files (64 are for knee \
         itself), and the limit is 1024: raise the limit (ulimit -n 3064), or ask \
         for at most 960",
    ),
    (
        "run http://h/ --vusers 3000",
        "--vusers: 3000 connections need 3064 open files (64 are for knee \
         itself), and the limit is 1024: raise the limit (ulimit -n 3064), or ask \
         for at most 960",
    ),
    (
        "sweep http://h/ --vusers 1,3000",
        "--vusers: 3000 connections need 3064 open files (64 are for knee \
         itself), and the limit is 1024: raise the limit (ulimit -n 3064), or ask \
         for at most 960",
    ),
    ("sweep http://h/ --vusers 1,0", "--vusers: '0' is too few: at least 1;…"),
    ("sweep http://h/ --vusers 1,,2", "--vusers: '' is not a whole number such as 100;…"),
    ("sweep http://h/ --axis time", "--axis: 'time' is not one of vusers, rate"),
    ("sweep http://h/ --rates 5", "--rates: needs --axis rate"),
    ("sweep http://h/ --arrival poisson", "--arrival: needs --axis rate"),
    (
        "sweep http://h/ -c 5",
        "--connections: in HTTP/1.1 each virtual user has a connection of its own: leave it out",
    ),
    ("sweep http://h/ --max-in-flight 5", "--max-in-flight: needs --axis rate"),
    ("sweep http://h/ --axis rate --vusers 3", "--vusers: with --axis rate the levels are --rates"),
    (
        "sweep http://h/ --axis rate --think 1s",
        "--think: only virtual users pause: leave out --axis rate",
    ),
    ("sweep http://h/ --axis rate --rates 5,0", "--rates: '0' would offer nothing:…"),
    (
        "sweep http://h/ --axis rate --arrival ramp(1,2)",
        "--arrival: the rate is what a sweep varies: not ramp, steps or trace",
    ),
    ("sweep http://h/ --bound p90", "--bound: `p90` has no `=`;…"),
    ("sweep http://h/ --bound p97=3ms", "--bound: `p97` is not a figure;…"),
    ("sweep http://h/ --bound p90=0ms", "--bound: a limit of 0 cannot be met;…"),
    ("sweep http://h/ --rate 5", "--rate: unknown; did you mean --rates?"),
    ("analyze run", "run: unknown command; --help lists all"),
    ("analyze sweep", "FILE: is missing"),
    ("report", "FILE.json: is missing"),
    ("serve smtp", "smtp: unknown command; --help lists all"),
    ("serve http --listen localhost:80", "--listen: \"localhost:80\" is no address to listen at:…"),
    ("serve http --size -1", "--size: '-1' is not a whole number such as 100"),
    ("serve http --workers 0", "--workers: '0' is too few: at least 1"),
    ("serve http --service soon", "--service: 'soon' is no law:…"),
    ("serve http --capacity 0", "--capacity: '0' would offer nothing:…"),
    (
        "serve http --capacity 5 --workers 2",
        "--capacity and --workers exclude each other: leave one out",
    ),
    ("serve http --accept late", "--accept: 'late' is not one of eager, per-worker"),
    ("serve http --backlog 0", "--backlog: '0' is too few: at least 1"),
    ("serve http --fault explode(1)", "--fault: \"explode(1)\" is no fault:…"),
    ("serve http --fault reset(2)", "--fault: \"2\" is no probability from 0 to 1"),
    (
        "serve http --arrivals /nonexistent/file",
        "--arrivals: '/nonexistent/file' cannot be written: No such file or directory (os error 2)",
    ),
];
