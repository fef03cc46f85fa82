//! Decoding and encoding by tables against serde's derives with `serde_json`: `cargo bench -p ops-runtime --no-default-features --bench record`.
//!
//! Each figure is the median of interleaved pairs: both sides run in turn, so that a slow second of the machine slows
//! both. A ratio above 1 says that the tables are faster.

#![allow(missing_docs, unreachable_pub)]

#[path = "record/derive.rs"]
mod derive;
#[path = "record/payloads.rs"]
mod payloads;
#[path = "record/table.rs"]
mod table;

use std::hint::black_box;
use std::time::{Duration, Instant};

use ops_runtime::record::from_slice;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The pairs that a median is taken of.
const PAIRS: usize = 101;

/// How long one side of a pair runs, about.
const SLICE: Duration = Duration::from_millis(4);

fn main() {
    println!("{:<24}{:>8}{:>10}{:>10}{:>8}", "payload", "KB", "derive", "table", "ratio");
    compare::<table::Account, derive::Account>("record", &payloads::account());
    compare::<Vec<table::Reading>, Vec<derive::Reading>>("small records", &payloads::readings(20 << 10));
    compare::<Vec<table::Order>, Vec<derive::Order>>("nested records", &payloads::orders(1 << 20));
    compare::<Vec<table::Event>, Vec<derive::Event>>("events, tag first", &payloads::events(200 << 10, true));
    compare::<Vec<table::Event>, Vec<derive::Event>>("events, tag last", &payloads::events(200 << 10, false));
}

fn compare<T, D>(name: &str, text: &[u8])
where
    T: Serialize + DeserializeOwned,
    D: Serialize + DeserializeOwned,
{
    let (ours, theirs): (T, D) = (from_slice(text).unwrap(), serde_json::from_slice(text).unwrap());
    assert_eq!(serde_json::to_value(&ours).unwrap(), serde_json::to_value(&theirs).unwrap(), "{name}");
    report(
        &format!("{name}, decode"),
        text.len(),
        &|| drop(serde_json::from_slice::<D>(black_box(text)).unwrap()),
        &|| {
            drop(from_slice::<T>(black_box(text)).unwrap());
        },
    );
    report(&format!("{name}, encode"), text.len(), &|| encode(black_box(&theirs)), &|| encode(black_box(&ours)));
}

fn encode<T: Serialize>(value: &T) {
    black_box(serde_json::to_vec(value).unwrap());
}

/// Times both sides in turn and prints their speed in MB/s and the median of the pairs' ratios.
fn report(name: &str, bytes: usize, theirs: &dyn Fn(), ours: &dyn Fn()) {
    let rounds = (1..).find(|rounds| time(1 << rounds, theirs) > SLICE).map_or(1, |rounds| 1 << rounds);
    let mut pairs: Vec<(f64, f64)> = (0..PAIRS)
        .map(|pair| {
            // Whoever goes second may find warmer caches.
            let (first, second) = if pair % 2 == 0 { (theirs, ours) } else { (ours, theirs) };
            let (first, second) = (time(rounds, first).as_secs_f64(), time(rounds, second).as_secs_f64());
            if pair % 2 == 0 { (first, second) } else { (second, first) }
        })
        .collect();
    pairs.sort_by(|(a, b), (c, d)| (a / b).total_cmp(&(c / d)));
    let (theirs, ours) = pairs[PAIRS / 2];
    let speed = |seconds: f64| bytes as f64 * f64::from(rounds) / seconds / 1e6;
    println!(
        "{name:<24}{:>8.1}{:>10.0}{:>10.0}{:>8.2}",
        bytes as f64 / 1024.0,
        speed(theirs),
        speed(ours),
        theirs / ours
    );
}

fn time(rounds: u32, run: &dyn Fn()) -> Duration {
    let start = Instant::now();
    (0..rounds).for_each(|_| run());
    start.elapsed()
}
