//! Bad input to `knee overload`.

use crate::command::tests::refused::check;

#[test]
fn bad_input_gets_one_clear_line() {
    check(REFUSED);
}

const REFUSED: &[(&str, &str)] = &[
    (
        "overload http://h/ --simple 0",
        "--simple: '0' is too few: at least 1; levels are 'auto' or a list such as 1,10,50",
    ),
    (
        "overload http://h/ --descriptors 64,many",
        "--descriptors: 'many' is not a whole number such as 100; levels are 'auto' or a list \
         such as 1,10,50",
    ),
    (
        "overload http://h/ --descriptors 961",
        "--descriptors: 961 connections need 1025 open files (64 are for knee \
         itself), and the limit is 1024: raise the limit (ulimit -n 1025), or ask \
         for at most 960",
    ),
    (
        "overload http://h/ --simple 5000",
        "--simple: 5000 connections need 5064 open…",
    ),
    (
        "overload http://h/ --sclients 0",
        "--sclients: '0' is too few: at least 1",
    ),
    (
        "overload http://h/ --simple 3 --sclients 2",
        "--sclients: they need --descriptors to share",
    ),
    (
        "overload http://h/ --rate 5 --sclients 2",
        "--sclients: with a rate the schedule takes their place: leave one out",
    ),
    (
        "overload http://h/ --rate 5 --simple 2",
        "--simple: simple clients keep no schedule: leave them or the rate out",
    ),
    (
        "overload http://h/ --rate 5 --descriptors 1,2",
        "--descriptors: with a rate they are the most in flight: give one number",
    ),
    (
        "overload http://h/ --arrival poisson",
        "--arrival: needs a rate: give --rate, such as --rate 1000",
    ),
    (
        "overload http://h/ --rate 5 --arrival ramp(1,2)",
        "--rate: the arrivals carry their own: leave one out",
    ),
    (
        "overload http://h/ --rate 5 --arrival burst(novel)",
        "--arrival: 'burst(novel)' has the wrong number of arguments:…",
    ),
    (
        "overload http://h/ --connect-timeout 0",
        "--connect-timeout: '0' is no time at all:…",
    ),
    (
        "overload http://h/ --timeout 500ms",
        "--timeout: must be longer than --connect-timeout, as the response comes after the \
         connect",
    ),
    (
        "overload http://h/ --close gently",
        "--close: 'gently' is not one of fin, rst",
    ),
    (
        "overload http://h/ --source eth0",
        "--source: 'eth0' is no IP address of this host, such as 127.0.0.2, nor a range such as \
         127.0.0.2-127.0.0.20",
    ),
    (
        "overload http://h/ --source 10.0.0.9-10.0.0.2",
        "--source: '10.0.0.9-10.0.0.2' has its ends the wrong way round",
    ),
    (
        "overload http://h/ --unix-socket /tmp/s",
        "--unix-socket: a Unix socket has no SYNs and no T: give the URL of a TCP port",
    ),
    (
        "overload http://h/ --observe server",
        "--observe: 'server' is no HOST:PORT,…",
    ),
    (
        "overload http://h/ -d 0",
        "--duration: '0' is no time at all:…",
    ),
    ("overload http://h:99999/", "URL: …"),
];
