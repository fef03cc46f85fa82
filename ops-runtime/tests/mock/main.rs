//! The caller for tests: what it answers, and what it records and plays back.

mod recorded;

use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use ops_runtime::access::Identity;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{HttpBinding, HttpBody};
use ops_runtime::envelope::HttpMeta;
use ops_runtime::mock::MockCaller;
use ops_runtime::registry::{Execute, Open};
use ops_runtime::spec::{Definition, OperationSpec, Schema};
use ops_runtime::{
    Call, CallError, CallOptions, Caller, Context, ErrorCode, Operation, Registry, ResponseEnvelope, Subscribe,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Pet {
    id: u64,
    name: String,
    tags: Vec<String>,
    born: Option<String>,
    kind: Kind,
    parent: Option<Box<Pet>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Cat,
    Dog,
}

struct Show;

impl Operation for Show {
    type Input = Value;
    type Output = Pet;
    const SPEC: &'static OperationSpec =
        &OperationSpec::query("pets.show").with_output(Schema::text(r##"{"$ref":"#/$defs/Pet"}"##)).with_definitions(
            const {
                &[Definition::new(
                    "Pet",
                    r##"{
                            "type": "object",
                            "properties": {
                                "id": { "type": "integer", "minimum": 7 },
                                "name": { "type": "string", "minLength": 6, "maxLength": 8 },
                                "tags": { "type": "array", "items": { "type": "string" }, "minItems": 2 },
                                "born": { "type": ["null", "string"], "format": "date" },
                                "kind": { "oneOf": [{ "type": "null" }, { "enum": ["dog", "cat"] }] },
                                "parent": { "$ref": "#/$defs/Pet" }
                            },
                            "required": ["id", "name", "tags", "kind"]
                        }"##,
                )]
            },
        );
}

impl Call for Show {}

struct Watch;

impl Operation for Watch {
    type Input = Value;
    type Output = u64;
    const SPEC: &'static OperationSpec =
        &OperationSpec::subscription("pets.watch").with_output(Schema::text(r#"{"type":"integer"}"#));
}

impl Subscribe for Watch {}

fn pet(id: u64) -> Pet {
    Pet { id, name: "Rex".to_owned(), tags: vec![], born: None, kind: Kind::Dog, parent: None }
}

async fn items(caller: &impl Caller, input: Value) -> Vec<Result<u64, String>> {
    let items = caller.subscribe::<Watch>(input).await.unwrap();
    items.map(|item| item.map(|item| item.data).map_err(|error| error.message().to_owned())).collect().await
}

#[tokio::test]
async fn answers_see_the_context_and_have_metas_of_their_own() {
    let mock = MockCaller::new().on_envelope::<Show>(|input, context| {
        let tenant = context.metadata().and_then(|metadata| metadata["tenant"].as_str()).unwrap_or("nobody").to_owned();
        if context.extension::<u8>() == Some(&9) {
            return Err(CallError::new("NotFound", tenant));
        }
        let meta = HttpMeta::new(203, "application/json").with_header("x-for", tenant);
        Ok(ResponseEnvelope::http(pet(input["id"].as_u64().unwrap()), meta))
    });
    let options = CallOptions::new().with_metadata("tenant", "t-1").with_identity(Identity::new("ann"));
    let envelope = mock.execute_with::<Show>(json!({ "id": 3 }), options.clone()).await.unwrap();
    let meta = envelope.meta.as_http().unwrap();
    assert_eq!((envelope.data.id, meta.status_code, &*meta.headers["x-for"]), (3, 203, "t-1"));
    let error = mock.execute_with::<Show>(json!({ "id": 3 }), options.with_extension(9_u8)).await.unwrap_err();
    assert_eq!((error.code(), error.message()), (&ErrorCode::from("NotFound"), "t-1"));
    let call = &mock.calls()[0];
    assert_eq!((&call.metadata["tenant"], &call.identity.as_ref().unwrap().id), (&json!("t-1"), &"ann".to_owned()));
    assert!(mock.call("pets.show", json!({ "id": 1 })).await.is_ok());
    assert!(mock.calls()[2].metadata.is_empty() && mock.calls()[2].identity.is_none());
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct NewPet {
    name: String,
}

const NEW_PET: Schema =
    Schema::text(r#"{"type":"object","properties":{"name":{"type":"string","minLength":1}},"required":["name"]}"#);

struct AddPet;

impl Operation for AddPet {
    type Input = NewPet;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("pets.add").with_input(NEW_PET).with_http(
        HttpBinding::new("POST", "/pets").with_bodies(const { &[HttpBody::new("application/json").with_rest()] }),
    );
}

impl Call for AddPet {}

struct KeepPet;

impl Operation for KeepPet {
    type Input = NewPet;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("pets.keep").with_input(NEW_PET);
}

impl Call for KeepPet {}

#[tokio::test]
async fn inputs_that_a_client_sends_reach_the_mock() {
    let refused = || CallError::new("HTTP_422", "a pet needs a name");
    let mock = MockCaller::new().on::<AddPet>(move |_| Err(refused())).on::<KeepPet>(|_| Ok(json!(null)));
    // The server of an API checks what its client sends.
    let error = mock.execute::<AddPet>(NewPet { name: String::new() }).await.unwrap_err();
    assert_eq!((error.code(), error.message()), (refused().code(), refused().message()));
    assert_eq!(mock.calls_of("pets.add"), [json!({ "name": "" })]);
    // A function of this process checks it itself.
    let error = mock.execute::<KeepPet>(NewPet { name: String::new() }).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ValidationError);
    assert!(mock.calls_of("pets.keep").is_empty());
}

#[cfg(feature = "http")]
#[tokio::test]
async fn answers_see_the_http_options() {
    use ops_runtime::http::{RequestOptions, error_of};
    let mock = MockCaller::new().on_envelope::<Show>(|_, context| {
        let options = context.extension::<RequestOptions>().unwrap();
        let headers: Vec<_> = options.headers().collect();
        Err(error_of(409, json!([headers, options.base_url(), options.idempotency_key()])))
    });
    let options = CallOptions::new().with_header("X-A", "1").with_base_url("https://h.test").with_idempotency_key("k");
    let error = mock.execute_with::<Show>(json!({}), options).await.unwrap_err();
    let seen: Value = error.body().unwrap();
    assert_eq!((error.message(), seen), ("HTTP 409: Conflict", json!([[["X-A", "1"]], "https://h.test", "k"])));
}

#[tokio::test]
async fn calls_of_a_function_are_answered_and_recorded() {
    let mock = MockCaller::new()
        .on::<Show>(|input| Ok(pet(input["id"].as_u64().unwrap_or_default())))
        .on_items::<Watch>(|_| Ok(vec![Ok(2), Ok(3)]))
        .on_id("bank.rate", |_| Ok(json!(1.5)));
    // A function of a program, with state of its own.
    let quote = |input: Value, context: Context| async move {
        let (env, fee) = (context.env(), *context.state::<u64>()?);
        let pet = env.execute::<Show>(input).await?.data;
        let counted = env.subscribe::<Watch>(Value::Null).await?.count().await;
        let rate = env.call("bank.rate", json!({})).await?.data;
        Ok(json!([pet.id, counted, rate, fee]))
    };
    let registry = Registry::builder().with_state(9_u64).build();
    let spec = OperationSpec::query("till.quote");
    registry.register(Registration::new(spec, Handler::dynamic(quote))).unwrap();
    registry.register_all(mock.registrations()).unwrap();
    let answer = registry.call("till.quote", json!({ "id": 7 })).await.unwrap();
    assert_eq!(answer.data, json!([7, 2, 1.5, 9]));
    let called: Vec<_> = mock.calls().into_iter().map(|call| call.id).collect();
    assert_eq!(called, ["pets.show", "pets.watch", "bank.rate"]);
    assert_eq!(mock.calls_of("pets.show"), [json!({ "id": 7 })]);
}

#[tokio::test]
async fn a_reference_to_a_caller_is_a_caller() {
    async fn id(caller: impl Caller) -> u64 {
        let by_id = caller.call("pets.show", json!({ "id": 7 })).await.unwrap().data;
        assert_eq!(by_id["id"], 7);
        caller.execute::<Show>(json!({ "id": 7 })).await.unwrap().data.id
    }
    let mock = MockCaller::new().on::<Show>(|input| Ok(pet(input["id"].as_u64().unwrap_or_default())));
    assert_eq!((id(&mock).await, id(&&mock).await, id(mock.clone()).await), (7, 7, 7));
    assert_eq!(mock.calls().len(), 6);
}

#[tokio::test]
async fn many_calls_at_once() {
    let mock = MockCaller::new().on_envelope::<Show>(|input, context| {
        let known = context.metadata().map_or(0, serde_json::Map::len);
        let meta = HttpMeta::new(200, "application/json").with_header("X-Known", known.to_string());
        Ok(ResponseEnvelope::http(pet(input["id"].as_u64().unwrap_or_default()), meta))
    });
    // As a generated method makes it. Each step adds to the others.
    let show = |id: u64| {
        let call = Execute::<_, Show>::new(&mock, json!({ "id": id }));
        call.with_metadata("a", 1).with_timeout(Duration::from_secs(5)).with_metadata("b", 2)
    };
    let sorted = |mut ids: Vec<u64>| {
        ids.sort_unstable();
        ids
    };
    let read = |found: Result<ResponseEnvelope<Pet>, CallError>| {
        let found = found.unwrap();
        assert_eq!(found.header("x-known"), Some("2"));
        found.data.id
    };
    let joined = futures_util::future::join_all((0..3).map(show)).await;
    assert_eq!(joined.into_iter().map(read).collect::<Vec<_>>(), [0, 1, 2]);
    let buffered: Vec<_> = stream::iter(0..3).map(show).buffer_unordered(2).map(read).collect().await;
    assert_eq!(sorted(buffered), [0, 1, 2]);
    let mut tasks: tokio::task::JoinSet<_> = (0..3).map(|id| show(id).send()).collect();
    let mut ended = Vec::new();
    while let Some(found) = tasks.join_next().await {
        ended.push(read(found.unwrap()));
    }
    assert_eq!(sorted(ended), [0, 1, 2]);

    let watching = MockCaller::new().on_items::<Watch>(|_| Ok(vec![Ok(1)]));
    let opened = Open::<_, Watch>::new(&watching, json!({})).with_idle_timeout(Duration::from_secs(5)).send();
    assert_eq!(tokio::spawn(opened).await.unwrap().unwrap().count().await, 1);

    // What has ended cannot be sent again.
    let mut call = show(1);
    assert_eq!(read((&mut call).await), 1);
    assert_eq!(call.send().await.unwrap_err().message(), "the call has begun already");
}

#[tokio::test]
async fn answers_in_turn() {
    let mock = MockCaller::new().on_sequence::<Show>([Ok(pet(1)), Err("busy".into()), Ok(pet(2))]);
    assert_eq!(mock.execute::<Show>(json!({})).await.unwrap().data.id, 1);
    assert_eq!(mock.execute::<Show>(json!({})).await.unwrap_err().message(), "busy");
    assert_eq!(mock.call("pets.show", json!({})).await.unwrap().data["id"], 2);
    let error = mock.execute::<Show>(json!({})).await.unwrap_err();
    assert_eq!(error.message(), "the mock was told 3 answers to `pets.show`, and gave them all");
}

#[tokio::test]
async fn streams_wait_and_fail() {
    let mock = MockCaller::new().on_stream::<Watch, _>(|input, _| {
        if input.is_null() {
            return Err("nothing to watch".into());
        }
        Ok(stream::iter([Ok(1), Err("lost".into()), Ok(2)]).then(|item| async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            item
        }))
    });
    let start = Instant::now();
    assert_eq!(items(&mock, json!({})).await, [Ok(1), Err("lost".to_owned()), Ok(2)]);
    assert!(start.elapsed() >= Duration::from_millis(30));
    assert_eq!(mock.subscribe::<Watch>(Value::Null).await.err().unwrap().message(), "nothing to watch");
    let mock = mock.on_items_id("any.items", |input| Ok(vec![Ok(input), Err("over".into())]));
    let found: Vec<_> = mock.stream("any.items", json!(1)).await.unwrap().collect().await;
    assert_eq!((&found[0].as_ref().unwrap().data, found[1].as_ref().unwrap_err().message()), (&json!(1), "over"));
}

#[tokio::test]
async fn examples_are_what_the_schema_says() {
    let mock = MockCaller::new().on_example::<Show>().on_items_example::<Watch>();
    let found = mock.execute::<Show>(json!({})).await.unwrap().data;
    assert_eq!((found.id, found.name.as_str(), found.kind), (7, "textxx", Kind::Dog));
    assert_eq!((found.tags, found.born.as_deref()), (vec!["text".to_owned(); 2], Some("2026-01-31")));
    // What contains itself ends.
    let mut depth = 0;
    let mut parent = found.parent;
    while let Some(pet) = parent {
        (depth, parent) = (depth + 1, pet.parent);
    }
    assert!((1..10).contains(&depth), "{depth}");
    assert_eq!(items(&mock, json!({})).await, [Ok(1)]);
}
