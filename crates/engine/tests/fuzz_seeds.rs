//! The fuzzers' checks over their seeds and a few thousand mutations of them, so that neither the
//! checks nor the seeds rot between fuzzing runs. The same numbers come up each time.

#[path = "../../../fuzz/src/lib.rs"]
mod checks;

use knee_core::rng::{self, Rng};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

#[test]
fn http1_request() {
    run("http1_request", 4_000, checks::http1_request::check);
}

#[test]
fn http1_response() {
    run("http1_response", 4_000, checks::http1_response::check);
}

#[test]
fn sweep_csv() {
    run("sweep_csv", 1_000, checks::sweep_csv::check);
}

#[test]
fn targets_file() {
    run("targets_file", 4_000, checks::targets_file::check);
}

#[test]
fn url() {
    run("url", 10_000, checks::url::check);
}

fn run(target: &str, mutations: usize, check: fn(&[u8])) {
    let seeds = seeds(target);
    assert!(seeds.len() >= 12, "{target} has only {} seeds", seeds.len());
    let shown = |data: &[u8]| {
        let panicked = panic::catch_unwind(AssertUnwindSafe(|| check(data))).is_err();
        assert!(!panicked, "{target} fails on b\"{}\"", data.escape_ascii());
    };
    seeds.iter().for_each(|seed| shown(seed));
    let mut rng = rng::stream(0xF022, 0);
    for _ in 0..mutations {
        shown(&mutated(&seeds, &mut rng));
    }
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(target);
    let entries = folder.read_dir().expect("the seeds are in the repository");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).expect("a seed is a file"))
        .collect()
}

/// A seed with one to four changes: a byte set, removed or put in, a stretch doubled or taken from
/// another seed, the end cut off.
fn mutated(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    const TELLING: &[u8] = b"\r\n\r\n\0 \t:;,/?#@[]%.=-+0123456789afxXFh\x7f\x80\xff";
    let mut data = seeds[below(seeds.len(), rng)].clone();
    for _ in 0..=below(4, rng) {
        let at = below(data.len() + 1, rng);
        let byte = TELLING[below(TELLING.len(), rng)];
        match below(6, rng) {
            0 if at < data.len() => data[at] = byte,
            1 if at < data.len() => drop(data.remove(at)),
            2 => data.insert(at, byte),
            3 => {
                let doubled = stretch(&data, rng);
                data.splice(at..at, doubled);
            }
            4 => {
                let other = stretch(&seeds[below(seeds.len(), rng)], rng);
                data.splice(at..at, other);
            }
            _ if below(4, rng) == 0 => data.truncate(at),
            _ => {}
        }
    }
    data
}

fn stretch(data: &[u8], rng: &mut Rng) -> Vec<u8> {
    let from = below(data.len() + 1, rng);
    let to = from + below(data.len() - from + 1, rng);
    data[from..to].to_vec()
}

fn below(n: usize, rng: &mut Rng) -> usize {
    (rng::unit(rng) * n as f64) as usize
}
