//! The toy adapter of `ARCHITECTURE.md`: one description, called as it is met at run time and as generated code.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};

use futures_util::{StreamExt, stream};
use ops_runtime::adapter::{Bodies, BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::spec::OperationSpec;
use ops_runtime::{Body, CallError, CallOptions, Context, Operation, Registry, ResponseEnvelope};
use serde_json::{Value, json};

#[path = "../adapter/mod.rs"]
mod adapter;

/// What `build.rs` made of the description.
pub mod sums {
    ops_runtime::include_operations!("sums");
}

const DESCRIPTION: &str = include_str!("../adapter/sums.txt");

/// The toy server's client. Its protocol is a line with the name and the input, and then the bytes of a body if the input
/// has one; the server answers with JSON, or with bytes.
struct Client(fn(&str) -> Result<String, String>);

impl Endpoint for Client {
    fn call(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let (server, id, name) = (self.0, spec.id.clone(), spec.name().to_owned());
        Box::pin(async move {
            // A typed call has its bodies beside the input. A call by id has none, and its bytes are base64.
            let given = context.extension::<Bodies>();
            if let (Some(bodies), Some(body)) = (given, given.and_then(|bodies| bodies.get(&input["text"]))) {
                let mark = input["mark"].as_str().unwrap_or_default();
                let answer = stream_server(body.clone(), mark.to_owned());
                return match bodies.wants_output() {
                    true => Ok(ResponseEnvelope::local(Payload::Body(answer), id)),
                    false => Err(CallError::execution("only an operation with a body as its output takes one")),
                };
            }
            let answer = server(&format!("{name} {input}")).map_err(CallError::execution)?;
            Ok(ResponseEnvelope::local(Payload::Json(answer.into()), id))
        })
    }

    fn streams_bodies(&self) -> bool {
        true
    }
}

/// The toy server's answer to bytes: each piece in capitals as soon as it has come, and at the end a mark.
fn stream_server(body: Body, mark: String) -> Body {
    let capitals = |piece: io::Result<bytes::Bytes>| piece.map(|piece| piece.to_ascii_uppercase().into());
    Body::stream(body.into_stream().map(capitals).chain(stream::iter([Ok(mark.into())])))
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
        "shout" => Ok(json!(input["text"].as_str().ok_or("no text")?.to_uppercase()).to_string()),
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

/// A body whose pieces come from a channel: the stream fails if a piece is asked for that nobody has sent.
fn live() -> (Sender<&'static str>, Body) {
    let (sender, receiver): (_, Receiver<&'static str>) = channel();
    let pieces = stream::unfold(receiver, |receiver| async move {
        match receiver.try_recv() {
            Ok("") => None,
            Ok(piece) => Some((Ok(piece.into()), receiver)),
            Err(_) => Some((Err(io::Error::other("nothing was sent yet")), receiver)),
        }
    });
    (sender, Body::stream(pieces))
}

#[tokio::test]
async fn bodies_stream_in_and_out() {
    let registry = Registry::new();
    for spec in sums::operations() {
        registry.register(Registration::new(*spec, Handler::endpoint(Client(server)))).unwrap();
    }
    let (sender, text) = live();
    let input = sums::ShoutInput { text, mark: "!".to_owned() };
    let answer = registry.execute::<sums::Shout>(input).await.unwrap().data;
    assert!(answer.is_stream());
    let mut pieces = answer.into_stream();
    // Each piece is out before the next is in.
    for (sent, wanted) in [("he", "HE"), ("llo", "LLO")] {
        sender.send(sent).unwrap();
        assert_eq!(pieces.next().await.unwrap().unwrap(), wanted);
    }
    sender.send("").unwrap();
    assert_eq!(pieces.next().await.unwrap().unwrap(), "!");
    assert!(pieces.next().await.is_none());

    // A stream that breaks breaks the answer, after what came before.
    let (sender, text) = live();
    let input = sums::ShoutInput { text, mark: "!".to_owned() };
    let mut pieces = registry.execute::<sums::Shout>(input).await.unwrap().data.into_stream();
    sender.send("he").unwrap();
    assert_eq!(pieces.next().await.unwrap().unwrap(), "HE");
    assert_eq!(pieces.next().await.unwrap().unwrap_err().to_string(), "nothing was sent yet");
    drop(sender);

    // By id there are no bodies, whatever the input says.
    for text in ["aGVsbG8=", "body:00000000000000000000000000000000"] {
        let answer = registry.call("sums.shout", json!({ "text": text, "mark": "!" })).await.unwrap();
        assert_eq!(answer.data, text.to_uppercase());
    }
}

#[tokio::test]
async fn nested_calls_have_bodies_of_their_own() {
    /// Calls another operation by its id, and says whether that saw bodies of the first call.
    struct Outer;
    impl Endpoint for Outer {
        fn call(
            &self,
            _: &OperationSpec,
            input: Value,
            context: Context,
        ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
            Box::pin(async move {
                assert!(context.extension::<Bodies>().unwrap().get(&input["text"]).is_some());
                assert_eq!(context.extension::<u8>(), Some(&7));
                let seen = context.env().call("inner.seen", json!(null)).await?.data;
                Ok(ResponseEnvelope::local(Payload::Body(seen.to_string().into()), "sums.shout"))
            })
        }

        fn streams_bodies(&self) -> bool {
            true
        }
    }
    let registry = Registry::new();
    registry.register(Registration::new(sums::Shout::SPEC, Handler::endpoint(Outer))).unwrap();
    let seen = |_: Value, context: Context| async move {
        Ok(json!([context.extension::<Bodies>().is_some(), context.extension::<u8>()]))
    };
    registry.register(Registration::new(OperationSpec::query("inner.seen"), Handler::dynamic(seen))).unwrap();
    let input = sums::ShoutInput { text: "hello".into(), mark: "!".to_owned() };
    let options = CallOptions::new().with_extension(7_u8);
    let answer = registry.execute_with::<sums::Shout>(input, options).await.unwrap().data;
    assert_eq!(answer.as_bytes(), Some(&b"[false,7]"[..]));
}
