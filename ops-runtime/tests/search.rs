//! Searching for operations by words, on a small set and on hostile ones. `tests/search` measures it on large ones.
#![cfg(feature = "search")]

use std::time::{Duration, Instant};

use ops_runtime::binding::{HttpBinding, McpBinding, McpOutput};
use ops_runtime::search::SearchIndex;
use ops_runtime::spec::{Definition, OperationKind, OperationSpec, Schema};
use serde_json::json;

const REFUND: Schema = Schema::text(
    r#"{"properties":{"body":{"properties":{"payment":{"description":"The payment to give back."},"amount":{"type":"integer"}}}}}"#,
);

/// Operations of three APIs.
static SPECS: &[OperationSpec] = &[
    OperationSpec::mutation("pay.PostRefunds")
        .with_title("Create a refund")
        .with_description("Returns a payment to the customer, as a whole or in part.")
        .with_input(REFUND)
        .with_http(HttpBinding::new("POST", "/v1/refunds")),
    OperationSpec::query("pay.GetRefunds")
        .with_title("List all refunds")
        .with_http(HttpBinding::new("GET", "/v1/refunds")),
    OperationSpec::mutation("pay.DeleteSubscription")
        .with_description("<p>Cancels a customer's subscription.</p>")
        .with_http(HttpBinding::new("DELETE", "/v1/subscriptions/{id}")),
    OperationSpec::query("pay.GetCustomers")
        .with_title("List all customers")
        .with_http(HttpBinding::new("GET", "/v1/customers")),
    OperationSpec::query("code-api.pulls/list")
        .with_title("List pull requests")
        .with_http(HttpBinding::new("GET", "/repos/{owner}/{repo}/pulls").with_server("https://api.codehost.example")),
    OperationSpec::mutation("code-api.pulls/merge")
        .with_title("Merge a pull request")
        .with_http(HttpBinding::new("PUT", "/repos/{owner}/{repo}/pulls/{number}/merge")),
    OperationSpec::query("code-api.users/get-authenticated")
        .with_title("Get the authenticated user")
        .with_http(HttpBinding::new("GET", "/user")),
    OperationSpec::query("code-api.repos/list-legacy")
        .with_title("List repositories")
        .with_deprecated()
        .with_http(HttpBinding::new("GET", "/legacy/repos")),
    OperationSpec::query("code-api.repos/list")
        .with_title("List repositories")
        .with_http(HttpBinding::new("GET", "/repos")),
    OperationSpec::mutation("talk.create_message")
        .with_description("Send an SMS to a phone number.")
        .with_mcp(McpBinding::new("create_message", McpOutput::Content)),
    OperationSpec::query("talk.list_channels")
        .with_description("List all channels of a workspace")
        .with_mcp(McpBinding::new("list_channels", McpOutput::Content)),
];

fn first(question: &str) -> String {
    let hits = SearchIndex::new(SPECS).search(question, 1);
    hits.first().map(|hit| hit.id.clone().into_owned()).unwrap_or_default()
}

#[test]
fn questions_find_their_operation() {
    for (question, wanted) in [
        ("refund part of a payment", "pay.PostRefunds"),
        ("give somebody their money back", "pay.PostRefunds"),
        ("refunds so far", "pay.GetRefunds"),
        ("which refunds were made?", "pay.GetRefunds"),
        ("cancel a subscription", "pay.DeleteSubscription"),
        ("end a customer's subscription", "pay.DeleteSubscription"),
        ("list my open pull requests", "code-api.pulls/list"),
        ("merge a PR", "code-api.pulls/merge"),
        ("who am I logged in as", "code-api.users/get-authenticated"),
        ("send a text message", "talk.create_message"),
        ("my repos", "code-api.repos/list"),
        // By its name, or parts of it.
        ("PostRefunds", "pay.PostRefunds"),
        ("pulls/merge", "code-api.pulls/merge"),
        ("talk list_channels", "talk.list_channels"),
        // Typing errors, one word in two, two in one.
        ("subscripton cancel", "pay.DeleteSubscription"),
        ("list chanels", "talk.list_channels"),
        ("pullrequest merge", "code-api.pulls/merge"),
        ("code host pull requests", "code-api.pulls/list"),
    ] {
        assert_eq!(first(question), wanted, "{question}");
    }
}

