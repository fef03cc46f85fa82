//! The three tools, and what a model reads of mistakes.

use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::gateway::Tools;
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};

use crate::fixture::{Shop, owner, text};

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
}

#[tokio::test]
async fn a_mistake_says_how_to_go_on() {
    let gateway = Shop::new().gateway().build().await.unwrap();
    let mut client = owner(&gateway).await;
    let cases: [(&str, Value, &[&str]); 7] = [
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
        ("call", json!({ "id": "shop.shwPet", "input": {} }), &["no operation `shop.shwPet`", "`shop.showPet`"]),
        ("call", json!({ "id": "shop.showPet", "input": { "petId": 8 } }), &["NO_PET: there is no such pet"]),
        (
            "describe",
            json!({ "id": "showPet" }),
            &["no operation `showPet`", "shop.showPet: Shows a pet by its number."],
        ),
        ("search", json!({ "query": "pet", "namespace": "shp" }), &["no namespace `shp`", "`shop`"]),
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
