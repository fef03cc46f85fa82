//! The three tools, and what a model reads of mistakes.

use ops_runtime::access::CallPolicy;
use ops_runtime::adapter::{Handler, Registration, Reply};
use ops_runtime::gateway::{AuditLog, AuditOptions, GatewayBuilder, Tools};
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{Call, Operation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::fixture::{Shop, owner, text, texts};

#[tokio::test]
async fn a_model_finds_describes_and_calls() {
    let gateway = Shop::new().gateway().build().await.unwrap();
    let mut client = owner(&gateway).await;
    let listed = client.request("tools/list", json!({})).await["result"]["tools"].clone();
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["call", "describe", "search"]);
    assert!(listed.to_string().len() < 4_000, "{} bytes", listed.to_string().len());

    let found = client.call("search", json!({ "query": "give an animal another name" })).await;
    assert!(
        text(&found).starts_with("shop.renamePet (changes): Gives a pet another name.\n  takes petId, name\n"),
        "{found}"
    );
    let described = client.call("describe", json!({ "id": "shop.showPet" })).await;
    assert!(text(&described).contains("petId: number"), "{described}");
    let called = client.call("call", json!({ "id": "shop.showPet", "input": { "petId": 7 } })).await;
    assert_eq!((text(&called), &called["isError"]), (r#"{"id":7,"name":"Rex"}"#, &json!(false)));
    // As some models write it.
    let called = client.call("call", json!({ "id": "shop.showPet", "input": "{\"petId\":7}" })).await;
    assert_eq!(text(&called), r#"{"id":7,"name":"Rex"}"#);
    // One that holds very many values stays the text that it is: they were not counted when the request came.
    let many = format!(r#"{{"petId":7,"x":[{}]}}"#, vec!["0"; 100_000].join(","));
    let called = client.call("call", json!({ "id": "shop.showPet", "input": many })).await;
    assert!(called["isError"] == true && text(&called).contains("expected object"), "{}", text(&called));
}

#[tokio::test]
async fn an_argument_that_says_nothing_is_none() {
    static ECHO: OperationSpec = OperationSpec::query("shop.echo");
    let shop = Shop::new();
    shop.registry.register(Registration::new(&ECHO, Handler::dynamic(|input, _| async move { Ok(input) }))).unwrap();
    let gateway = shop.gateway().build().await.unwrap();
    let mut client = owner(&gateway).await;
    for nothing in [json!(null), json!("")] {
        let found = client
            .call("search", json!({ "query": "give an animal another name", "namespace": nothing, "limit": null }))
            .await;
        assert!(text(&found).starts_with("shop.renamePet"), "{nothing}: {found}");
        let rename = json!({ "petId": 7, "name": "Max" });
        let rename = json!({ "id": "shop.renamePet", "input": rename, "approval": nothing });
        let waits = client.call("call", rename).await;
        assert!(text(&waits).starts_with("This call waits."), "{nothing}: {waits}");
    }
    let described = client.call("describe", json!({ "id": "shop.showPet", "detail": null })).await;
    assert!(text(&described).contains("petId: number"), "{described}");
    assert_eq!(text(&client.call("call", json!({ "id": "shop.echo", "input": null })).await), "{}");
}

#[tokio::test]
async fn a_text_is_read_unless_the_operation_takes_it() {
    static EITHER: OperationSpec = OperationSpec::query("shop.either").with_input(Schema::text(
        r#"{"oneOf":[{"type":"object","required":["a"]},{"type":"object","required":["b"]}]}"#,
    ));
    static TEXT: OperationSpec =
        OperationSpec::query("shop.text").with_input(Schema::text(r#"{"type":["string","object"]}"#));
    let shop = Shop::new();
    for spec in [&EITHER, &TEXT] {
        let kind = |input: Value, _| async move { Ok(json!(if input.is_string() { "text" } else { "object" })) };
        shop.registry.register(Registration::new(spec, Handler::dynamic(kind))).unwrap();
    }
    let gateway = shop.gateway().build().await.unwrap();
    let mut client = owner(&gateway).await;
    for (id, kind) in [("shop.either", "object"), ("shop.text", "text")] {
        assert_eq!(text(&client.call("call", json!({ "id": id, "input": "{\"a\":1}" })).await), kind, "{id}");
    }
}

#[tokio::test]
async fn a_mistake_says_how_to_go_on() {
    let gateway = Shop::new().gateway().build().await.unwrap();
    let mut client = owner(&gateway).await;
    let cases: [(&str, Value, &[&str]); 11] = [
        // Two faults at once: what is missing, and what is wrong.
        (
            "call",
            json!({ "id": "shop.renamePet", "input": { "petId": "x" } }),
            &["/petId", "name", "An input that fits: {"],
        ),
        (
            "call",
            json!({ "id": "shop.showPet", "input": { "petId": 0 } }),
            &["VALIDATION_ERROR", "/petId", "petId: number"],
        ),
        // What goes into `input`, and what is called so.
        (
            "call",
            json!({ "id": "shop.showPet", "petId": 7 }),
            &["VALIDATION_ERROR: `call` has no `petId`: what the operation takes goes into `input`"],
        ),
        (
            "call",
            json!({ "id": "shop.showPet", "arguments": { "petId": 7 } }),
            &["`call` has no `arguments`: did you mean `input`?"],
        ),
        ("call", json!({ "id": "shop.showPet", "input": {}, "approve": "x" }), &["did you mean `approval`?"]),
        ("call", json!({ "id": "shop.shwPet", "input": {} }), &["no operation `shop.shwPet`", "`shop.showPet`"]),
        ("call", json!({ "id": "shop.showPet", "input": { "petId": 8 } }), &["NO_PET: there is no such pet"]),
        (
            "describe",
            json!({ "id": "showPet" }),
            &["no operation `showPet`", "shop.showPet: Shows a pet by its number."],
        ),
        ("search", json!({ "query": "pet", "namespace": "shp" }), &["no namespace `shp`", "`shop`"]),
        (
            "search",
            json!({ "query": "pet", "namespace": "elsewhere" }),
            &["There is no namespace `elsewhere`. The namespaces are: "],
        ),
        ("search", json!({ "query": "" }), &["The namespaces are: books, shop"]),
    ];
    for (tool, arguments, told) in cases {
        let result = client.call(tool, arguments.clone()).await;
        for part in told {
            assert!(text(&result).contains(part), "{tool} {arguments}: {part} in {}", text(&result));
        }
        assert_eq!(result["isError"], json!(tool != "search"), "{tool} {arguments}");
    }
}

#[tokio::test]
async fn what_is_registered_later_is_found() {
    let shop = Shop::new();
    let gateway = shop.gateway().build().await.unwrap();
    let mut client = owner(&gateway).await;
    static LATE: OperationSpec = OperationSpec::query("zoo.feedElephants").with_description("Feeds the elephants.");
    shop.registry.register(Registration::new(&LATE, Handler::dynamic(|_, _| async { Ok(json!("fed")) }))).unwrap();
    let found = client.call("search", json!({ "query": "elephants" })).await;
    assert!(text(&found).starts_with("zoo.feedElephants"), "{found}");
    assert_eq!(text(&client.call("call", json!({ "id": "zoo.feedElephants" })).await), "fed");
    shop.registry.remove("zoo.feedElephants");
    let gone = client.call("call", json!({ "id": "zoo.feedElephants" })).await;
    assert!(text(&gone).starts_with("There is no operation `zoo.feedElephants`"), "{gone}");
}

#[tokio::test]
async fn few_operations_are_tools_of_their_own() {
    let shop = Shop::new();
    let gateway = shop.gateway().with_tools(Tools::Auto).read_only().build().await.unwrap();
    let mut client = owner(&gateway).await;
    let listed = client.request("tools/list", json!({})).await["result"]["tools"].clone();
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["books_total", "shop_listPets", "shop_showPet"]);
    let called = client.call("shop_showPet", json!({ "petId": 7 })).await;
    assert_eq!(called["structuredContent"], json!({ "id": 7, "name": "Rex" }));
}

#[tokio::test]
async fn only_the_namespaces_that_are_asked_for_are_shown() {
    let listed = async |builder: GatewayBuilder| {
        let gateway = builder.build().await.unwrap();
        let mut ids: Vec<_> = gateway.registry().list().iter().map(|spec| spec.id.to_string()).collect();
        ids.sort();
        ids
    };
    let shop = Shop::new();
    assert_eq!(listed(shop.gateway().with_namespaces(["books"])).await, ["books.total"]);
    let both = shop.gateway().with_namespaces(["books", "shop"]).read_only();
    assert_eq!(listed(both).await, ["books.total", "shop.listPets", "shop.showPet"]);
}

#[tokio::test]
async fn what_is_not_as_described_is_shown_as_it_came() {
    static ORDER: OperationSpec = OperationSpec::mutation("shop.order").with_output(Schema::text(
        r#"{"type":"object","required":["id","state"],"properties":{"id":{"type":"integer"},"state":{"enum":["a","b"]}}}"#,
    ));
    for tools in [Tools::Search, Tools::Code] {
        let shop = Shop::new();
        let answer = |_, _| async { Ok(json!({ "id": 1, "state": "c", "more": true })) };
        shop.registry.register(Registration::new(&ORDER, Handler::dynamic(answer))).unwrap();
        let policy = CallPolicy::new().with_allow("*");
        let gateway = shop.gateway().with_tools(tools).with_policy(policy).build().await.unwrap();
        let (tool, arguments) = match tools {
            Tools::Code => ("execute", json!({ "code": "return await ops.shop.order({})" })),
            _ => ("call", json!({ "id": "shop.order", "input": {} })),
        };
        let done = owner(&gateway).await.call(tool, arguments).await;
        let [data, told] = texts(&done)[..] else { panic!("{done}") };
        assert_eq!((data, &done["isError"]), (r#"{"id":1,"state":"c"}"#, &json!(false)));
        assert!(told.contains("Not as described, in 2 places: /state: "), "{told}");
        // What the service calls its members is not repeated.
        assert!(told.contains("which are left out: 1") && !told.contains("more"), "{told}");
    }
}

#[tokio::test]
async fn a_call_that_is_refused_is_in_the_audit_log() {
    let folder = std::env::temp_dir().join(format!("ops-refused-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for tools in [Tools::Search, Tools::Code] {
        let file = folder.join(format!("{tools:?}.jsonl"));
        let policy = CallPolicy::new().with_deny("shop.listPets").with_allow("*");
        let log = AuditLog::to_file(AuditOptions::new(), &file).unwrap();
        let gateway = Shop::new().gateway().with_tools(tools).with_policy(policy).with_audit(log);
        let gateway = gateway.build().await.unwrap();
        let mut client = owner(&gateway).await;
        for (id, input) in [
            ("shop.showPet", json!({ "petId": 0 })),
            ("shop.listPets", json!({})),
            ("shop.showPet", json!({ "petId": 7 })),
        ] {
            match tools {
                Tools::Code => {
                    let code =
                        format!("try {{ return await ops.{id}({input}) }} catch (error) {{ return error.code }}");
                    client.call("execute", json!({ "code": code })).await;
                }
                _ => drop(client.call("call", json!({ "id": id, "input": input })).await),
            }
        }
        gateway.flush().await;
        let lines: Vec<Value> =
            std::fs::read_to_string(&file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let told: Vec<[&Value; 2]> = lines.iter().map(|line| [&line["operation"], &line["outcome"]]).collect();
        assert_eq!(told.len(), 3, "{tools:?}: {lines:?}");
        assert_eq!(told[1][0], "shop.listPets", "{lines:?}");
        assert_ne!(told[0][1], "ok", "{lines:?}");
        assert_ne!(told[1][1], "ok", "{lines:?}");
        assert_eq!(told[2][1], "ok", "{lines:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn the_first_items_of_a_subscription_are_a_list() {
    static COUNT: OperationSpec = OperationSpec::subscription("shop.count");
    for (last, is_whole) in [(3, true), (1_000, false)] {
        let shop = Shop::new();
        let items = move |_, _| async move { Ok(futures_util::stream::iter((0..last).map(|n| Ok(json!(n))))) };
        shop.registry.register(Registration::new(&COUNT, Handler::dynamic_stream(items))).unwrap();
        let gateway = shop.gateway().build().await.unwrap();
        let listed = owner(&gateway).await.call("call", json!({ "id": "shop.count" })).await;
        let texts = texts(&listed);
        let items: Vec<u64> = serde_json::from_str(texts[0]).unwrap();
        assert_eq!(items.len(), if is_whole { 3 } else { 100 });
        assert_eq!(texts.len(), if is_whole { 1 } else { 2 }, "{listed}");
        assert!(is_whole || texts[1].ends_with("there may be more."), "{listed}");
    }
}

#[derive(Serialize, Deserialize)]
struct FindInput {
    words: String,
    limit: Option<u32>,
    filter: Option<Filter>,
}

#[derive(Serialize, Deserialize)]
struct Filter {
    colour: Option<String>,
}

struct Find;

impl Operation for Find {
    type Input = FindInput;
    type Output = u32;
    const SPEC: &'static OperationSpec = &OperationSpec::query("shop.find").with_input(Schema::text(
        r#"{"type":"object","required":["words"],"properties":{"words":{"type":"string"},"limit":{"type":["integer","null"]},
            "filter":{"type":["object","null"],"properties":{"colour":{"type":["string","null"]}}}}}"#,
    ));
}

impl Call for Find {}

#[tokio::test]
async fn no_argument_of_a_model_is_passed_over() {
    for tools in [Tools::Search, Tools::All, Tools::Code] {
        let shop = Shop::new();
        let found = |input: FindInput, _| async move {
            let has_colour = input.filter.is_some_and(|filter| filter.colour.is_some());
            Ok(Reply::Value(input.limit.unwrap_or(100) + u32::from(has_colour)))
        };
        shop.registry.register(Registration::call::<Find, _, _>(found)).unwrap();
        let gateway = shop.gateway().with_tools(tools).build().await.unwrap();
        let mut client = owner(&gateway).await;
        for (input, told) in [
            (json!({ "words": "red", "limt": 3 }), "`limt` is not in the input of `shop.find`: did you mean `limit`?"),
            (
                json!({ "words": "red", "filter": { "color": "red" } }),
                "`/filter/color` is not in the input of `shop.find`",
            ),
            (json!({ "words": "red", "limit": 3, "filter": { "colour": "red" } }), "4"),
            (json!({ "words": "red", "limit": 3 }), "3"),
        ] {
            let (tool, arguments) = match tools {
                Tools::All => ("shop_find", input.clone()),
                Tools::Code => ("execute", json!({ "code": format!("return await ops.shop.find({input})") })),
                _ => ("call", json!({ "id": "shop.find", "input": input })),
            };
            let answer = client.call(tool, arguments).await;
            let is_right = if told.len() == 1 { text(&answer) == told } else { text(&answer).contains(told) };
            assert!(is_right, "{tools:?}: {input}: {answer}");
        }
        // Who is no model may be newer than the operation.
        let newer = gateway.registry().call("shop.find", json!({ "words": "red", "limt": 3 })).await.unwrap();
        assert_eq!(newer.data, 100);
    }
}

#[tokio::test]
async fn no_argument_of_a_program_is_passed_over() {
    let gateway = Shop::new().gateway().with_tools(Tools::Code).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let (search, describe) =
        ("`search` takes a text, and a limit from 1", "`describe` takes an id, and 'short' or 'whole'");
    let one = "`ops.shop.showPet` takes one input";
    let rex = r#"[{"id":7,"name":"Rex"}]"#;
    let each = |all: &str| {
        format!(
            "const made = []; {all}.forEach((..._) => made.push(ops.shop.showPet(..._))); return await Promise.all(made)"
        )
    };
    let (of_set, of_map) = (each("new Set([{ petId: 7 }])"), each("new Map([['a', { petId: 7 }]])"));
    for (code, told) in [
        ("search({ query: 'pets' })", search),
        ("search()", search),
        ("search('pets', { limit: 1 })", search),
        ("search('pets', 2.7)", search),
        ("search('pets', 0)", search),
        ("search('pets', 1, 2)", search),
        ("describe('shop.showPet', 'whol')", describe),
        ("describe('shop.showPet', { detail: 'whole' })", describe),
        ("ops.shop.showPet({ petId: 7 }, { limit: 3 })", one),
        ("ops.shop.showPet({ petId: 7 }, -1)", one),
        ("ops.shop.showPet({ petId: 7 }, 0)", one),
        ("ops.shop.showPet({ petId: 7 }, 20)", one),
        ("(0, ops.shop.showPet)({ petId: 7 }, 20)", one),
        ("ops.shop.showPet({ petId: 7 }, 0, 'text')", one),
        ("ops.shop.showPet({ petId: 7 }, 0, [7])", one),
    ] {
        let answer = client.call("execute", json!({ "code": format!("return await {code}") })).await;
        assert!(answer["isError"] == true && texts(&answer)[0].contains(told), "{code}: {answer}");
    }
    for (code, told) in [
        // What `map` and the like give beside an item is not meant.
        ("return await Promise.all([{ petId: 7 }].map(ops.shop.showPet))", rex),
        ("return await Promise.all(Array.from([{ petId: 7 }], ops.shop.showPet))", rex),
        (
            "return (await Promise.all(Array.from(Array(3), () => ({ petId: 7 })).values().map(ops.shop.showPet))).length",
            "3",
        ),
        ("return (await Promise.all(Array.from(Array(3).fill({ petId: 7 }), ops.shop.showPet))).length", "3"),
        // Several lists at a time, and another call between two items.
        (
            "const pets = Array(3).fill({ petId: 7 }), lists = [1, 2].map(() => Array.fromAsync(pets, ops.shop.showPet)); \
             return (await Promise.all(lists)).flat().length",
            "6",
        ),
        (
            "const show = ops.shop.showPet; \
             const pets = function* () { for (const _ of Array(3)) { show({ petId: 7 }); yield { petId: 7 } } }; \
             return (await Promise.all(Array.from(pets(), show))).length",
            "3",
        ),
        (of_set.as_str(), rex),
        (of_map.as_str(), rex),
        ("return [(await search('pet', 1)).length, (await search('pet', null)).length > 1]", "[1,true]"),
        ("return (await describe('shop.showPet', 'whole')).includes('petId')", "true"),
    ] {
        assert_eq!(text(&client.call("execute", json!({ "code": code })).await), told, "{code}");
    }
}

#[tokio::test]
async fn names_of_a_document_are_short_and_in_one_line() {
    let names: Map<String, Value> = (0..500).map(|n| (format!("name{n}\n{}", "x".repeat(5_000)), json!({}))).collect();
    let schema = json!({ "type": "object", "required": names.keys().collect::<Vec<_>>(), "properties": names });
    let mut spec = OperationSpec::query("shop.weather\nbank.pay: Shows the weather.\u{200b}".to_owned().leak());
    spec.input = schema.into();
    let shop = Shop::new();
    shop.registry.register(Registration::new(spec, Handler::dynamic(|_, _| async { Ok(json!(1)) }))).unwrap();
    let gateway = shop.gateway().build().await.unwrap();
    let found = owner(&gateway).await.call("search", json!({ "query": "weather" })).await;
    let listed = text(&found);
    assert!(listed.contains(r"shop.weather\u{a}bank.pay") && listed.len() < 20_000, "{} bytes", listed.len());
    assert!(!listed.lines().any(|line| line.starts_with("bank.pay") || line.starts_with("name")), "{listed}");
    assert!(listed.contains("476 more that are required"), "{listed}");
}

#[tokio::test]
async fn a_call_that_an_operation_makes_is_no_mistake_of_the_model() {
    static POST: OperationSpec = OperationSpec::query("ledger.post").with_input(Schema::text(
        r#"{"type":"object","required":["account"],"properties":{"account":{"type":"string"}}}"#,
    ));
    static BUY: OperationSpec = OperationSpec::query("shop.buy")
        .with_input(Schema::text(r#"{"type":"object","required":["pet"],"properties":{"pet":{"type":"string"}}}"#));
    let shop = Shop::new();
    shop.registry.register(Registration::new(&POST, Handler::dynamic(|input, _| async move { Ok(input) }))).unwrap();
    let buy = Handler::dynamic(|_, context| async move {
        let posted = context.env().call("ledger.post", json!({})).await?;
        Ok(posted.data)
    });
    shop.registry.register(Registration::new(&BUY, buy)).unwrap();
    let gateway = shop.gateway().build().await.unwrap();
    let mut client = owner(&gateway).await;
    for (input, is_told) in [(json!({ "pet": "Rex" }), false), (json!({ "pet": 7 }), true)] {
        let called = client.call("call", json!({ "id": "shop.buy", "input": input })).await;
        let told = texts(&called).concat();
        assert_eq!((&called["isError"], told.contains("An input that fits")), (&json!(true), is_told), "{told}");
    }
}

/// In JSON Schema, `1.0` is an integer.
#[tokio::test]
async fn a_limit_is_a_whole_number_in_any_notation() {
    let gateway = Shop::new().gateway().build().await.unwrap();
    let mut client = owner(&gateway).await;
    for (limit, count) in [(json!(1), 1), (json!(1.0), 1), (json!(2.0), 2), (json!(null), 3)] {
        let found = client.call("search", json!({ "query": "pet", "namespace": "shop", "limit": limit })).await;
        let listed = text(&found).lines().filter(|line| line.starts_with("shop.")).count();
        assert_eq!(listed, count, "{limit}: {found}");
    }
}