#[test]
fn a_part_of_a_sentence_without_spaces_is_found() {
    let specs = [
        OperationSpec::query("shop.status").with_title("指定された注文の配送状況を確認する"),
        OperationSpec::mutation("shop.create").with_title("注文を作成する"),
        OperationSpec::query("shop.look").with_title("ค้นหาคำสั่งซื้อ"),
        OperationSpec::query("shop.prices").with_title("API一覧"),
    ];
    let index = SearchIndex::new(&specs);
    for (question, wanted) in [
        ("指定された注文の配送状況を確認する", "shop.status"),
        ("配送状況", "shop.status"),
        ("注文を作成", "shop.create"),
        ("คำสั่งซื้อ", "shop.look"),
        ("一覧", "shop.prices"),
    ] {
        let hits = index.search(question, 1);
        assert_eq!(hits.first().map(|hit| hit.id.as_ref()), Some(wanted), "{question}");
    }
}

#[test]
fn the_verb_of_a_question_chooses_among_operations_of_one_thing() {
    let make = |kind, name: &str, method: &'static str, path: &'static str| {
        OperationSpec::new(kind, "shop", name).unwrap().with_http(HttpBinding::new(method, path))
    };
    let (query, mutation) = (OperationKind::Query, OperationKind::Mutation);
    let specs = [
        make(query, "getPets", "GET", "/pets"),
        make(query, "getPet", "GET", "/pets/{id}"),
        make(mutation, "postPets", "POST", "/pets").with_title("Add a pet"),
        make(mutation, "putPet", "PUT", "/pets/{id}"),
        make(mutation, "deletePet", "DELETE", "/pets/{id}"),
    ];
    let index = SearchIndex::new(&specs);
    for (question, wanted) in [
        ("which pets are there", "shop.getPets"),
        ("list all pets", "shop.getPets"),
        ("create a pet", "shop.postPets"),
        ("make a new pet", "shop.postPets"),
        ("change a pet", "shop.putPet"),
        ("rename the pet", "shop.putPet"),
        ("get rid of a pet", "shop.deletePet"),
        ("throw a pet out", "shop.deletePet"),
        ("we don't need that pet any longer", "shop.deletePet"),
    ] {
        assert_eq!(index.search(question, 1)[0].id, wanted, "{question}");
    }
}

/// A phrase of the synonyms that stands for nothing here does not take its words away.
#[test]
fn words_of_a_phrase_without_operations_are_found() {
    let describe = |id, text| OperationSpec::query(id).with_description(text);
    let specs = [
        describe("depot.look_up", "Looks up a parcel."),
        describe("depot.weigh", "Weighs a parcel."),
        describe("depot.drivers", "Lists the drivers."),
    ];
    let index = SearchIndex::new(&specs);
    let found = |question: &str| {
        let hits = index.search(question, 10);
        let mut ids: Vec<String> = hits.iter().map(|hit| hit.id.clone().into_owned()).collect();
        ids.sort();
        ids
    };
    let parcels = ["depot.look_up", "depot.weigh"];
    assert_eq!(found("parcel"), parcels);
    for question in ["where is my parcel", "where is my parcel?", "where is my package", "track a package"] {
        assert_eq!(found(question), parcels, "{question}");
    }
}

#[test]
fn what_is_deprecated_comes_later() {
    let hits = SearchIndex::new(SPECS).search("list repositories", 2);
    let ids: Vec<&str> = hits.iter().map(|hit| hit.id.as_ref()).collect();
    assert_eq!(ids, ["code-api.repos/list", "code-api.repos/list-legacy"]);
    assert!(hits[0].score > hits[1].score);
}

