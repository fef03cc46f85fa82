//! Requests a second, the time of one, and the CPU time that the server spends on it: ours over the other's.

use std::time::Duration;

use tokio::net::TcpStream;

use crate::Peer;
use crate::client::{self, Round};

const ROUNDS: usize = 7;
const TIME: Duration = Duration::from_millis(1_500);

macro_rules! post {
    ($path:literal) => {
        concat!(
            "POST ", $path, " HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 299\r\n\r\n",
            r#"{"customer":"Ann Example","items":[{"sku":"A-100","count":3,"price":19.99,"note":null},{"sku":"B-200","count":1,"price":5.25,"note":"blue"},"#,
            r#"{"sku":"C-300","count":12,"price":0.5,"note":null},{"sku":"D-400","count":2,"price":100.0,"note":"gift wrapped, please"},{"sku":"E","count":1,"price":1}]}     "#,
        )
    };
}

pub(crate) const REQUESTS: [(&str, &str); 3] = [
    ("POST, JSON", post!("/orders")),
    ("POST, path and JSON", post!("/shops/7/orders")),
    ("GET, path and query", "GET /things/7?tag=a%20b&limit=5 HTTP/1.1\r\nhost: localhost\r\n\r\n"),
];

/// What one server did in all rounds.
#[derive(Default)]
struct Sum {
    rates: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
    cpu: f64,
    count: usize,
}

impl Sum {
    fn add(&mut self, round: &Round, cpu: f64) {
        self.rates.push(round.rate);
        self.p50.push(round.quantile(0.5));
        self.p99.push(round.quantile(0.99));
        self.cpu += cpu;
        self.count += round.count;
    }

    fn cpu(&self) -> f64 {
        self.cpu / self.count as f64
    }
}

fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// The median of what each round of one is of the round of the other beside it.
fn share(one: &[f64], other: &[f64]) -> f64 {
    median(&one.iter().zip(other).map(|(one, other)| one / other).collect::<Vec<_>>())
}

/// Compares those whose names begin with a text.
pub(crate) fn run(first: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let peers = [Peer::start("ours"), Peer::start("axum")];
    println!("ours over axum's: requests/s | p50 | p99 | server CPU");
    for (name, request) in REQUESTS.into_iter().filter(|(name, _)| name.starts_with(first)) {
        runtime.block_on(same(&peers, request));
        for connections in [1, 64] {
            let mut sums = [Sum::default(), Sum::default()];
            for at in 0..=ROUNDS {
                // Whoever is first in one round is second in the next.
                for turn in 0..2 {
                    let which = (at + turn) % 2;
                    let before = peers[which].cpu();
                    let round = client::round(peers[which].address, request.as_bytes(), connections, TIME);
                    let round = runtime.block_on(round);
                    // The first round warms up.
                    if at > 0 {
                        sums[which].add(&round, peers[which].cpu() - before);
                    }
                }
            }
            let [ours, other] = &sums;
            println!(
                "{name}, {connections}: {:.2} ({:.0}/s) | {:.2} | {:.2} | {:.2} ({:.1} us)",
                share(&ours.rates, &other.rates),
                median(&ours.rates),
                share(&ours.p50, &other.p50),
                share(&ours.p99, &other.p99),
                ours.cpu() / other.cpu(),
                ours.cpu(),
            );
        }
    }
}

/// Checks that both answer the same.
async fn same(peers: &[Peer; 2], request: &str) {
    let mut answers = Vec::new();
    for peer in peers {
        let mut stream = TcpStream::connect(peer.address).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
        answers.push(client::answer(&mut stream, &mut vec![0; 16 << 10]).await);
    }
    assert_eq!(answers[0], answers[1]);
}
