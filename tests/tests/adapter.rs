//! The toy adapter of `ARCHITECTURE.md`: one description, called as it is met at run time and as generated code.

use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::spec::OperationSpec;
use ops_runtime::{CallError, Context, Registry, ResponseEnvelope};
use serde_json::{Value, json};

#[path = "../adapter/mod.rs"]
mod adapter;

/// What `build.rs` made of the description.
pub mod sums {
    ops_runtime::include_operations!("sums");
}

const DESCRIPTION: &str = include_str!("../adapter/sums.txt");

/// The toy server's client. Its protocol is a line with the name and the input; the server answers with JSON.
struct Client(fn(&str) -> Result<String, String>);

impl Endpoint for Client {
    fn call(
        &self,
        spec: &OperationSpec,
        input: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let (server, id, request) = (self.0, spec.id.clone(), format!("{} {input}", spec.name()));
        Box::pin(async move {
            let answer = server(&request).map_err(CallError::execution)?;
            Ok(ResponseEnvelope::local(Payload::Json(answer.into()), id))
        })
    }
}

/// The toy server, which tells points as text.
fn server(request: &str) -> Result<String, String> {
    let (name, input) = request.split_once(' ').ok_or("no input")?;
    let input: Value = serde_json::from_str(input).map_err(|error| error.to_string())?;
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    match name {
        "add" => Ok(format!("{}", number(&input["a"]) + number(&input["b"]))),
        "middle" => {
            let points = input["points"].as_array().ok_or("no points")?;
            let mean = |axis: &str| points.iter().map(|point| number(&point[axis])).sum::<f64>() / points.len() as f64;
            Ok(json!({ "x": mean("x"), "y": mean("y"), "label": "middle" }).to_string())
        }
        other => Err(format!("I can't {other}")),
    }
}

#[tokio::test]
async fn at_run_time() {
    let (api, diagnostics) = adapter::read(&format!("{DESCRIPTION}\nthis line says nothing"), "met");
    let said: Vec<_> = diagnostics.iter().map(|diagnostic| diagnostic.message.as_str()).collect();
    assert_eq!(said, ["`this line says nothing` is no operation and no type"]);

    let registry = Registry::new();
    for spec in api.operations {
        registry.register(Registration::new(spec, Handler::endpoint(Client(server)))).unwrap();
    }
    assert_eq!(registry.call("met.add", json!({ "a": 40, "b": 2 })).await.unwrap().data, 42.0);
    let error = registry.call("met.add", json!({ "a": "x" })).await.unwrap_err();
    assert_eq!(error.code().as_str(), "VALIDATION_ERROR", "{error}");
    let points = json!({ "points": [{ "x": 0, "y": 0 }, { "x": 2, "y": 4 }] });
    let middle = registry.call("met.middle", points).await.unwrap();
    assert_eq!(middle.data, json!({ "x": 1.0, "y": 2.0, "label": "middle" }));
}

#[tokio::test]
async fn as_generated_code() {
    let registry = Registry::new();
    for spec in sums::operations() {
        registry.register(Registration::new(*spec, Handler::endpoint(Client(server)))).unwrap();
    }
    assert_eq!(registry.execute::<sums::Add>(sums::AddInput { a: 40.0, b: 2.0 }).await.unwrap().data, 42.0);
    let point = |x, y| sums::Point { x, y, label: None };
    let input = sums::MiddleInput { points: vec![point(0.0, 0.0), point(2.0, 4.0)] };
    let middle = registry.execute::<sums::Middle>(input).await.unwrap().data;
    assert_eq!(middle, sums::Point { label: Some("middle".to_owned()), ..point(1.0, 2.0) });
}
