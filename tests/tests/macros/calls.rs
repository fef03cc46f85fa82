//! Queries and mutations.

use ops_runtime::access::Identity;
use ops_runtime::envelope::HttpMeta;
use ops_runtime::{CallOptions, Context, ErrorCode, Operation, Registry, ResponseEnvelope, operation};
use serde_json::json;

use crate::{Pet, ShopError, refusal, registry};

#[operation(namespace = "math", kind = query)]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[tokio::test]
async fn typed_dynamic_and_plain() {
    let registry = registry(Add);
    assert_eq!(registry.execute::<Add>(AddInput { a: 1, b: 2 }).await.unwrap().into_data(), 3);
    assert_eq!(registry.call("math.add", json!({ "a": 1, "b": 2 })).await.unwrap().into_data(), json!(3));
    assert_eq!(add(1, 2).await, 3);
}

/// Three texts and a number are required, the rest has defaults.
#[operation(namespace = "text", kind = query)]
async fn fill(
    a: &str,
    b: String,
    #[input(default = 3)] c: u32,
    #[input(default = "x")] d: &str,
    e: Option<u8>,
    #[input(default)] f: &[u8],
    #[serde(default = "seven")] g: u8,
) -> String {
    format!("{a} {b} {c} {d} {e:?} {f:?} {g}")
}

fn seven() -> u8 {
    7
}

#[operation(namespace = "text", kind = query)]
async fn repeat(text: String, #[input(default = 2)] times: usize) -> String {
    text.repeat(times)
}

#[operation(namespace = "text", kind = query)]
async fn nothing_needed(#[input(default = 5)] n: u8, note: Option<String>) -> String {
    format!("{n} {note:?}")
}

#[operation(namespace = "text", kind = query)]
async fn of_three(a: Pet, b: u8, #[serde(rename = "c-c")] c: bool) -> String {
    format!("{} {b} {c}", a.name)
}

/// Inputs are made as those of generated operations are.
#[tokio::test]
async fn inputs_of_what_is_required() {
    assert_eq!(registry(Add).execute::<Add>((1, 2)).await.unwrap().data, 3);
    assert_eq!(registry(Add).execute::<Add>(AddInput::new(1, 2)).await.unwrap().data, 3);
    assert_eq!(registry(Repeat).execute::<Repeat>("ab").await.unwrap().data, "abab");
    let thrice = RepeatInput { times: 3, ..RepeatInput::new(String::from("ab")) };
    assert_eq!(registry(Repeat).execute::<Repeat>(thrice).await.unwrap().data, "ababab");
    let filled = registry(Fill).execute::<Fill>(("a", String::from("b"))).await.unwrap();
    assert_eq!(filled.data, "a b 3 x None [] 7");
    // What is left out of JSON is the same.
    let by_id = registry(Fill).call("text.fill", json!({ "a": "a", "b": "b" })).await.unwrap();
    assert_eq!(by_id.data, filled.data);
    let needed = registry(NothingNeeded);
    assert_eq!(needed.execute::<NothingNeeded>(()).await.unwrap().data, "5 None");
    let noted = NothingNeededInput { note: Some("x".into()), ..Default::default() };
    assert_eq!(needed.execute::<NothingNeeded>(noted).await.unwrap().data, "5 Some(\"x\")");
    let three = OfThreeInput::new(Pet::new(1, "Tom"), 2, true);
    assert_eq!(registry(OfThree).execute::<OfThree>(three).await.unwrap().data, "Tom 2 true");
    registry(Tick).execute::<Tick>(()).await.unwrap();
}

#[operation(namespace = "shop")]
async fn move_book(
    shelf: Option<Option<String>>,
    size: std::option::Option<core::option::Option<u8>>,
    #[input(default)] pet: Option<Option<Pet>>,
    note: Option<String>,
    #[input(default = Some(5))] limit: Option<u8>,
) -> String {
    format!("{shelf:?} {size:?} {:?} {note:?} {limit:?}", pet.map(|pet| pet.map(|pet| pet.name)))
}

