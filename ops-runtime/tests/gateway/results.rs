//! Results that are too long for a model.

use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::content::ContentBlock;
use ops_runtime::envelope::McpMeta;
use ops_runtime::gateway::ResultLimits;
#[cfg(feature = "program")]
use ops_runtime::gateway::Tools;
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{CallError, ResponseEnvelope};
use serde_json::{Value, json};

use crate::fixture::{Shop, owner, texts};

/// What `call` is to be called with to read on; `None` at the end.
fn read_on(note: &str) -> Option<Value> {
    let (_, arguments) = note.split_once("`call` ")?;
    Some(serde_json::from_str(arguments).unwrap())
}

#[tokio::test]
async fn a_long_result_is_read_in_parts() {
    let gateway = Shop::new().gateway().with_results(ResultLimits::new().with_max_shown(8_000)).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let mut result = client.call("call", json!({ "id": "shop.listPets" })).await;
    let mut ids = Vec::new();
    loop {
        let parts = texts(&result);
        assert!(parts[0].len() <= 8_000, "{} bytes", parts[0].len());
        let shown: Vec<Value> = serde_json::from_str(parts[0]).unwrap();
        ids.extend(shown.iter().filter_map(|pet| pet["id"].as_u64()));
        let Some(arguments) = parts.get(1).and_then(|note| read_on(note)) else { break };
        result = client.call("call", arguments).await;
    }
    // Each of them once.
    assert_eq!(ids, (0..2_000).collect::<Vec<u64>>());
    let wrong = client.call("call", json!({ "id": "results.read", "input": { "cursor": "x" } })).await;
    assert_eq!(wrong["isError"], true, "{wrong}");
}

#[cfg(feature = "program")]
#[tokio::test]
async fn a_long_result_of_a_program_is_read_in_parts() {
    let gateway = Shop::new().gateway().with_tools(Tools::Code).with_results(ResultLimits::new().with_max_shown(8_000));
    let mut client = owner(&gateway.build().await.unwrap()).await;
    let mut result = client.call("execute", json!({ "code": "return await ops.shop.listPets()" })).await;
    let mut ids = Vec::new();
    loop {
        let parts = texts(&result);
        let shown: Vec<Value> = serde_json::from_str(parts[0]).unwrap();
        ids.extend(shown.iter().filter_map(|pet| pet["id"].as_u64()));
        let Some((_, arguments)) = parts.get(1).and_then(|note| note.split_once("`execute` ")) else { break };
        result = client.call("execute", serde_json::from_str(arguments).unwrap()).await;
    }
    assert_eq!(ids, (0..2_000).collect::<Vec<u64>>());
    for (arguments, told) in [
        (json!({ "read": {} }), "`read` needs the `cursor`"),
        (json!({ "read": { "cursr": "x" } }), "no `cursr`: did you mean `cursor`?"),
        (json!({ "read": { "cursor": "x" } }), "no result has this cursor"),
        (json!({ "read": { "cursor": "x" }, "code": "return 1" }), "`read` stands alone"),
        (json!({}), "`code` has to be a text"),
        (json!({ "resume": "x", "approve": ["y"] }), "send the same code again"),
    ] {
        let wrong = client.call("execute", arguments.clone()).await;
        assert!(texts(&wrong)[0].contains(told), "{arguments}: {wrong}");
        assert_eq!(wrong["isError"], true, "{wrong}");
    }
}

