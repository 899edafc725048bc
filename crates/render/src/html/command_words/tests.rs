use super::*;

/// The next steps of all findings, with what is to be typed in them between angle brackets.
const STEPS: &str = "\
let the target settle and measure longer: <--warmup 2s --duration 8s>; if it still drifts, the \
target itself changes
measure longer: <--duration 60s>; if it persists, operations are lost or counted twice, please \
report it
give it more cores: <--threads 5> where as many are idle, or run it on another machine than the \
server; for response times, ask for less: a <--rate> below this
repeat on a quieter or larger machine, or offer less: a lower <--rate> or <--vusers>
wait more precisely: <--wait spin>, or use fewer users per core
see what the target answers to such a request: <curl -i URL>
offer less with a lower <--rate>, or permit more in flight: <--max-in-flight>
look at that moment in the target's log: did it restart, or run out of something? then repeat
read the failures by kind in `outcomes`; find the level where they begin: a lower <--vusers> or \
<--rate>
offer less: <--rate 800>, or find the highest rate that is served: <knee sweep --axis rate>
look at that moment in the server's log (collection of garbage, a checkpoint, a lock), and repeat \
to see whether it is periodic: <--duration 60s>
make one request work first: <knee run URL --vusers 1 -n 1>
run it again to its end
drive it with about so many: <--vusers 12>
find what fails between the two: <--vusers 1,64,91,128>
keep the load at or below 64 users, and look for what more users contend for (locks, memory, \
retries)
measure between them: <--vusers 1,10,13,17,22,28>
measure each level for longer: <--duration 30s>, on a quieter host
let the target warm up before it is measured: <--warmup 10s>
ask for what it can meet, such as <--bound p90=10.5ms>
let the levels be found: <--vusers auto>
let the rates be found: <--axis rate> (without <--rates>)
start at 1: <--vusers 1,3,10> (or <--vusers auto>)
start lower: <--axis rate --rates 10,30>
go on: <--vusers 1,64,128> (or <--vusers auto>)
find what fills it: <knee udp ADDR --explain>; a larger buffer covers pauses, but does not help a \
service that is too slow: <knee serve udp --rcvbuf 425984> (above net.core.rmem_max it needs \
CAP_NET_ADMIN)
repeat it alone on a quiet host; if it persists, please report it
look at the counters of both hosts and of the devices between them: <nstat -az>, \
<ethtool -S DEVICE>, <tc -s qdisc>
find out why it ended, start it again (<knee serve udp>), and repeat
offer less: <--rate 800>, or give it less work: <knee serve udp --service>
offer less: <--rate 900>, or give the generator more cores: <--threads>
look for parallel paths or queues (ECMP, bonding, several receive queues)
look for loops and mirrored ports on the path; tc -s qdisc shows a netem that duplicates
keep other programs off the service's processor (<knee serve udp --cpu N>, clients on others), and \
find what interrupts it: <knee udp ADDR --explain>
repeat on a quiet host or in a network namespace of its own
nobody listens at that port: correct the address, or start the service there: <knee serve udp>
the datagram is larger than the path carries in one piece: use a smaller <--size> (1,472 \
over Ethernet with IPv4)
no route leads to that host: check the address and the routes: <ip route get ADDRESS>
this host forbids it: look at its firewall: <nft list ruleset>
this host's queues are full: offer less with a lower <--rate>, or look at them: <tc -s qdisc>
look up that error in udp(7) and send(2)
lower the rate with <--rate>, or look at the queues of this host's devices: <tc -s qdisc>
find out why the next hop's address is not resolved: <ip neigh>; is that host up?
look at the device's counters: <ip -s link>, <ethtool -S DEVICE>
raise net.core.netdev_max_backlog, or lower the rate: <--rate>
raise net.ipv4.udp_mem, or close other sockets: ss -uam
wait until times of a schedule, not for durations; see the difference: <knee throttle --rate 1000>
in a program that sleeps: prctl(PR_SET_TIMERSLACK, 1); from outside: write 1 to \
/proc/PID/timerslack_ns
repeat on a quieter or dedicated machine; until then use the medians
where you may: <sysctl kernel.io_uring_disabled=0>, and a container profile that permits \
io_uring_setup(2)
ask for less: <--rate 900>, or shorten the operation
repeat on a quieter machine, or on an idle core: <taskset -c 1 knee throttle> …; or ask for \
less: a lower <--rate>
use the throttle: knee run does, and in a program knee_load::throttle
give the bottleneck a queue that stays short, at a rate a little below the link's: <tc qdisc \
replace dev IF root cake bandwidth RATE>, or fq_codel behind a shaper; see what another sender \
would do: <--cc cubic,bbr>
take the figures of cubic for the path, and shorten its queue (cake or fq_codel at the \
bottleneck): <--cc cubic>
compare: <--cc cubic,bbr>
see whether it lasts: <--scenarios 2/0 -d 60s>; a queue per flow at the bottleneck shares evenly: \
cake or fq_codel
find out who ended it (a firewall's or translator's limit, a service that was stopped), then \
repeat: <--scenarios 1/31>
give them longer, or be content with less: <--scenarios 1/0,0/1 --scenario-limit 4s>, or \
<--settle 10%>
repeat on a quieter or larger machine, or with fewer flows: <--scenarios 1/1,4/4>
see whether `<knee serve latency>` still runs there and nobody else uses it, and try one scenario: \
<knee latency 192.0.2.1:4807 --scenarios 1/0>
more source addresses: <--source 127.0.0.2-127.0.0.20> on loopback, else addresses of this host, \
or no TIME_WAIT: <--close rst>; or more ports: <sysctl -w \
net.ipv4.ip_local_port_range=\"1024 65535\" net.ipv4.tcp_tw_reuse=1>
raise the limit (<ulimit -Hn> and <-n>), or use fewer descriptors with a shorter T: \
<--descriptors>, <--connect-timeout>
raise the limit (<ulimit -Hn> and <-n>), or halve T: the same descriptors then offer twice as much \
(<--connect-timeout>)
raise the hard limit: <ulimit -Hn 4160>; or ask for less with a shorter T: <--descriptors>, \
<--connect-timeout>
take levels beyond that rate as “at least”; add workers (<-t>) or a second host, and see with one \
process against two which of them is the limit
have the server to yourself, and see with `<knee observe --port P>` on its host who else connects
keep T below it: <--connect-timeout 500ms>
see whether the server is stuck: its accept queue is Recv-Q in `<ss -ltn>`
on the server's host: <sysctl net.ipv4.tcp_abort_on_overflow>, and `<ss -ltn>` for the listening \
socket
a longer queue on the server's host: <sysctl -w net.ipv4.tcp_max_syn_backlog=4096>, \
net.core.somaxconn=4096, and a larger backlog in listen(2)
let the server shed what it cannot serve in time, or accept no more than it can: a shorter backlog \
costs nothing here
before the server starts: <sysctl -w net.core.somaxconn=4096>
<sysctl -w net.ipv4.tcp_max_syn_backlog=4096>
look again when it is over
run it again for the whole answer";