/// `None` is not written, unless a default would replace it, and `null` is not absence.
#[tokio::test]
async fn what_is_left_out_is_not_null() {
    let registry = registry(MoveBook);
    let nulls = MoveBookInput { shelf: Some(None), size: Some(None), pet: Some(None), ..Default::default() };
    let values = MoveBookInput {
        shelf: Some(Some("A".into())),
        size: Some(Some(2)),
        pet: Some(Some(Pet::new(1, "Tom"))),
        note: Some("x".into()),
        limit: None,
    };
    let all = json!({ "shelf": "A", "size": 2, "pet": { "id": 1, "name": "Tom" }, "note": "x", "limit": null });
    for (input, written, told) in [
        (MoveBookInput::default(), json!({ "limit": 5 }), "None None None None Some(5)"),
        (
            nulls,
            json!({ "shelf": null, "size": null, "pet": null, "limit": 5 }),
            "Some(None) Some(None) Some(None) None Some(5)",
        ),
        (values, all, "Some(Some(\"A\")) Some(Some(2)) Some(Some(\"Tom\")) Some(\"x\") None"),
    ] {
        assert_eq!(serde_json::to_value(&input).unwrap(), written);
        assert_eq!(registry.execute::<MoveBook>(input).await.unwrap().data, told);
        assert_eq!(registry.call("shop.move_book", written).await.unwrap().data, told);
    }
}

#[tokio::test]
async fn a_wrong_input_is_refused() {
    let error = registry(Add).call("math.add", json!({ "a": 1 })).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ValidationError);
}

#[operation(namespace = "clock")]
async fn tick() {}

#[tokio::test]
async fn neither_input_nor_output() {
    let registry = registry(Tick);
    registry.execute::<Tick>(TickInput {}).await.unwrap();
    assert_eq!(registry.call("clock.tick", json!({})).await.unwrap().into_data(), json!(null));
}

#[operation(namespace = "text", kind = query)]
async fn describe(
    mut prefix: String,
    name: &str,
    ids: &[u64],
    pet: &Pet,
    sizes: &[u8; 2],
    r#type: Option<std::borrow::Cow<'static, str>>,
) -> String {
    prefix.push_str(name);
    format!("{prefix} {ids:?} {} {sizes:?} {:?}", pet.name, r#type)
}

#[tokio::test]
async fn references_are_lent() {
    let registry = registry(Describe);
    let input = DescribeInput {
        prefix: "a".into(),
        name: "b".into(),
        ids: vec![1, 2],
        pet: Pet::new(1, "Tom"),
        sizes: [3, 4],
        r#type: None,
    };
    let expected = "ab [1, 2] Tom [3, 4] None";
    assert_eq!(registry.execute::<Describe>(input).await.unwrap().into_data(), expected);
    let pet = json!({ "id": 1, "name": "Tom" });
    let input = json!({ "prefix": "a", "name": "b", "ids": [1, 2], "pet": pet, "sizes": [3, 4], "type": "x" });
    let output = registry.call("text.describe", input).await.unwrap().into_data();
    assert_eq!(output, json!("ab [1, 2] Tom [3, 4] Some(\"x\")"));
}

#[operation(namespace = "shop", errors(NotFound = 404, Closed))]
pub(crate) async fn find(id: u64) -> Result<Pet, ShopError> {
    match id {
        0 => Err(ShopError::Closed),
        1 => Ok(Pet::new(1, "Tom")),
        _ => Err(ShopError::NotFound(id)),
    }
}

#[tokio::test]
async fn errors_keep_their_codes() {
    let registry = registry(Find);
    assert_eq!(registry.execute::<Find>(FindInput { id: 1 }).await.unwrap().into_data(), Pet::new(1, "Tom"));
    let error = registry.execute::<Find>(FindInput { id: 2 }).await.unwrap_err();
    assert_eq!((error.code().as_str(), error.message()), (Find::NOT_FOUND, "no pet 2"));
    assert!(error.code() == Find::NOT_FOUND && *error.code() != Find::CLOSED);
    assert!(matches!(error.code().as_str(), Find::NOT_FOUND));
    let error = registry.call("shop.find", json!({ "id": 0 })).await.unwrap_err();
    assert_eq!(error.code().as_str(), "Closed");
}

#[operation(namespace = "shop", errors(Empty))]
async fn text_error() -> Result<(), String> {
    Err("Empty: nothing there".into())
}

#[tokio::test]
async fn a_text_error_may_name_a_declared_code() {
    let error = registry(TextError).execute::<TextError>(TextErrorInput {}).await.unwrap_err();
    assert_eq!(error.code().as_str(), "Empty");
}

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

#[operation(namespace = "text")]
async fn parse(text: &str) -> Result<i32> {
    Ok(text.parse()?)
}

#[tokio::test]
async fn an_alias_of_result() {
    let registry = registry(Parse);
    assert_eq!(registry.execute::<Parse>(ParseInput { text: "7".into() }).await.unwrap().into_data(), 7);
    let error = registry.execute::<Parse>(ParseInput { text: "x".into() }).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ExecutionError);
}

