//! The same operations by jsonrpsee.

use jsonrpsee::RpcModule;
use jsonrpsee::core::client::ClientT;
use jsonrpsee::server::ServerBuilder;
use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::ws_client::{WsClient, WsClientBuilder};
use serde::{Deserialize, Serialize};

use crate::ours::Order;

#[derive(Serialize, Deserialize)]
pub struct Add {
    pub a: i64,
    pub b: i64,
}

#[derive(Serialize, Deserialize)]
pub struct SendBack {
    pub order: Order,
}

pub async fn serve() {
    let mut module = RpcModule::new(());
    module
        .register_async_method("add", |parameters, _, _| async move {
            let Add { a, b } = parameters.parse()?;
            Ok::<_, ErrorObjectOwned>(a + b)
        })
        .unwrap();
    module
        .register_async_method("sendBack", |parameters, _, _| async move {
            let SendBack { order } = parameters.parse()?;
            Ok::<_, ErrorObjectOwned>(order)
        })
        .unwrap();
    let config = jsonrpsee::server::ServerConfig::builder().ws_only().set_message_buffer_capacity(4096).build();
    let server = ServerBuilder::default().set_config(config).build("127.0.0.1:0").await.unwrap();
    let address = server.local_addr().unwrap();
    let _handle = server.start(module);
    crate::listening(&format!("ws://{address}")).await;
}

pub async fn connect(url: &str) -> WsClient {
    WsClientBuilder::default().max_concurrent_requests(4096).build(url).await.unwrap()
}

/// Named parameters, as ours are.
struct Named<T>(T);

impl<T: Serialize> jsonrpsee::core::traits::ToRpcParams for Named<T> {
    fn to_rpc_params(self) -> Result<Option<Box<serde_json::value::RawValue>>, serde_json::Error> {
        serde_json::value::to_raw_value(&self.0).map(Some)
    }
}

pub async fn add(client: &WsClient, a: i64, b: i64) -> i64 {
    client.request("add", Named(Add { a, b })).await.unwrap()
}

pub async fn send_back(client: &WsClient, order: Order) -> Order {
    client.request("sendBack", Named(SendBack { order })).await.unwrap()
}
