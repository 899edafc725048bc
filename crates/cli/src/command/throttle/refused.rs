//! Bad input to `knee throttle` and to what it asks.

use crate::command::tests::refused::check;

#[test]
fn bad_input_gets_one_clear_line() {
    check(REFUSED);
}

const REFUSED: &[(&str, &str)] = &[
    ("throttle now", "'now': one argument too many"),
    (
        "throttle --methods sleep,doze",
        "--methods: 'doze' is no way to wait: there are sleep, sleep-min-slack,…",
    ),
    (
        "throttle --methods naive-sleep",
        "--methods: 'naive-sleep' is no way to wait:…",
    ),
    (
        "throttle --methods sleep,sleep",
        "--methods: 'sleep' is there twice: once is enough",
    ),
    (
        "throttle --methods sleep,",
        "--methods: '' is no way to wait:…",
    ),
    (
        "throttle --delays 1ms,soon",
        "--delays: 'soon' is not a duration:…",
    ),
    (
        "throttle --delays -5ms",
        "--delays: '-5ms' is not a duration:…",
    ),
    (
        "throttle --delays 0",
        "--delays: '0' is no time at all: it takes more than 0, such as 500ms",
    ),
    (
        "throttle --delays 11s",
        "--delays: '11s' is too long: at most 10s, as each row makes 5 waits or more",
    ),
    (
        "throttle --delays 1ms,1000us",
        "--delays: '1000us' is there twice: once is enough",
    ),
    (
        "throttle -d 0",
        "--duration: '0' is no time at all: it takes more than 0, such as 500ms",
    ),
    ("throttle --op http", "--op: 'http' is not one of udp, qotd"),
    (
        "throttle --to 127.0.0.1:17",
        "--to: needs an operation that is sent there: give --op udp or --op qotd",
    ),
    (
        "throttle --op udp --to localhost",
        "--to: 'localhost' is no address to send to: give ADDR:PORT, such as 127.0.0.1:1717 or \
         [::1]:17",
    ),
    (
        "throttle --op udp --to 127.0.0.1:0",
        "--to: '127.0.0.1:0' has the port 0: give ADDR:PORT,…",
    ),
    (
        "throttle --policy skip",
        "--policy: needs a rate to hold: give --rate, such as --rate 1000",
    ),
    (
        "throttle --min-wait 1ms",
        "--min-wait: needs a rate to hold: give --rate, such as --rate 1000",
    ),
    (
        "throttle --arrival poisson",
        "--arrival: needs a rate to hold: give --rate, such as --rate 1000",
    ),
    (
        "throttle --op-time 1ms",
        "--op-time: needs a rate to hold: give --rate, such as --rate 1000",
    ),
    (
        "throttle --rate 5 --delays 1ms",
        "--delays: with --rate the rate is what is asked for: leave one out",
    ),
    (
        "throttle --rate 5 --op udp --op-time 1ms",
        "--op and --op-time exclude each other: leave one out",
    ),
    ("throttle --rate 0", "--rate: '0' would offer nothing:…"),
    (
        "throttle --rate 5 --methods sleep",
        "--methods: 'sleep' is no way to hold a rate: there are naive-sleep,…",
    ),
    (
        "throttle --rate 5 --policy burst(0)",
        "--policy: 'burst(0)' is no burst:…",
    ),
    (
        "throttle --rate 5 --policy spread(1)",
        "--policy: 'spread(1)' never catches up:…",
    ),
    (
        "throttle --rate 5 --policy forgive",
        "--policy: 'forgive' is no policy:…",
    ),
    (
        "throttle --rate 5 --arrival weekly",
        "--arrival: 'weekly' is no arrival process:…",
    ),
    (
        "throttle --rate 5 --arrival ramp(1,2)",
        "--arrival: 'ramp(1,2)' carries its own rate, but --rate is held here: give constant, \
         poisson, uniform or burst(a,b,period)",
    ),
    (
        "throttle --rate 5 --op-time long",
        "--op-time: 'long' is not a duration:…",
    ),
    (
        "throttle --rate 5 --fail-if p99>2ms",
        "--fail-if: 'p99>2ms' needs a target that responds: here there is only 'invalid'",
    ),
    (
        "serve qotd --listen 1717",
        "--listen: '1717' is no address to listen at: give ADDR:PORT such as 127.0.0.1:1717",
    ),
    (
        "serve qotd --allow everyone",
        "--allow: 'everyone' is no address to allow: give one such as 192.0.2.7 or 2001:db8::7",
    ),
    (
        "serve qotd --quote é",
        "--quote: a quote has printable ASCII…",
    ),
];
