//! The same operations by tonic: gRPC with Protocol Buffers, by hand what its generator would write.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::client::Grpc as Client;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc as Server, NamedService, UnaryService};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::ours;

const ADD: &str = "/bench.Bench/Add";
const SEND_BACK: &str = "/bench.Bench/SendBack";

#[derive(Clone, PartialEq, prost::Message)]
struct Numbers {
    #[prost(int64, tag = "1")]
    a: i64,
    #[prost(int64, tag = "2")]
    b: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Sum {
    #[prost(int64, tag = "1")]
    sum: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Order {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(string, tag = "2")]
    pub customer: String,
    #[prost(message, repeated, tag = "3")]
    pub lines: Vec<Line>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Line {
    #[prost(string, tag = "1")]
    pub product: String,
    #[prost(uint32, tag = "2")]
    pub count: u32,
    #[prost(double, tag = "3")]
    pub price: f64,
}

impl Order {
    pub fn sample() -> Self {
        let ours::Order { id, customer, lines } = ours::Order::sample();
        let line = |line: ours::Line| Line { product: line.product, count: line.count, price: line.price };
        Self { id, customer, lines: lines.into_iter().map(line).collect() }
    }
}

#[derive(Clone)]
struct Bench;

impl NamedService for Bench {
    const NAME: &'static str = "bench.Bench";
}

struct Add;

impl UnaryService<Numbers> for Add {
    type Response = Sum;
    type Future = BoxFuture<Response<Sum>, Status>;

    fn call(&mut self, request: Request<Numbers>) -> Self::Future {
        let Numbers { a, b } = request.into_inner();
        Box::pin(async move { Ok(Response::new(Sum { sum: a + b })) })
    }
}

struct SendBack;

impl UnaryService<Order> for SendBack {
    type Response = Order;
    type Future = BoxFuture<Response<Order>, Status>;

    fn call(&mut self, request: Request<Order>) -> Self::Future {
        Box::pin(async move { Ok(Response::new(request.into_inner())) })
    }
}

impl Service<http::Request<Body>> for Bench {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        match request.uri().path() {
            ADD => Box::pin(async { Ok(Server::new(ProstCodec::default()).unary(Add, request).await) }),
            SEND_BACK => Box::pin(async { Ok(Server::new(ProstCodec::default()).unary(SendBack, request).await) }),
            path => panic!("nobody calls {path}"),
        }
    }
}

pub async fn serve() {
    let incoming = TcpIncoming::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = incoming.local_addr().unwrap();
    tokio::spawn(
        tonic::transport::Server::builder().add_service(Bench).serve_with_incoming(incoming.with_nodelay(Some(true))),
    );
    crate::listening(&format!("http://{address}")).await;
}

pub async fn connect(url: &str) -> Client<Channel> {
    Client::new(Endpoint::from_shared(url.to_owned()).unwrap().connect().await.unwrap())
}

pub async fn add(mut client: Client<Channel>, a: i64, b: i64) -> i64 {
    client.ready().await.unwrap();
    let request = Request::new(Numbers { a, b });
    let answer = client.unary::<_, Sum, _>(request, PathAndQuery::from_static(ADD), ProstCodec::default());
    answer.await.unwrap().into_inner().sum
}

pub async fn send_back(mut client: Client<Channel>, order: Order) -> Order {
    client.ready().await.unwrap();
    let answer = client.unary(Request::new(order), PathAndQuery::from_static(SEND_BACK), ProstCodec::default());
    answer.await.unwrap().into_inner()
}
