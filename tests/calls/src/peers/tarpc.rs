//! The same operations by tarpc, as JSON over TCP.

use futures_util::StreamExt;
use tarpc::server::{BaseChannel, Channel};
use tarpc::tokio_serde::formats::Json;
use tarpc::{client, context, serde_transport, server};

use crate::ours::Order;

/// What is called.
#[tarpc::service]
pub trait Bench {
    async fn add(a: i64, b: i64) -> i64;
    async fn send_back(order: Order) -> Order;
}

#[derive(Clone)]
struct Server;

impl Bench for Server {
    async fn add(self, _: context::Context, a: i64, b: i64) -> i64 {
        a + b
    }

    async fn send_back(self, _: context::Context, order: Order) -> Order {
        order
    }
}

pub async fn serve() {
    let listener = serde_transport::tcp::listen("127.0.0.1:0", Json::default).await.unwrap();
    let address = listener.local_addr();
    tokio::spawn(listener.for_each(|transport| async {
        let config = server::Config { pending_response_buffer: 4096 };
        let requests = BaseChannel::new(config, transport.unwrap()).execute(Server.serve());
        tokio::spawn(requests.for_each(|request| async {
            tokio::spawn(request);
        }));
    }));
    crate::listening(&address.to_string()).await;
}

pub async fn connect(address: &str) -> BenchClient {
    let transport = serde_transport::tcp::connect(address.to_owned(), Json::default).await.unwrap();
    let mut config = client::Config::default();
    (config.max_in_flight_requests, config.pending_request_buffer) = (4096, 4096);
    BenchClient::new(config, transport).spawn()
}

pub async fn add(client: &BenchClient, a: i64, b: i64) -> i64 {
    client.add(context::current(), a, b).await.unwrap()
}

pub async fn send_back(client: &BenchClient, order: Order) -> Order {
    client.send_back(context::current(), order).await.unwrap()
}
