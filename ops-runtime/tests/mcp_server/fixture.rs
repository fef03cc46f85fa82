//! The operations that are served.

use futures_util::{Stream, stream};
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::content::ContentBlock;
use ops_runtime::envelope::McpMeta;
use ops_runtime::mcp::McpServer;
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{CallError, Context, Registry, ResponseEnvelope, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Adds two numbers.
#[operation(namespace = "math", kind = query, title = "Add")]
async fn add(a: i64, b: i64) -> i64 {
    a.wrapping_add(b)
}

/// A pet, which may have parents.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Pet {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) parents: Vec<Pet>,
}

/// Finds a pet.
#[operation(namespace = "shop", kind = query, errors(NotFound = 404))]
async fn find_pet(
    /// Its name.
    #[schemars(length(min = 1))]
    name: String,
) -> Result<Pet, CallError> {
    match name.as_str() {
        "Tom" => Ok(Pet { name, parents: Vec::new() }),
        "panic" => panic!("the password is hunter2"),
        "file" => Err(std::io::Error::other("can't open /etc/secrets").into()),
        _ => Err(CallError::new("NotFound", format!("there is no {name}")).with_details(json!({ "name": name }))),
    }
}

#[operation(namespace = "shop", scopes("shop:write"), deprecated)]
pub(crate) async fn sell(names: Vec<String>) -> Vec<String> {
    names
}

/// Says who calls.
#[operation(namespace = "shop", kind = query)]
async fn whoami(context: &Context) -> Option<String> {
    context.identity().map(|identity| identity.id.clone())
}

/// Counts.
#[operation(namespace = "math")]
async fn count(to: u32) -> impl Stream<Item = u32> {
    stream::iter(1..=to)
}

#[operation(namespace = "media", kind = query)]
async fn picture() -> Vec<ContentBlock> {
    vec![ContentBlock::text("a dot"), ContentBlock::image("AAAA", "image/png")]
}

#[operation(namespace = "media", kind = query)]
async fn caption() -> ResponseEnvelope<String> {
    let meta = McpMeta::new(false, vec![ContentBlock::audio("AAAA", "audio/wav")]);
    ResponseEnvelope::mcp("a beep".to_owned(), meta)
}

/// An operation by its schemas, whose handler gives back the input.
pub(crate) fn echo(id: &str, input: Value, output: Value) -> Registration {
    let (namespace, name) = id.split_once('.').unwrap();
    let mut spec = OperationSpec::new(OperationKind::Mutation, namespace, name).unwrap();
    spec.description = "Gives back its input.".into();
    (spec.input, spec.output) = (input.into(), output.into());
    Registration::new(spec, Handler::dynamic(|input, _| async move { Ok(input) }))
}

pub(crate) fn registry() -> Registry {
    let registry = Registry::new();
    registry.register(Add).unwrap();
    registry.register(FindPet).unwrap();
    registry.register(Sell).unwrap();
    registry.register(Whoami).unwrap();
    registry.register(Count).unwrap();
    registry.register(Picture).unwrap();
    registry.register(Caption).unwrap();
    let number = json!({ "type": "integer" });
    registry.register(echo("odd.pets/list all", number, json!({ "type": ["object", "null"] }))).unwrap();
    registry.register(echo("odd.anything", json!({}), json!({}))).unwrap();
    // Described, but with nothing to run it.
    registry.register_spec(OperationSpec::query("odd.nothing")).unwrap();
    registry
}

pub(crate) fn server() -> McpServer {
    McpServer::new(registry())
}
