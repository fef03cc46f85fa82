//! A shop behind a gateway, which counts what is changed in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ops_runtime::access::AccessControl;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::gateway::{Gateway, GatewayBuilder, Tools};
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{CallError, Registry};
use serde_json::{Value, json};

use crate::client::{Client, REVISIONS};

pub(crate) static SHOW: OperationSpec = OperationSpec::query("shop.showPet")
    .with_description("Shows a pet by its number.")
    .with_input(Schema::text(
        r#"{"type":"object","required":["petId"],"properties":{"petId":{"type":"integer","minimum":1}}}"#,
    ))
    .with_output(Schema::text(
        r#"{"type":"object","required":["id","name"],"properties":{"id":{"type":"integer"},"name":{"type":"string"}}}"#,
    ));
pub(crate) static RENAME: OperationSpec = OperationSpec::mutation("shop.renamePet")
    .with_description("Gives a pet another name.")
    .with_input(Schema::text(
        r#"{"type":"object","required":["petId","name"],"properties":{"petId":{"type":"integer"},"name":{"type":"string"}}}"#,
    ));
pub(crate) static ALL: OperationSpec = OperationSpec::query("shop.listPets").with_description("Lists all pets.");
pub(crate) static BOOKS: OperationSpec = OperationSpec::query("books.total")
    .with_description("Adds up what was sold.")
    .with_access(AccessControl::NONE.with_scopes(&["books:read"]));

pub(crate) struct Shop {
    pub(crate) registry: Registry,
    renamed: Arc<AtomicUsize>,
}

impl Shop {
    pub(crate) fn new() -> Self {
        let (registry, renamed) = (Registry::new(), Arc::new(AtomicUsize::new(0)));
        let show = |input: Value, _| async move {
            match input["petId"].as_i64() {
                Some(7) => Ok(json!({ "id": 7, "name": "Rex" })),
                _ => Err(CallError::new("NO_PET", "there is no such pet")),
            }
        };
        let counted = renamed.clone();
        let rename = move |input: Value, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { Ok(json!({ "renamed": input["name"] })) }
        };
        let all = |_, _| async { Ok((0..2_000).map(|id| json!({ "id": id, "name": format!("pet {id}") })).collect()) };
        let handlers = [
            Registration::new(&SHOW, Handler::dynamic(show)),
            Registration::new(&RENAME, Handler::dynamic(rename)),
            Registration::new(&ALL, Handler::dynamic(all)),
            Registration::new(&BOOKS, Handler::dynamic(|_, _| async { Ok(json!(1200)) })),
        ];
        registry.register_all(handlers).unwrap();
        Self { registry, renamed }
    }

    /// How often a pet was renamed.
    pub(crate) fn renamed(&self) -> usize {
        self.renamed.load(Ordering::SeqCst)
    }

    pub(crate) fn gateway(&self) -> GatewayBuilder {
        Gateway::builder().with_registry(self.registry.clone()).with_tools(Tools::Search)
    }
}

/// A client of the gateway over a pipe, as its owner.
pub(crate) async fn owner(gateway: &Gateway) -> Client {
    Client::connect(gateway.owned_mcp_server(), REVISIONS[0]).await
}

/// The texts of a tool's result.
pub(crate) fn texts(result: &Value) -> Vec<&str> {
    result["content"].as_array().unwrap().iter().filter_map(|block| block["text"].as_str()).collect()
}

/// The only text of a tool's result.
pub(crate) fn text(result: &Value) -> &str {
    match texts(result)[..] {
        [text] => text,
        _ => panic!("{result}"),
    }
}
