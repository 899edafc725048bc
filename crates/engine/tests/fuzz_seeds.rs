//! The fuzzers' checks over their seeds and a few thousand mutations of them, so that neither the
//! checks nor the seeds rot between fuzzing runs. The same numbers come up each time.

#[path = "../../../fuzz/src/lib.rs"]
mod checks;

use knee_load::rng::{self, Rng};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

#[test]
fn access_log() {
    run("access_log", 4_000, checks::access_log::check);
}

#[test]
fn content_coding() {
    run("content_coding", 2_000, checks::content_coding::check);
}

#[test]
fn cookie_date() {
    run("cookie_date", 10_000, checks::cookie_date::check);
}

#[test]
fn data_segment() {
    run("data_segment", 10_000, checks::data_segment::check);
}

#[test]
fn latency_control() {
    run("latency_control", 4_000, checks::latency_control::check);
}

#[test]
fn hpack() {
    run("hpack", 10_000, checks::hpack::check);
}

#[test]
fn http1_request() {
    run("http1_request", 4_000, checks::http1_request::check);
}

#[test]
fn messages() {
    run("messages", 4_000, checks::messages::check);
}

#[test]
fn http1_response() {
    run("http1_response", 4_000, checks::http1_response::check);
}

#[test]
fn http2_client() {
    run("http2_client", 2_000, checks::http2_client::check);
}

#[test]
fn http3() {
    run("http3", 10_000, checks::http3::check);
}

#[test]
fn import_file() {
    run("import_file", 4_000, checks::import_file::check);
}

#[test]
fn latency_text() {
    run("latency_text", 4_000, checks::latency_text::check);
}

#[test]
fn observe_control() {
    run("observe_control", 4_000, checks::observe_control::check);
}

#[test]
fn scenario_file() {
    run("scenario_file", 4_000, checks::scenario_file::check);
}

#[test]
fn script_file() {
    run("script_file", 1_000, checks::script_file::check);
}

#[test]
fn stream_api() {
    run("stream_api", 4_000, checks::stream_api::check);
}

#[test]
fn sweep_csv() {
    run("sweep_csv", 1_000, checks::sweep_csv::check);
}

#[test]
fn syn_segment() {
    run("syn_segment", 10_000, checks::syn_segment::check);
}

#[test]
fn targets_file() {
    run("targets_file", 4_000, checks::targets_file::check);
}

#[test]
fn udp_control() {
    run("udp_control", 4_000, checks::udp_control::check);
}

#[test]
fn url() {
    run("url", 10_000, checks::url::check);
}

#[test]
fn dns() {
    run("dns", 3_000, checks::dns::check);
}

#[test]
fn grpc_answer() {
    run("grpc_answer", 4_000, checks::grpc_answer::check);
}

#[test]
fn dns_names() {
    run("dns_names", 10_000, checks::dns_names::check);
}

#[test]
fn grpc_types() {
    run("grpc_types", 2_000, checks::grpc_types::check);
}

#[test]
fn websocket() {
    run("websocket", 3_000, checks::websocket::check);
}

/// The targets themselves are built by cargo-fuzz alone, so what they consist of is compared here.
#[test]
fn every_target_is_whole() {
    let read = |path: &str| std::fs::read_to_string(fuzz(path)).expect("a file of the fuzzers");
    let (manifest, readme, checks) = (read("Cargo.toml"), read("README.md"), read("src/lib.rs"));
    let here = include_str!("fuzz_seeds.rs");
    let files = fuzz("fuzz_targets").read_dir().expect("the targets");
    let names = files.map(|file| file.expect("an entry").path());
    let names = names.map(|path| path.file_stem().expect("a name").display().to_string());
    let mut count = 0;
    for name in names {
        count += 1;
        let target = read(&format!("fuzz_targets/{name}.rs"));
        let call = format!("fuzz_target!(|data: &[u8]| knee_fuzz::{name}::check(data));");
        assert!(target.contains(&call), "{name}: {target}");
        let bin = format!("[[bin]]\nname = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n");
        assert!(manifest.contains(&bin), "{name} in Cargo.toml");
        assert!(readme.contains(&format!("| `{name}` |")), "{name} in README.md");
        assert!(here.contains(&format!("run(\"{name}\",")), "{name} among these tests");
        assert!(fuzz("seeds").join(&name).is_dir(), "seeds of {name}");
    }
    assert_eq!(manifest.matches("[[bin]]").count(), count);
    assert_eq!(checks.matches("pub mod ").count(), count);
}

fn fuzz(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(path)
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
    let entries = fuzz("seeds").join(target).read_dir();
    let entries = entries.expect("the seeds are in the repository");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a seed is a file")).collect()
}

/// A seed with one to four changes. A change sets, removes or inserts a byte, doubles a stretch,
/// takes one from another seed, or cuts the end off.
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