#[test]
fn of_all_next_steps_only_commands_and_options_are_to_be_typed() {
    for marked in STEPS.lines() {
        assert_eq!(marked_again(marked), marked.replace('`', ""));
    }
}

/// The sentence with brackets around what is found in it.
fn marked_again(marked: &str) -> String {
    let pieces = pieces(&marked.replace(['<', '>'], ""));
    let marked = pieces.iter().map(
        |(is_code, text)| {
            if *is_code { format!("<{text}>") } else { text.clone() }
        },
    );
    marked.collect()
}

#[test]
fn other_sentences_are_told_apart_too() {
    for marked in [
        "",
        "look at the server",
        "<knee latency localhost --scenarios 1/0>",
        "a knee sweep lasts, knee run does not",
        "the option -- ends them, - is a name, -5 is a number",
        "in short: <-d 5s -c 4>, and no more",
        "it is curl: curl",
    ] {
        assert_eq!(marked_again(marked), marked);
    }
}

/// Nothing is lost or added but the backticks.
#[test]
fn the_pieces_are_the_sentence() {
    let sentence = "a  b (--rate 5), `x y` and knee";
    let whole: String = pieces(sentence).into_iter().map(|(_, t)| t).collect();
    assert_eq!(whole, sentence.replace('`', ""));
}
