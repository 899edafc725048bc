use super::super::hpack::Decoder;
use super::*;
use knee_load::spec::{Pick, Url, parse_header};

fn requests(paths: &[String], headers: &[&str]) -> Requests {
    let url = |path: &String| Url::parse(&format!("http://h{path}")).unwrap();
    let headers: Vec<_> = headers.iter().map(|h| parse_header(h).unwrap()).collect();
    let request =
        |path| HttpRequest::new("GET", &url(path), headers.clone(), Vec::new(), 1).unwrap();
    let all = paths.iter().map(request).collect();
    let endpoint = url(&paths[0]).endpoint().clone();
    Requests::new(&HttpTarget::new(endpoint, all, Pick::InOrder, true).unwrap())
}

/// A connection and the decoder of its peer.
struct Peer {
    blocks: Blocks,
    decoder: Decoder,
}

impl Peer {
    fn new(requests: &Requests) -> Peer {
        Peer { blocks: Blocks::new(requests), decoder: Decoder::default() }
    }

    fn set_limit(&mut self, bytes: u32, requests: &Requests) {
        self.blocks.set_limit(bytes, requests);
        self.decoder.set_limit(bytes as usize);
    }

    /// The path that the peer reads from the block of a request, and how long the block is.
    fn path(&mut self, request: usize, requests: &Requests) -> (String, usize) {
        let (mut block, mut path) = (Vec::new(), String::new());
        self.blocks.put(request, requests, &mut block);
        let mut each = |name: &[u8], value: &[u8]| {
            if name == b":path" {
                path = String::from_utf8(value.to_vec()).unwrap();
            }
        };
        self.decoder.decode(&block, usize::MAX, &mut each).unwrap();
        (path, block.len())
    }
}

fn paths(count: usize, length: usize) -> Vec<String> {
    (0..count).map(|n| format!("/{n:05}{}", "x".repeat(length))).collect()
}

#[test]
fn one_request_is_a_few_bytes_from_the_second_on() {
    let paths = paths(1, 20);
    let requests = requests(&paths, &["X-Token: 0123456789"]);
    let mut peer = Peer::new(&requests);
    assert!(peer.path(0, &requests).1 > 40);
    for _ in 0..3 {
        assert_eq!(peer.path(0, &requests), (paths[0].clone(), 7));
    }
}

#[test]
fn what_does_not_fit_goes_in_full_and_the_rest_by_index() {
    let paths = paths(2000, 100);
    let requests = requests(&paths, &[]);
    let mut peer = Peer::new(&requests);
    for round in 0..3 {
        for (n, path) in paths.iter().enumerate() {
            let (got, length) = peer.path(n, &requests);
            assert_eq!(&got, path, "round {round}");
            assert!(round + n == 0 || length <= path.len() + 10, "{length}");
        }
    }
    let short = (0..paths.len()).filter(|n| peer.path(*n, &requests).1 < 10).count();
    assert!((20..40).contains(&short), "{short} paths are in the table");
}

/// The limit of the peer changes at any time, several times between two requests too.
#[test]
fn the_peers_table_may_change() {
    let paths = paths(40, 60);
    let requests = requests(&paths, &["A: b", "C: d"]);
    let mut peer = Peer::new(&requests);
    let mut state = 1_u32;
    let mut next = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    for _ in 0..5000 {
        for _ in 0..next(4).saturating_sub(1) {
            let limit = [0, 31, 100, 500, 2000, 4096, 10_000][next(7) as usize];
            peer.set_limit(limit, &requests);
        }
        for _ in 0..next(10) {
            let n = next(40) as usize;
            assert_eq!(peer.path(n, &requests).0, paths[n]);
        }
    }
}

#[test]
fn a_larger_limit_changes_nothing() {
    let paths = paths(1, 5);
    let requests = requests(&paths, &[]);
    let mut peer = Peer::new(&requests);
    peer.path(0, &requests);
    let before = peer.path(0, &requests);
    peer.set_limit(1 << 20, &requests);
    assert_eq!(peer.path(0, &requests), before);
}
