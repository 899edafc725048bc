//! Many virtual users: as many connections, and little memory for each.

use crate::support::{KneeServer, measured};
use serde_json::Value;

const FEW: u64 = 10;
const MANY: u64 = 2_000;

fn trial(server: &KneeServer, vusers: u64) -> Value {
    let (url, vusers) = (server.url(), vusers.to_string());
    let report = measured(&["run", &url, "--vusers", &vusers, "-n", "6000", "-t", "1"]);
    report["trials"][0].clone()
}

#[test]
fn two_thousand_users_hold_as_many_connections_in_little_memory() {
    let server = KneeServer::start(&[]);
    let (few, many) = (trial(&server, FEW), trial(&server, MANY));
    for trial in [&few, &many] {
        assert_eq!(trial["outcomes"]["ok"], 6_000, "{:#}", trial["outcomes"]);
    }
    assert_eq!(many["connections_max"], MANY);
    // Beside the users' there is the one connection that looked whether anyone is there.
    let open = server.served()["connections_max"].as_u64().unwrap();
    assert!((MANY..=MANY + 1).contains(&open), "{open}");
    let rss = |trial: &Value| trial["generator"]["peak_rss_bytes"].as_u64().unwrap();
    let each = rss(&many).saturating_sub(rss(&few)) / (MANY - FEW);
    println!("{each} bytes per connection");
    assert!(each < 4_096, "{each} bytes per connection");
}