#[test]
fn parameters_and_definitions_are_read() {
    let definitions = const { &[Definition::new("Order", r#"{"properties":{"giftWrapping":{"type":"boolean"}}}"#)] };
    let specs = [
        OperationSpec::mutation("a.first"),
        OperationSpec::mutation("a.second")
            .with_input(Schema::text(r##"{"$ref":"#/$defs/Order"}"##))
            .with_definitions(definitions),
    ];
    assert_eq!(SearchIndex::new(&specs).search("gift wrapping", 5)[0].id, "a.second");
}

#[test]
fn results_are_bounded_ordered_and_the_same_each_time() {
    let index = SearchIndex::new(SPECS);
    assert_eq!((index.len(), index.is_empty()), (SPECS.len(), false));
    let hits = index.search("list all customers and channels", 100);
    assert!(hits.is_sorted_by(|a, b| a.score >= b.score) && hits.iter().all(|hit| hit.score > 0.0), "{hits:?}");
    assert_eq!(hits, SearchIndex::new(SPECS).search("list all customers and channels", 100));
    assert_eq!(index.search("list all customers and channels", 3), hits[..3]);
    assert!(index.search("list", 0).is_empty());
    // The same operation under several names: the order in which they came.
    let twins = ["b.list", "a.list", "c.list"].map(|id| OperationSpec::query(id).with_title("List things"));
    let hits = SearchIndex::new(&twins).search("list things", 5);
    assert_eq!(hits.iter().map(|hit| hit.id.as_ref()).collect::<Vec<_>>(), ["b.list", "a.list", "c.list"]);
}

#[test]
fn what_has_no_words_finds_nothing() {
    let index = SearchIndex::new(SPECS);
    for question in ["", "   ", "the of a", "?!.,;:()", "\u{0}\u{7}\u{1b}", "\u{202e}\u{feff}", "zzqqxxyy"] {
        assert!(index.search(question, 5).is_empty(), "{question:?}");
    }
    assert!(SearchIndex::default().search("refund", 5).is_empty());
    assert!(SearchIndex::new(&[] as &[OperationSpec]).search("refund", 5).is_empty());
}

#[test]
fn hostile_operations_and_questions_cost_little() {
    let word = |n: usize| format!("w{n:x}x ");
    let deep = (0..500).fold(json!({}), |inner, n| json!({ "properties": { format!("p{n}"): inner } }));
    let wide: serde_json::Map<String, serde_json::Value> =
        (0..100_000).map(|n| (word(n), json!({ "description": "x ".repeat(20) }))).collect();
    let of = |name: &str| OperationSpec::new(OperationKind::Query, "n", name).unwrap();
    let mut specs = vec![
        of(&"listPets".repeat(50_000)),
        of("\u{0}\n\u{1b}[31m"),
        of(&"<".repeat(100_000)),
        of(&"aB".repeat(100_000)),
        of(&"\u{df}\u{130}".repeat(100_000)),
    ];
    let mut long = of("long");
    long.description = (0..1_000_000).map(word).collect::<String>().into();
    long.tags = (0..100_000).map(word).collect();
    let (mut nested, mut many) = (of("nested"), of("many"));
    nested.input = deep.into();
    many.input = json!({ "properties": wide }).into();
    let mut circle = of("circle").with_definitions(
        const { &[Definition::new("A", r##"{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/A"}]}"##)] },
    );
    circle.input = json!({ "$ref": "#/$defs/A" }).into();
    specs.extend([long, nested, many, circle]);

    let began = Instant::now();
    let index = SearchIndex::new(&specs);
    let questions = [
        (0..1_000_000).map(word).collect::<String>(),
        "<".repeat(1_000_000),
        "list ".repeat(1_000_000),
        "aB".repeat(1_000_000),
    ];
    for question in &questions {
        index.search(question, 10);
    }
    assert_eq!(index.search("nested", 1)[0].id, "n.nested");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[test]
fn ten_thousand_operations() {
    let verbs = ["list", "get", "create", "update", "delete"];
    let spec = |n: usize| {
        let (verb, thing) = (verbs[n % 5], n / 5);
        let kind = if n % 5 < 2 { OperationKind::Query } else { OperationKind::Mutation };
        let mut spec = OperationSpec::new(kind, &format!("api{}", n % 50), &format!("{verb}Thing{thing}s")).unwrap();
        spec.title = Some(format!("{verb} the things of kind number{thing}").into());
        spec.description =
            format!("This does what {verb} does for kind number{thing}, with all that belongs to it.").into();
        spec
    };
    let specs: Vec<OperationSpec> = (0..10_000).map(spec).collect();
    let index = SearchIndex::new(&specs);
    assert_eq!(index.len(), 10_000);
    assert_eq!(index.search("remove number77", 1)[0].id, "api39.deleteThing77s");
    assert_eq!(index.search("listThing1234s", 1)[0].id, "api20.listThing1234s");
}
