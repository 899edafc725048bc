//! The turn of addresses among connections.

use super::*;
use std::net::TcpListener;

fn book(used: &[&str], from: &[&str]) -> Arc<AddressBook> {
    let raw = |text: &&str| RawAddress::from(text.parse::<SocketAddr>().unwrap());
    let mut book = AddressBook::of(raw(&used[0]));
    book.used = Mutex::new(used.iter().map(raw).collect());
    book.sources = from.iter().map(raw).collect();
    Arc::new(book)
}

/// Where the next connections go and come from.
fn taken(turn: &mut AddressTurn, count: usize) -> Vec<String> {
    let text = |raw: &RawAddress| raw.decode().unwrap().to_string();
    let one = |_| {
        let next = turn.take();
        let from = next.from.map_or(String::new(), |from| format!("{} ", text(from)));
        from + &text(next.to)
    };
    (0..count).map(one).collect()
}

#[test]
fn connections_go_round_the_addresses() {
    type Row = (&'static [&'static str], &'static [&'static str], u32, &'static [&'static str]);
    let rows: &[Row] = &[
        (&["1.1.1.1:1"], &[], 0, &["1.1.1.1:1", "1.1.1.1:1"]),
        (&["1.1.1.1:1", "1.1.1.2:1"], &[], 0, &["1.1.1.1:1", "1.1.1.2:1", "1.1.1.1:1"]),
        (&["1.1.1.1:1", "1.1.1.2:1"], &[], 1, &["1.1.1.2:1", "1.1.1.1:1", "1.1.1.2:1"]),
        (&["1.1.1.1:1", "1.1.1.2:1"], &[], 2, &["1.1.1.1:1", "1.1.1.2:1"]),
        (&["[::1]:1", "1.1.1.2:1"], &[], 0, &["[::1]:1", "1.1.1.2:1", "[::1]:1"]),
        (&["1.1.1.1:1"], &["2.2.2.2:0"], 0, &["2.2.2.2:0 1.1.1.1:1", "2.2.2.2:0 1.1.1.1:1"]),
        (
            &["1.1.1.1:1"],
            &["2.2.2.2:0", "2.2.2.3:0"],
            0,
            &["2.2.2.2:0 1.1.1.1:1", "2.2.2.3:0 1.1.1.1:1", "2.2.2.2:0 1.1.1.1:1"],
        ),
        (
            &["[::1]:1", "1.1.1.1:1"],
            &["2.2.2.2:0", "[::2]:0"],
            0,
            &["[::2]:0 [::1]:1", "2.2.2.2:0 1.1.1.1:1", "[::2]:0 [::1]:1"],
        ),
    ];
    for (used, from, place, expected) in rows {
        let mut turn = AddressTurn::new(&book(used, from), *place);
        assert_eq!(taken(&mut turn, expected.len()), *expected, "{used:?} {from:?} {place}");
    }
}

#[test]
fn new_addresses_are_taken_and_old_counts_stay() {
    let book = book(&["1.1.1.1:1", "1.1.1.2:1"], &[]);
    let mut turn = AddressTurn::new(&book, 0);
    assert_eq!(taken(&mut turn, 3), ["1.1.1.1:1", "1.1.1.2:1", "1.1.1.1:1"]);
    turn.answered(0);
    book.change(["1.1.1.3:1", "1.1.1.2:1"].map(|a| a.parse().unwrap()).to_vec());
    assert_eq!(taken(&mut turn, 3), ["1.1.1.3:1", "1.1.1.2:1", "1.1.1.3:1"]);
    turn.answered(2);
    let counts = turn.uses().into_iter().map(|a| (a.address, a.opened, a.answered));
    let expected = [("1.1.1.1:1", 2, 1), ("1.1.1.2:1", 2, 0), ("1.1.1.3:1", 2, 1)];
    assert_eq!(Vec::from_iter(counts), expected.map(|(a, b, c)| (a.to_owned(), b, c)));
}

/// The place of a target whose name has these addresses.
fn place(port: u16, addresses: &str) -> HostAndPort {
    let mut route = Route::default();
    route.give(&format!("name.test:{port}:{addresses}")).unwrap();
    HostAndPort {
        host: "name.test".to_owned(),
        port,
        kind: SocketKind::Stream,
        route,
        proxy: String::new(),
        behind: None,
    }
}

#[test]
fn addresses_that_refuse_are_left_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let patience = Duration::from_secs(60);
    let found = place(port, "127.0.0.2,127.0.0.1,127.0.0.3").find(patience, false).unwrap();
    assert_eq!(found.used, [SocketAddr::from(([127, 0, 0, 1], port))]);
    assert_eq!(found.left_out.len(), 2);
    assert_eq!(found.left_out[0].1, "connection refused");
    let nobody = place(port, "127.0.0.2,127.0.0.3").find(patience, false).unwrap_err();
    let told = format!(
        "cannot connect to 127.0.0.2:{port}: connection refused; 127.0.0.3:{port}: connection \
         refused"
    );
    assert_eq!(nobody.to_string(), told);
    let mut proxied = place(port, "127.0.0.2");
    proxied.proxy = "the proxy p".to_owned();
    let nobody = proxied.find(patience, false).unwrap_err().to_string();
    assert!(nobody.starts_with("the proxy p: cannot connect to 127.0.0.2"), "{nobody}");
}

#[test]
fn sources_decide_the_family() {
    let mut both = place(1, "::1,127.0.0.1");
    let patience = Duration::from_secs(60);
    let found = |place: &HostAndPort| {
        let all = place.addresses(patience)?;
        Ok::<_, RunError>(all.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(found(&both).unwrap(), ["[::1]:1", "127.0.0.1:1"]);
    both.route.sources = vec!["127.0.0.9".to_owned()];
    assert_eq!(found(&both).unwrap(), ["127.0.0.1:1"]);
    let mut only_v6 = place(1, "::1");
    only_v6.route.sources = both.route.sources;
    let wrong = found(&only_v6).unwrap_err().to_string();
    assert!(wrong.contains("127.0.0.9") && wrong.contains("another kind"), "{wrong}");
}