#[operation(namespace = "shop")]
async fn created(fail: bool) -> Result<ResponseEnvelope<Pet>, ShopError> {
    if fail {
        return Err(ShopError::Closed);
    }
    Ok(ResponseEnvelope::http(Pet::new(1, "Tom"), HttpMeta::new(201, "application/json")))
}

#[operation(namespace = "shop")]
async fn always_created() -> ResponseEnvelope<u8> {
    ResponseEnvelope::http(1, HttpMeta::new(201, "application/json"))
}

#[tokio::test]
async fn an_envelope_of_its_own() {
    let envelope = registry(Created).execute::<Created>(CreatedInput { fail: false }).await.unwrap();
    assert_eq!(envelope.meta.as_http().unwrap().status_code, 201);
    let error = registry(Created).execute::<Created>(CreatedInput { fail: true }).await.unwrap_err();
    assert_eq!(error.code().as_str(), "Closed");
    let envelope = registry(AlwaysCreated).execute::<AlwaysCreated>(AlwaysCreatedInput {}).await.unwrap();
    assert_eq!((envelope.meta.source(), envelope.data), ("http", 1));
}

#[operation(namespace = "shop")]
async fn rename(context: &Context, #[input] pet: Pet) -> String {
    format!("{} {:?}", pet.name, context.identity().map(|identity| &identity.id))
}

#[operation(namespace = "shop")]
async fn weigh(#[input] pets: &[Pet], context: ops_runtime::Context) -> usize {
    assert!(!context.is_trusted());
    pets.len()
}

#[tokio::test]
async fn a_whole_input() {
    let options = CallOptions::new().with_identity(Identity::new("ann"));
    let output = registry(Rename).execute_with::<Rename>(Pet::new(1, "Tom"), options).await.unwrap();
    assert_eq!(output.into_data(), "Tom Some(\"ann\")");
    let input: <Weigh as Operation>::Input = vec![Pet::new(1, "Tom")];
    assert_eq!(registry(Weigh).execute::<Weigh>(input).await.unwrap().into_data(), 1);
}

pub(crate) struct Greeting(pub(crate) &'static str);

#[operation(namespace = "text", state(Greeting))]
async fn greet(name: &str, context: &Context) -> Result<String, ops_runtime::CallError> {
    let Greeting(greeting) = context.state()?;
    tokio::task::yield_now().await;
    Ok(format!("{greeting} {name}"))
}

#[tokio::test]
async fn state_is_required_when_registering() {
    assert!(refusal(Greet).to_string().contains("Greeting"));
    let registry = Registry::builder().with_state(Greeting("hello")).build();
    registry.register(Greet).unwrap();
    let output = registry.execute::<Greet>(GreetInput { name: "ann".into() }).await.unwrap();
    assert_eq!(output.into_data(), "hello ann");
}

#[operation(namespace = "math", kind = query)]
async fn double_sum(a: i64, b: i64, context: Context) -> Result<i64, ops_runtime::CallError> {
    let sum = context.env().execute::<Add>(AddInput { a, b }).await?;
    Ok(2 * sum.data)
}

#[tokio::test]
async fn nested_calls() {
    let registry = registry(Add);
    registry.register(DoubleSum).unwrap();
    let output = registry.execute::<DoubleSum>(DoubleSumInput { a: 1, b: 2 }).await.unwrap();
    assert_eq!(output.into_data(), 6);
}

#[operation(namespace = "old")]
#[deprecated = "use `add`"]
async fn subtract(a: i64, b: i64) -> i64 {
    a - b
}

#[tokio::test]
async fn a_deprecated_fn_warns_only_who_calls_it() {
    let output = registry(Subtract).execute::<Subtract>(SubtractInput { a: 3, b: 2 }).await.unwrap();
    assert_eq!(output.into_data(), 1);
}

macro_rules! identity {
    ($name:ident, $ty:ty) => {
        #[operation(namespace = "macros", kind = query)]
        async fn $name(value: &$ty) -> Result<$ty, ShopError> {
            Ok(value.clone())
        }
    };
}

identity!(same, Pet);

#[tokio::test]
async fn made_by_a_macro() {
    let output = registry(Same).execute::<Same>(SameInput { value: Pet::new(1, "Tom") }).await.unwrap();
    assert_eq!(output.into_data(), Pet::new(1, "Tom"));
}