#[tokio::test]
async fn images_beside_a_structured_result_are_shown() {
    static PHOTO: OperationSpec = OperationSpec::query("shop.photo");
    let answer = |_, _| async {
        let content = vec![ContentBlock::text(r#"{"pet":7}"#), ContentBlock::image("aGk=", "image/png")];
        let mut meta = McpMeta::new(false, content);
        meta.structured_content = Some(json!({ "pet": 7 }));
        Ok(serde_json::to_value(ResponseEnvelope::mcp(json!({ "pet": 7 }), meta)).unwrap())
    };
    let shop = Shop::new();
    shop.registry.register(Registration::new(&PHOTO, Handler::dynamic(answer))).unwrap();
    let gateway = shop.gateway().build().await.unwrap();
    let result = owner(&gateway).await.call("call", json!({ "id": "shop.photo" })).await;
    assert_eq!((texts(&result), &result["content"][1]["type"]), (vec![r#"{"pet":7}"#], &json!("image")), "{result}");
}

#[tokio::test]
async fn a_failed_tool_that_says_why_only_by_structure_is_heard() {
    static LOCK: OperationSpec = OperationSpec::query("shop.lock");
    let answer = |_, _| async {
        let mut meta = McpMeta::new(true, Vec::new());
        meta.structured_content = Some(json!({ "code": "LOCKED" }));
        Ok(serde_json::to_value(ResponseEnvelope::mcp(json!({ "code": "LOCKED" }), meta)).unwrap())
    };
    let shop = Shop::new();
    shop.registry.register(Registration::new(&LOCK, Handler::dynamic(answer))).unwrap();
    let gateway = shop.gateway().build().await.unwrap();
    let result = owner(&gateway).await.call("call", json!({ "id": "shop.lock" })).await;
    assert_eq!((texts(&result), &result["isError"]), (vec![r#"{"code":"LOCKED"}"#], &json!(true)), "{result}");
}

#[tokio::test]
async fn resources_beside_a_structured_result_are_shown() {
    static READ: OperationSpec = OperationSpec::query("shop.readFile");
    for (size, is_cut) in [(100, false), (20_000, true)] {
        let answer = move |_, _| async move {
            let resource =
                json!({ "type": "resource", "resource": { "uri": "file:///a.md", "text": "# ".repeat(size) } });
            // The text repeats the structured result; the resource does not.
            let content = vec![ContentBlock::text(r#"{"path":"a.md"}"#), serde_json::from_value(resource).unwrap()];
            let mut meta = McpMeta::new(false, content);
            meta.structured_content = Some(json!({ "path": "a.md" }));
            Ok(serde_json::to_value(ResponseEnvelope::mcp(json!({ "path": "a.md" }), meta)).unwrap())
        };
        let shop = Shop::new();
        shop.registry.register(Registration::new(&READ, Handler::dynamic(answer))).unwrap();
        let gateway = shop.gateway().with_results(ResultLimits::new().with_max_shown(8_000)).build().await.unwrap();
        let result = owner(&gateway).await.call("call", json!({ "id": "shop.readFile" })).await;
        let shown = texts(&result);
        assert_eq!(shown[0], r#"{"path":"a.md"}"#, "{result}");
        if is_cut {
            assert!(shown[1].contains("file:///a.md") && shown[1].len() <= 8_000, "{result}");
            assert!(read_on(shown[2]).is_some(), "{result}");
        } else {
            assert_eq!(result["content"][1]["resource"]["text"], "# ".repeat(size), "{result}");
        }
    }
}

#[tokio::test]
async fn reading_on_takes_its_input_as_a_text_too() {
    let gateway = Shop::new().gateway().with_results(ResultLimits::new().with_max_shown(8_000)).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let result = client.call("call", json!({ "id": "shop.listPets" })).await;
    let mut arguments = read_on(texts(&result)[1]).unwrap();
    let wanted = client.call("call", arguments.clone()).await;
    arguments["input"] = json!(arguments["input"].to_string());
    let read = client.call("call", arguments).await;
    assert_eq!((&read["isError"], texts(&read)[0]), (&json!(false), texts(&wanted)[0]), "{read}");
}

/// In JSON Schema, `50.0` is an integer.
#[tokio::test]
async fn reading_on_takes_a_whole_number_in_any_notation() {
    let gateway = Shop::new().gateway().with_results(ResultLimits::new().with_max_shown(8_000)).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let result = client.call("call", json!({ "id": "shop.listPets" })).await;
    let mut arguments = read_on(texts(&result)[1]).unwrap();
    for from in [json!(50), json!(50.0)] {
        arguments["input"]["from"] = from;
        let read = client.call("call", arguments.clone()).await;
        assert!(texts(&read)[0].starts_with(r#"[{"id":50,"name":"pet 50"},"#), "{arguments}: {read}");
    }
}

#[tokio::test]
async fn an_operation_may_have_the_id_of_reading_on() {
    static READ: OperationSpec = OperationSpec::query("results.read")
        .with_input(Schema::text(r#"{"type":"object","properties":{"cursor":{"type":["string","null"]}}}"#));
    let shop = Shop::new();
    let read = |input: Value, _| async move { Ok(json!({ "page": input["cursor"] })) };
    shop.registry.register(Registration::new(&READ, Handler::dynamic(read))).unwrap();
    let gateway = shop.gateway().with_results(ResultLimits::new().with_max_shown(8_000)).build().await.unwrap();
    let mut client = owner(&gateway).await;
    for cursor in [json!("2"), json!(null), json!(format!("{}.0", "0".repeat(32)))] {
        for input in [json!({ "cursor": cursor }), json!(json!({ "cursor": cursor }).to_string())] {
            let called = client.call("call", json!({ "id": "results.read", "input": input })).await;
            assert_eq!(texts(&called), [json!({ "page": cursor }).to_string()], "{input}: {called}");
        }
    }
    // The gateway's own cursors are still its own.
    let listed = client.call("call", json!({ "id": "shop.listPets" })).await;
    let next = client.call("call", read_on(texts(&listed)[1]).unwrap()).await;
    assert!(texts(&next)[0].starts_with(r#"[{"id":"#), "{next}");
}

/// What a model is shown of these content blocks, with 8,000 bytes for a result.
async fn result_of(content: Value) -> Value {
    static BLOCKS: OperationSpec = OperationSpec::query("shop.blocks");
    let content: Vec<ContentBlock> = serde_json::from_value(content).unwrap();
    let answer = move |_, _| {
        let content = content.clone();
        async move {
            let envelope = ResponseEnvelope::mcp(json!(null), McpMeta::new(false, content));
            Ok(serde_json::to_value(envelope).unwrap())
        }
    };
    let shop = Shop::new();
    shop.registry.register(Registration::new(&BLOCKS, Handler::dynamic(answer))).unwrap();
    let gateway = shop.gateway().with_results(ResultLimits::new().with_max_shown(8_000)).build().await.unwrap();
    owner(&gateway).await.call("call", json!({ "id": "shop.blocks" })).await
}

#[tokio::test]
async fn a_file_is_shown_with_its_whole_uri_or_not_at_all() {
    let file = |uri: &str, more: &str| {
        let resource = json!({ "uri": uri, "mimeType": "image/png", "blob": "aGk=", "_meta": { "more": more } });
        json!({ "type": "resource", "resource": resource })
    };
    let (uri, long) = (format!("https://files.test/{}", "x".repeat(300)), "x".repeat(9_000));
    let bare = json!({ "type": "resource", "resource": { "uri": uri, "mimeType": "image/png", "blob": "aGk=" } });
    let not_shown = json!({ "type": "text", "text": "And 1 more images, sounds or files, which are not shown." });
    for (content, shown) in [
        // The text alone is cut.
        (vec![json!({ "type": "text", "text": "x".repeat(40_000) }), file(&uri, "few")], vec![file(&uri, "few")]),
        (vec![file(&uri, &long)], vec![bare.clone()]),
        (vec![file(&long, "few"), file(&uri, "few")], vec![bare, not_shown]),
    ] {
        let result = result_of(json!(content)).await;
        let blocks = result["content"].as_array().unwrap();
        assert_eq!(blocks[blocks.len() - shown.len()..], shown, "{result}");
    }
}

/// Servers and documents say more than texts.
#[tokio::test]
async fn whatever_a_model_is_shown_has_the_room_of_a_result() {
    let long = "x".repeat(100_000);
    let image = json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" });
    let cases = [
        (json!([{ "type": "resource_link", "uri": "file:///a", "name": "a", "description": long }]), None),
        (
            json!([{ "type": "text", "text": "hi", "_meta": { "more": long } }]),
            Some(json!([{ "type": "text", "text": "hi" }])),
        ),
        (
            json!([{ "type": "image", "data": "aGk=", "mimeType": "image/png", "_meta": { "more": long } }]),
            Some(json!([image])),
        ),
        (
            json!(vec![image.clone(); 22]),
            Some({
                let mut shown = vec![image.clone(); 20];
                shown.push(
                    json!({ "type": "text", "text": "And 2 more images, sounds or files, which are not shown." }),
                );
                json!(shown)
            }),
        ),
    ];
    for (given, shown) in cases {
        let result = result_of(given).await;
        match shown {
            Some(shown) => assert_eq!(result["content"], shown),
            None => {
                let parts = texts(&result);
                assert!(parts[0].contains("file:///a") && parts[0].len() <= 8_000, "{} bytes", parts[0].len());
                assert!(read_on(parts[1]).is_some(), "{}", parts[1]);
            }
        }
    }
}

#[tokio::test]
async fn long_errors_and_descriptions_are_read_in_parts() {
    static BREAK: OperationSpec = OperationSpec::query("shop.break");
    let names: Vec<String> = (0..2_000).map(|n| format!("property{n}")).collect();
    let properties: serde_json::Map<String, Value> =
        names.iter().map(|name| (name.clone(), json!({ "type": "string" }))).collect();
    let mut wide = OperationSpec::query("shop.wide");
    wide.input = json!({ "type": "object", "required": names, "properties": properties }).into();
    let shop = Shop::new();
    let broken = |_, _| async { Err::<Value, _>(CallError::new("BROKEN", "x".repeat(100_000))) };
    let handlers = [
        Registration::new(&BREAK, Handler::dynamic(broken)),
        Registration::new(wide, Handler::dynamic(|_, _| async { Ok(json!(1)) })),
    ];
    shop.registry.register_all(handlers).unwrap();
    let gateway = shop.gateway().with_results(ResultLimits::new().with_max_shown(8_000)).build().await.unwrap();
    let mut client = owner(&gateway).await;
    for (tool, arguments, start, is_error) in [
        ("call", json!({ "id": "shop.break" }), "BROKEN: xxx", true),
        ("call", json!({ "id": "shop.wide" }), "VALIDATION_ERROR: ", true),
        ("describe", json!({ "id": "shop.wide" }), "declare namespace ops.shop {", false),
        ("describe", json!({ "id": "shop.wide", "detail": "whole" }), "declare namespace ops.shop {", false),
    ] {
        let result = client.call(tool, arguments.clone()).await;
        let parts = texts(&result);
        assert!(parts[0].starts_with(start) && result["isError"] == is_error, "{arguments}: {}", parts[0]);
        assert!(parts.iter().map(|part| part.len()).sum::<usize>() < 9_000, "{arguments}: {} bytes", parts[0].len());
        let next = client.call("call", read_on(parts[1]).unwrap()).await;
        assert_eq!(next["isError"], false, "{arguments}: {next}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_reading_on_is_named() {
    let gateway = Shop::new().gateway().build().await.unwrap();
    let mut client = owner(&gateway).await;
    for (input, told) in [
        (json!({}), "needs the `cursor`"),
        (json!({ "cursr": "x" }), "no `cursr`: did you mean `cursor`?"),
        (json!({ "cursor": "x", "form": 3 }), "no `form`"),
        (json!({ "cursor": "x", "from": -1 }), "`from` of `results.read` is a whole number from 0"),
        (json!({ "cursor": "x", "from": 1.5 }), "`from` of `results.read` is a whole number from 0"),
        (json!({ "cursor": 5 }), "`cursor` of `results.read` is a text"),
        (json!({ "cursor": "x" }), "no result has this cursor"),
    ] {
        let wrong = client.call("call", json!({ "id": "results.read", "input": input })).await;
        assert!(texts(&wrong)[0].contains(told), "{input}: {wrong}");
        assert_eq!(wrong["isError"], true, "{wrong}");
    }
}

#[tokio::test]
async fn the_texts_of_a_result_have_the_room_of_one() {
    static ROWS: OperationSpec = OperationSpec::query("shop.rows");
    for (rows, is_cut) in [(20, false), (3_000, true)] {
        let shop = Shop::new();
        // As servers give lists: a block for each item.
        let answer = move |_, _| async move {
            let mut content: Vec<ContentBlock> =
                (0..rows).map(|row| ContentBlock::text(format!("row {row}"))).collect();
            content.push(ContentBlock::image("aGk=", "image/png"));
            let envelope = ResponseEnvelope::mcp(json!(null), McpMeta::new(false, content));
            Ok(serde_json::to_value(envelope).unwrap())
        };
        shop.registry.register(Registration::new(&ROWS, Handler::dynamic(answer))).unwrap();
        let gateway = shop.gateway().with_results(ResultLimits::new().with_max_shown(8_000)).build().await.unwrap();
        let mut client = owner(&gateway).await;
        let mut result = client.call("call", json!({ "id": "shop.rows" })).await;
        assert!(result.to_string().contains("image/png"), "{result}");
        if !is_cut {
            assert_eq!(texts(&result).len(), rows, "{result}");
            continue;
        }
        let mut read = Vec::new();
        loop {
            let parts = texts(&result);
            assert!(parts.iter().map(|part| part.len()).sum::<usize>() < 9_000, "{result}");
            read.extend(serde_json::from_str::<Vec<String>>(parts[0]).unwrap());
            let Some(arguments) = parts.get(1).and_then(|note| read_on(note)) else { break };
            result = client.call("call", arguments).await;
        }
        assert_eq!(read, (0..rows).map(|row| format!("row {row}")).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn failed_items_of_a_subscription_are_told() {
    static PRICES: OperationSpec = OperationSpec::subscription("shop.prices");
    let shop = Shop::new();
    let items = |_, _| async move {
        let item = |n: u32| if n == 2 { Err(CallError::new("NO_PRICE", "it is gone")) } else { Ok(json!(n)) };
        Ok(futures_util::stream::iter((0..3).map(item)))
    };
    shop.registry.register(Registration::new(&PRICES, Handler::dynamic_stream(items))).unwrap();
    let gateway = shop.gateway().build().await.unwrap();
    let listed = owner(&gateway).await.call("call", json!({ "id": "shop.prices" })).await;
    assert_eq!(texts(&listed)[1..], ["1 item failed: in the list, it is `{ error }`."], "{listed}");
    assert_eq!(listed["isError"], true, "{listed}");
    #[cfg(feature = "program")]
    {
        let gateway = shop.gateway().with_tools(Tools::Code).build().await.unwrap();
        let code = "return (await ops.shop.prices()).length";
        let done = owner(&gateway).await.call("execute", json!({ "code": code })).await;
        let told = "1 item of `shop.prices` failed: in the list, it is `{ error }`.";
        assert_eq!((texts(&done), &done["isError"]), (vec!["3", told], &json!(false)), "{done}");
    }
}
