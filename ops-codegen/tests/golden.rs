//! Golden files: one document and one module a topic. `UPDATE_GOLDEN=1` writes the modules anew.
//!
//! All modules are part of this test, so that they compile without a warning, and read and write JSON.
#![deny(warnings)]
#![allow(unreachable_pub, clippy::doc_markdown, clippy::needless_pass_by_value, clippy::upper_case_acronyms)]

use std::path::{Path, PathBuf};

use ops_codegen::{Builder, Format, Generator};
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};

#[deny(missing_docs)]
mod golden {
    //! The generated modules.
    macro_rules! topics {
        ($($name:ident $path:literal)*) => {
            $(/// A topic.
            #[path = $path]
            pub mod $name;)*
            pub const TOPICS: &[&str] = &[$(stringify!($name)),*];
        };
    }
    topics! {
        alike "alike.rs"
        all_of "all_of.rs"
        chat "chat.rs"
        collisions "collisions.rs"
        defaults "defaults.rs"
        enums "enums.rs"
        formats "formats.rs"
        hostile "hostile.rs"
        hostile_tools "hostile_tools.rs"
        operations "operations.rs"
        records "records.rs"
        recursion "recursion.rs"
        requests "requests.rs"
        server "server.rs"
        settings "settings.rs"
        statuses "statuses.rs"
        switches "switches.rs"
        tools "tools.rs"
        unions "unions.rs"
        webhooks "webhooks.rs"
        webhooks_alone "webhooks_alone.rs"
    }
}

/// Types of the user's, for the topic `settings`.
mod own {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// An amount in cents; text in JSON, such as `12.50 EUR`.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    pub struct Money {
        pub cents: u64,
        pub currency: String,
    }

    impl Serialize for Money {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(&format_args!("{}.{:02} {}", self.cents / 100, self.cents % 100, self.currency))
        }
    }

    impl<'de> Deserialize<'de> for Money {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            let read = || {
                let (amount, currency) = text.split_once(' ')?;
                Some(Self { cents: amount.replace('.', "").parse().ok()?, currency: currency.to_owned() })
            };
            read().ok_or_else(|| serde::de::Error::custom("no amount"))
        }
    }

    /// A variant of a tagged union, which does not know of the tag.
    #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub struct Card {
        pub number: String,
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct Problem {
        pub title: String,
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The settings of the topic that is about them.
fn settings(generator: Generator) -> Result<Generator, ops_codegen::Error> {
    generator
        .with_type("Money", "crate::own::Money")?
        .with_type("Card", "crate::own::Card")?
        .with_type("Problem", "crate::own::Problem")?
        .with_type("Count", "std::num::NonZeroU32")?
        .with_rust_types()
        .with_renamed_type("com.example.OrderV2", "Order")?
        .with_renamed_type("ComExampleOrderV2Type", "OrderKind")?
        .with_renamed_field("com.example.OrderV2", "type", "kind")?
        .with_renamed_field("CreateOrderInput", "X-Page", "page")?
        .with_derive("*", "Eq")?
        .with_derive("*", "Hash")?
        .with_derive("Cash", "Copy")?
        .with_derive("Box", "Default")?
        .with_derive("Box", "PartialOrd")?
        .with_derive("OrderLost", "Ord")
        .map(|generator| generator.with_schema("Order*"))
}

fn generate(topic: &str) -> String {
    let document = folder().join(format!("{topic}.json"));
    let mut generator = Generator::new();
    if topic == "formats" {
        for format in [Format::DateTime, Format::Date, Format::Uuid, Format::Uri] {
            generator = generator.with_format(format);
        }
    }
    if matches!(topic, "server" | "statuses") {
        generator = generator.with_server();
    }
    if topic == "settings" {
        generator = settings(generator).unwrap();
    }
    let modules = Builder::new().with_generator(generator).document(document).generate().unwrap();
    modules.into_iter().next().unwrap().generated.source
}

#[test]
fn modules_are_as_they_were() {
    let mut topics: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    topics.sort();
    assert_eq!(topics, golden::TOPICS, "every document is in the list of modules");
    for topic in topics {
        let path = folder().join(format!("{topic}.rs"));
        let source = generate(&topic);
        syn::parse_file(&source).unwrap();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &source).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(source == expected, "{topic} differs: run with UPDATE_GOLDEN=1 and review the difference");
    }
}

/// What is read as a type is written as it was.
fn round_trip<T: serde::de::DeserializeOwned + serde::Serialize>(json: Value) -> T {
    let value: T = serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{error} in {json}"));
    assert_eq!(serde_json::to_value(&value).unwrap(), json);
    value
}

#[test]
fn records_read_and_write() {
    use golden::records::{Labels, Open, Pair, Pet, Wide};
    let pet: Pet = round_trip(json!({
        "id": 1, "name": "Rex", "owner": null, "big": 18_446_744_073_709_551_615_u64,
        "address": { "street": "Elm", "kind": "barn" },
    }));
    assert_eq!((pet.owner, pet.weight, pet.tag), (None, None, None));
    let pet: Pet =
        serde_json::from_value(json!({ "id": 1, "name": "x", "owner": "y", "tag": null, "weight": null })).unwrap();
    assert_eq!((pet.tag, pet.weight), (None, None), "`null` is read as nothing");
    let error = serde_json::from_value::<Pet>(json!({})).unwrap_err().to_string();
    assert!(error.contains("`id`, `name`, `owner`"), "{error}");
    let open: Open = round_trip(json!({ "id": 1, "a": 2, "b": 3 }));
    assert_eq!(open.extra.len(), 2);
    let _: Labels = round_trip(json!({ "a": "b" }));
    let pair: Pair = round_trip(json!(["a", 1]));
    assert_eq!(pair, ("a".to_owned(), 1));
    let _: Wide = round_trip(json!({ "field0": "a", "field13": "b" }));
}

#[test]
fn defaults_are_those_of_the_schema() {
    use golden::defaults::{Settings, SettingsLevel, Tagged, Zero};
    let settings: Settings = serde_json::from_value(json!({})).unwrap();
    assert_eq!(settings, Settings::default());
    assert_eq!((settings.limit, settings.ratio, settings.name.as_str()), (20, 0.5, "no \"name\""));
    assert_eq!((settings.on, settings.off, settings.level), (true, false, SettingsLevel::High));
    assert_eq!((settings.nothing, settings.maybe), (None, Some(3)));
    assert_eq!(settings.any, json!({ "a": [1, 2.5, null, "x"] }));
    let settings: Settings = serde_json::from_value(json!({ "limit": null, "maybe": null })).unwrap();
    assert_eq!((settings.limit, settings.maybe), (20, None));
    assert_eq!(Zero::default(), serde_json::from_value(json!({})).unwrap());
    assert_eq!(serde_json::to_value(Tagged::default()).unwrap(), json!({ "kind": "tagged" }));
    assert!(serde_json::from_value::<Tagged>(json!({})).is_err(), "a constant is demanded all the same");
}

#[test]
fn defaults_of_any_json_are_printed() {
    use golden::defaults::{Odd, OddNumber, OddOne, Plain};
    let odd: Odd = serde_json::from_value(json!({})).unwrap();
    assert_eq!((&odd.object, &odd.list), (&json!({}), &json!([])));
    assert_eq!(odd.nested, json!({ "a": {}, "b": [[], {}], "c": null }));
    assert_eq!((odd.max, odd.any_max, odd.any_min), (u64::MAX, json!(u64::MAX), json!(i64::MIN)));
    assert_eq!((odd.min, odd.whole, odd.huge), (i64::MIN, 20, 1e300));
    assert!(odd.minus.is_sign_negative() && odd.any_minus.as_f64().unwrap().is_sign_negative());
    assert_eq!((odd.nan, odd.misfit, odd.node), (None, None, None), "what fits no type is no default");
    assert_eq!(odd.counts, [("a".to_owned(), 1), ("b \"c\"".to_owned(), -2)].into());
    assert_eq!(odd.lists, [("a".to_owned(), vec![]), ("b".to_owned(), vec![1.0])].into());
    assert_eq!((odd.empty.len(), odd.rows), (0, vec![vec![], vec![1]]));
    assert_eq!((odd.maybes, odd.pair), (vec![None, Some("a".to_owned())], (None, json!({}))));
    assert_eq!((odd.one, odd.number, odd.plain), (OddOne::Only, OddNumber::N1, Plain::default()));
}

#[test]
fn defaults_may_be_objects_and_variants() {
    use golden::defaults::{Figure, Inner, Limits, Whole};
    let whole: Whole = serde_json::from_value(json!({})).unwrap();
    assert_eq!(whole, Whole::default());
    let limits = |unit: &str, least| Limits { unit: unit.to_owned(), least, most: None, extra: [].into() };
    assert_eq!(whole.empty, limits("kg", 1), "the defaults of its properties are inside");
    assert_eq!(whole.some, Limits { most: Some(5), extra: [("strict".to_owned(), true)].into(), ..limits("t", 1) });
    assert_eq!((whole.wrong, whole.lost, whole.self_), (None, None, None), "what fits no type is no default");
    let expected = json!({ "kind": "circle", "radius": 2.0 });
    assert_eq!(serde_json::to_value(&whole.figure).unwrap(), expected);
    let line: Figure =
        serde_json::from_value(json!({ "kind": "ray", "to": { "most": 1, "unit": "kg", "least": 1 } })).unwrap();
    assert_eq!(whole.line, line);
    assert_eq!(serde_json::to_value(&whole.either).unwrap(), json!(5));
    assert_eq!(serde_json::to_value(&whole.shaped).unwrap(), json!({ "a": "x" }));
    let inner = |a: Option<&str>| Inner { a: a.map(str::to_owned) };
    assert_eq!(whole.list, [inner(Some("x")), inner(None)]);
    assert_eq!(whole.maybe, Some(inner(Some("y"))));
}

#[test]
fn requests_hold_what_was_set() {
    use golden::defaults::{Both, Change2, ChangeInput, UploadInputBody};
    let body = Change2 {
        mode: "slow".to_owned(),
        limit: None,
        level: None,
        maybe: None,
        text: None,
        long: None,
        wrong: None,
        any: None,
        both: Some(Both { mode: "fast".to_owned(), limit: None }),
    };
    let input = ChangeInput { page: None, x_mode: "x".to_owned(), body, content_type: None };
    let sent = json!({ "X-Mode": "x", "body": { "mode": "slow", "both": { "mode": "fast" } } });
    assert_eq!(serde_json::to_value(&input).unwrap(), sent);
    assert_eq!(serde_json::from_value::<ChangeInput>(sent).unwrap(), input);
    let upload = UploadInputBody { file: b"x"[..].into(), purpose: None };
    assert_eq!(serde_json::to_value(upload).unwrap(), json!({ "file": "eA==" }));
    // A request has to hold what is required; an answer may lack what has a default.
    assert!(serde_json::from_value::<Change2>(json!({})).is_err());
    assert_eq!(serde_json::from_value::<Both>(json!({})).unwrap(), Both { mode: "fast".to_owned(), limit: None });
}

#[test]
fn a_body_that_may_be_absent_is_an_input() {
    use golden::requests::{AddPlaceInput, Place};
    let place: Place = serde_json::from_value(json!({})).unwrap();
    let input = AddPlaceInput::from(place);
    assert_eq!(serde_json::to_value(input).unwrap(), json!({ "body": {} }));
    assert_eq!(serde_json::to_value(AddPlaceInput::from(())).unwrap(), json!({}));
}

#[test]
fn a_chat_is_a_model_and_messages() {
    use golden::chat::{
        ChatCompletion, CreateChatCompletion, CreateChatCompletionInput, CreateChatCompletionRequest,
        CreateChatCompletionRequestModel, Message, UserMessage,
    };
    use ops_runtime::Operation;
    let hello = UserMessage { content: "Hello".to_owned(), name: None };
    let body = CreateChatCompletionRequest {
        model: CreateChatCompletionRequestModel::Small,
        messages: vec![Message::User(hello)],
        temperature: None,
        frequency_penalty: None,
        presence_penalty: None,
        service_tier: None,
        store: None,
        logprobs: None,
        n: None,
        parallel_tool_calls: None,
        tools: None,
        stop: None,
        metadata: None,
    };
    let input: <CreateChatCompletion as Operation>::Input = CreateChatCompletionInput { body };
    assert_eq!(
        serde_json::to_string(&input).unwrap(),
        r#"{"body":{"model":"small","messages":[{"role":"user","content":"Hello"}]}}"#
    );
    let read: CreateChatCompletionRequest =
        serde_json::from_value(json!({ "model": "new", "messages": [], "n": null, "store": true })).unwrap();
    assert_eq!((read.n, read.store, read.parallel_tool_calls), (None, Some(true), None));
    assert_eq!(read.model, CreateChatCompletionRequestModel::Other("new".to_owned()));
    // An answer is whole.
    let answer: ChatCompletion =
        serde_json::from_value(json!({ "id": "1", "choices": [{ "message": { "role": "assistant" } }] })).unwrap();
    assert_eq!((answer.object, answer.choices[0].index), (golden::chat::ChatCompletionObject::ChatCompletion, 0));
}

#[test]
fn only_changes_say_null() {
    use golden::requests::{Born, Event, ListPetsInput, NewPet, Pet, PetChange, PetMerge, Place, Ring};
    // A change says `null`, and what it reaches.
    let change: PetChange = round_trip(json!({ "tag": null, "nick": null, "limit": null, "place": null, "any": null }));
    assert_eq!((change.tag, change.nick, change.limit, change.place), (Some(None), Some(None), Some(None), Some(None)));
    let change = PetChange { rings: Some(vec![Ring { text: Some(None) }]), ..PetChange::default() };
    assert_eq!(serde_json::to_value(change).unwrap(), json!({ "rings": [{ "text": null }] }));
    assert_eq!(round_trip::<PetMerge>(json!({ "tag": null })).tag, Some(None));
    assert_eq!(round_trip::<Place>(json!({ "room": null })).room, Some(None));
    // Others do not, and read it as nothing; what is required is said.
    let pet = json!({ "name": "Rex", "owner": null, "tag": null, "nick": null, "hat": { "size": null }, "ring": null });
    let pet: NewPet = serde_json::from_value(pet).unwrap();
    assert_eq!((&pet.tag, &pet.nick, &pet.ring), (&None, &None, &None));
    assert_eq!(serde_json::to_value(pet).unwrap(), json!({ "name": "Rex", "owner": null, "hat": {} }));
    let input = ListPetsInput { owner: None, sort: None, trace: "t".to_owned() };
    assert_eq!(serde_json::to_value(input).unwrap(), json!({ "trace": "t" }));
    // Of answers the default comes in where nothing was said, not where `null` was.
    let pet: Pet = serde_json::from_value(json!({ "id": 1, "alias": null, "place": null, "parent": null })).unwrap();
    assert_eq!((pet.alias, pet.place, pet.parent, pet.weight), (None, None, None, Some(1.5)));
    let pet: Pet = serde_json::from_value(json!({ "id": 1, "alias": "x", "nick": "y", "weight": null })).unwrap();
    assert_eq!((pet.nick.as_deref(), pet.weight), (Some("y"), None));
    // The tag of a union is sent, though only answers are said to hold it.
    let born = Event::Born(Born { at: None });
    assert_eq!(serde_json::to_value(born).unwrap(), json!({ "type": "Born" }));
}

#[test]
fn enums_keep_what_they_do_not_know() {
    use golden::enums::{Mixed, Open, Signs, Status, Titles};
    assert_eq!(round_trip::<Status>(json!("sold")), Status::Sold);
    assert_eq!(round_trip::<Status>(json!("lost")), Status::Other("lost".to_owned()));
    for text in ["+1", "-1", ">", "<=", "", "a-b", "a_b", "1.0", "10", "Other", "self"] {
        assert!(!matches!(round_trip::<Signs>(json!(text)), Signs::Unknown(_)), "{text}");
    }
    for value in [json!(1), json!(-1), json!("auto"), json!(false), json!(1.5)] {
        assert!(!matches!(round_trip::<Mixed>(value), Mixed::Other(_)));
    }
    assert_eq!(round_trip::<Mixed>(json!("x")), Mixed::Other(json!("x")));
    assert_eq!(round_trip::<Titles>(json!(0)), Titles::GuildText);
    assert_eq!(round_trip::<Open>(json!("gpt-6")), Open::Other("gpt-6".to_owned()));
}

#[test]
fn unions_find_their_variants() {
    use golden::unions::{ByConst, ByMapping, ByName, ByShape, Nested, Shared};
    assert!(matches!(round_trip(json!({ "kind": "push", "commits": [] })), ByConst::Push(_)));
    assert!(matches!(round_trip(json!({ "when": "now", "kind": "gone" })), ByConst::Gone(_)));
    assert!(matches!(round_trip(json!({ "kind": "new", "x": 1 })), ByConst::Other(_)));
    assert!(matches!(round_trip(json!({ "petType": "kitten", "lives": 9 })), ByMapping::Cat(_)));
    assert!(matches!(round_trip(json!({ "petType": "dog", "bark": "loud" })), ByMapping::Dog(_)));
    assert!(matches!(round_trip(json!({ "petType": "Dog" })), ByName::Dog(_)));
    assert!(matches!(round_trip(json!("a")), ByShape::String(_)));
    assert!(matches!(round_trip(json!(["a"])), ByShape::List(_)));
    assert!(matches!(round_trip(json!({ "id": 1 })), ByShape::WithId(_)));
    assert!(matches!(round_trip(json!({ "bark": "x" })), ByShape::Dog(_)));
    assert!(matches!(round_trip(json!({ "kind": "issue" })), Nested::ByConst(ByConst::Issue(_))));
    assert!(matches!(round_trip(json!({ "id": 1, "b": "x" })), Shared::WithB(_)));
}

#[test]
fn what_is_in_shared_properties_tells_variants_apart() {
    use golden::alike::{Bank, Ended, EndedState, Job, Last, LastKind, LevelHigh, LevelHighMeta, LevelHighMetaV};
    use golden::alike::{BankType, Level, Payment, Setting, SettingFixed, SettingFixedModel, SettingFree};
    use golden::alike::{SettingFreeModel, Started, StartedState, Step};
    let job = |state: &str| round_trip::<Job>(json!({ "state": state, "id": 1 }));
    assert_eq!(job("queued"), Job::Started(Started { state: StartedState::Queued, id: 1 }));
    assert_eq!(job("failed"), Job::Ended(Ended { state: EndedState::Failed, id: 1 }));
    assert_eq!(job("lost"), Job::Started(Started { state: StartedState::Other("lost".to_owned()), id: 1 }));
    let bank = Bank { type_: Some(BankType::Bank), id: "1".to_owned(), iban: None };
    assert_eq!(round_trip::<Payment>(json!({ "type": "bank", "id": "1" })), Payment::Bank(bank));
    let high = LevelHigh { meta: LevelHighMeta { v: LevelHighMetaV::N3 } };
    assert_eq!(round_trip::<Level>(json!({ "meta": { "v": 3 } })), Level::High(high));
    let fixed = SettingFixed { model: SettingFixedModel::B };
    assert_eq!(round_trip::<Setting>(json!({ "model": "b" })), Setting::Fixed(fixed));
    let free = SettingFree { model: SettingFreeModel::Other("new".to_owned()) };
    assert_eq!(round_trip::<Setting>(json!({ "model": "new" })), Setting::Free(free));
    // A constant that no variant knows counts for each, so that the others decide.
    let Step::First(first) = round_trip(json!({ "kind": "any", "of": [{ "kind": "none" }, { "kind": "new" }] })) else {
        panic!("another step")
    };
    let last = Step::Last(Last { kind: Some(LastKind::None_), of: None });
    assert!(matches!(first.of.as_deref(), Some([one, Step::First(_)]) if *one == last), "{first:?}");
}

#[test]
fn what_keeps_all_comes_before_what_declares_as_much() {
    use golden::alike::{Notes, Problem, Stock};
    let counts = Stock::Counts([("apples".to_owned(), 7), ("pears".to_owned(), 3)].into());
    assert_eq!(round_trip::<Stock>(json!({ "apples": 7, "pears": 3 })), counts);
    let problem = Stock::Problem(Problem { message: Some("no".to_owned()) });
    assert_eq!(round_trip::<Stock>(json!({ "message": "no" })), problem);
    let notes = Notes { message: Some("no".to_owned()), extra: [("read".to_owned(), true)].into() };
    assert_eq!(round_trip::<Stock>(json!({ "message": "no", "read": true })), Stock::Notes(notes));
}

#[test]
fn a_tag_that_is_unset_is_that_of_the_variant() {
    use golden::unions::{Boat, Truck, Vehicle};
    let boat = Vehicle::Boat(Boat { draft: Some(2.5), type_: None });
    assert_eq!(serde_json::to_string(&boat).unwrap(), r#"{"type":"b","draft":2.5}"#);
    let ship: Vehicle = round_trip(json!({ "draft": 2.5, "type": "ship" }));
    assert_eq!(ship, Vehicle::Boat(Boat { draft: Some(2.5), type_: Some("ship".to_owned()) }));
    let truck = Vehicle::T(Truck { type_: "t".to_owned() });
    assert_eq!(serde_json::to_value(truck).unwrap(), json!({ "type": "t" }));
    let source = generate("unions");
    assert!(source.contains("/// In [`Vehicle`]: `b` or `ship`, also if it is `None`."), "{source}");
    assert!(source.contains("/// In [`Vehicle`]: `t`."), "{source}");
}

#[test]
fn an_object_without_a_known_tag_is_the_default_variant() {
    use golden::unions::{AnyDevice, Device};
    let any = |kind: Option<&str>| Device::AnyDevice(AnyDevice { kind: kind.map(str::to_owned), name: None });
    assert_eq!(round_trip::<Device>(json!({})), any(None));
    assert_eq!(round_trip::<Device>(json!({ "kind": "clock" })), any(Some("clock")));
    assert_eq!(round_trip::<Device>(json!({ "kind": "AnyDevice" })), any(Some("AnyDevice")));
    assert!(matches!(round_trip(json!({ "kind": "phone", "number": "1" })), Device::Phone(_)));
    assert!(serde_json::from_value::<Device>(json!({ "kind": "phone" })).is_err());
}

#[tokio::test]
async fn a_status_tells_the_variant_of_no_other_union() {
    use golden::statuses::{
        Company, FindOrder, FindPayer, FindTagged, FindTaggedOutput, GetRange, GetRangeOutput, Later, Part, Payer,
        Refunded, SendEither, SendEitherOutput, Whole,
    };
    use ops_runtime::Registry;
    use ops_runtime::adapter::{Handler, Registration};
    use ops_runtime::envelope::{HttpMeta, ResponseEnvelope};

    /// Reads a response of an operation with this status.
    async fn read<Op: ops_runtime::Call>(status: u16, data: Value, input: Op::Input) -> Op::Output {
        let envelope = ResponseEnvelope::http(data, HttpMeta::new(status, "application/json"));
        let envelope = serde_json::to_value(envelope).unwrap();
        let handler = Handler::dynamic(move |_, _| std::future::ready(Ok(envelope.clone())));
        let registry = Registry::new();
        registry.register(Registration::new(Op::SPEC, handler)).unwrap();
        registry.execute::<Op>(input).await.unwrap().data
    }
    use golden::statuses::{FindOrderInput, FindPayerInput, FindTaggedInput, GetRangeInput, SendEitherInput};

    // A success without content is no variant.
    let id = || "1".to_owned();
    let whole = read::<GetRange>(200, json!({ "id": "1", "note": "x" }), GetRangeInput {}).await;
    assert_eq!(whole, Some(GetRangeOutput::Ok_(Whole { id: id(), note: Some("x".to_owned()) })));
    let part = read::<GetRange>(206, json!({ "id": "1" }), GetRangeInput {}).await;
    assert_eq!(part, Some(GetRangeOutput::PartialContent(Part { id: id(), part: None })));
    assert_eq!(read::<GetRange>(204, json!(null), GetRangeInput {}).await, None);
    // A success that is a union is several.
    let later = read::<SendEither>(202, json!({ "id": "1" }), SendEitherInput {}).await;
    assert_eq!(later, SendEitherOutput::Accepted(Later { id: id(), wait: None }));
    let part = read::<SendEither>(200, json!({ "id": "1", "part": 2 }), SendEitherInput {}).await;
    assert_eq!(part, SendEitherOutput::Part(Part { id: id(), part: Some(2) }));
    let first = read::<SendEither>(200, json!({ "id": "1", "wait": 2 }), SendEitherInput {}).await;
    assert_eq!(first, SendEitherOutput::Whole(Whole { id: id(), note: None }), "a 200 is never what a 202 is");
    // Unions elsewhere are told apart by their shapes.
    let company = Payer::Company(Company { name: "x".to_owned(), vat: Some("7".to_owned()) });
    let payer = json!({ "name": "x", "vat": "7" });
    let order = read::<FindOrder>(200, json!({ "id": "1", "payer": payer }), FindOrderInput {}).await;
    assert_eq!(order.unwrap().payer.as_ref(), Some(&company));
    assert_eq!(read::<FindPayer>(200, payer.clone(), FindPayerInput {}).await.as_ref(), Some(&company));
    let tagged = json!({ "kind": "refunded", "payer": payer });
    let tagged = read::<FindTagged>(203, tagged, FindTaggedInput {}).await;
    assert_eq!(tagged, FindTaggedOutput::Refunded(Refunded { payer: Some(company) }));
    // A server says the status that a variant is of.
    let source = generate("statuses");
    assert!(source.contains("Some(GetRangeOutput::Ok_(_)) => Some(1)"), "{source}");
    assert!(source.contains("SendEitherOutput::Part(_) => Some(0)"), "{source}");
}

#[test]
fn types_may_hold_themselves() {
    use golden::recursion::{Chain, Expression, Formula, Json, Node, Tree};
    let _: Node = round_trip(json!({ "value": 1, "next": { "value": 2, "children": [{ "value": 3 }] } }));
    let _: Tree = round_trip(json!([[], [[]]]));
    let _: Formula = round_trip(json!(["not", ["not", "x"]]));
    let _: Chain = round_trip(json!(["a", ["b", null]]));
    let _: Json = round_trip(json!({ "a": [1.5, "x", { "b": true }] }));
    let leaf = json!({ "op": "literal", "value": 1 });
    let both: Expression = round_trip(json!({ "op": "and", "left": leaf, "right": leaf }));
    assert!(matches!(both, Expression::And(_)));
}

#[test]
fn bases_are_part_of_their_heirs() {
    use golden::all_of::{Animal, Bird, Grandchild, Heir, Herb, Holder, Just, Plant, Tree};
    let _: Heir = round_trip(json!({ "id": 1, "kind": "heir", "name": "x" }));
    let _: Grandchild = round_trip(json!({ "id": 1, "kind": "heir", "name": "x", "toys": [] }));
    let holder = Holder { base: Some(Just { id: 1, kind: None }), maybe: None };
    assert_eq!(serde_json::to_value(holder).unwrap(), json!({ "base": { "id": 1 } }));
    // Those that list their heirs, too; one heir, and two with a base between.
    let bird: Animal = round_trip(json!({ "type": "Bird", "wings": 2 }));
    assert_eq!(bird, Bird { type_: "Bird".to_owned(), wings: Some(2) });
    let tree: Plant = round_trip(json!({ "kind": "Tree", "rings": 3 }));
    assert_eq!(tree, Plant::Tree(Tree { kind: "Tree".to_owned(), rings: Some(3) }));
    let herb: Plant = round_trip(json!({ "kind": "Herb", "leaves": 4 }));
    assert_eq!(herb, Plant::Herb(Herb { kind: "Herb".to_owned(), leaves: Some(4) }));
}

#[test]
fn specs_are_those_that_were_read() {
    use ops_runtime::openapi::FileSource;
    use ops_runtime::{mcp, openapi};
    type Operations = fn() -> &'static [&'static OperationSpec];
    let modules: [(&str, Operations); 5] = [
        ("operations", golden::operations::operations),
        ("hostile", golden::hostile::operations),
        ("unions", golden::unions::operations),
        ("tools", golden::tools::operations),
        ("hostile_tools", golden::hostile_tools::operations),
    ];
    for (topic, operations) in modules {
        let path = folder().join(format!("{topic}.json")).display().to_string();
        let (api, _) = if topic.ends_with("tools") {
            mcp::load(&path, &FileSource::new(), &mcp::ReadOptions::new().with_namespace(topic)).unwrap()
        } else {
            openapi::load(&path, &FileSource::new(), &openapi::ReadOptions::new()).unwrap()
        };
        assert_eq!(operations().len(), api.operations.len());
        for (generated, read) in operations().iter().zip(&api.operations) {
            for definition in generated.definitions.as_slice() {
                assert_eq!(Some(definition), read.definitions.get(&definition.name));
            }
            let mut read = read.clone();
            read.definitions = generated.definitions.clone();
            assert_eq!(**generated, read);
        }
    }
}

#[test]
fn operations_are_small() {
    let petstore = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/openapi/petshop.yaml");
    let petstore = Builder::new().openapi(petstore).generate().unwrap().remove(0).generated.source;
    for source in [generate("operations"), generate("all_of"), generate("tools"), petstore] {
        let specs = source.split("/// All operations").next().unwrap();
        for operation in specs.split("\npub struct ").skip(1) {
            let parameters = operation.matches("ops::HttpParameter::").count();
            // The words of the document are not counted: its descriptions, and further lines of its schemas.
            let counts =
                |line: &&str| !line.trim().is_empty() && !line.starts_with("///") && !line.starts_with(['"', '{']);
            let lines = operation.lines().filter(counts).count();
            assert!(lines < 25 + parameters, "{lines} lines:\n{operation}");
        }
    }
}

#[test]
fn formats_have_types_of_their_own() {
    use golden::formats::{UuidOrInteger, Visit};
    let visit: Visit = round_trip(json!({
        "id": "67e55044-10b1-426f-9247-bb680e5fe0c8", "at": "2026-11-22T10:00:00+01:00", "on": "2026-11-22",
        "page": "https://example.com/a", "by": "67e55044-10b1-426f-9247-bb680e5fe0c8", "note": "x"
    }));
    assert!(matches!(visit.by, Some(UuidOrInteger::Uuid(_))));
    let wrong = json!({ "id": "7", "at": "2026-11-22T10:00:00Z" });
    assert!(serde_json::from_value::<Visit>(wrong).unwrap_err().to_string().contains("UUID"));
    // The words of `chrono`, and what came.
    for (place, text, reason) in [
        ("/at", "2026-01-02 03:04:05", "premature end of input"),
        ("/at", "2026-11-22", "premature end of input"),
        ("/on", "2026-11-22T10:00:00Z", "trailing input"),
        ("/on", "2026-02-30", "input is out of range"),
        ("/on", "", "premature end of input"),
    ] {
        let mut wrong = json!({
            "id": "67e55044-10b1-426f-9247-bb680e5fe0c8", "at": "2026-11-22T10:00:00Z", "on": "2026-11-22"
        });
        *wrong.pointer_mut(place).unwrap() = json!(text);
        let told = format!("{place}: expected another form of date or time ({reason}), found \"{text}\"");
        assert_eq!(ops_runtime::record::from_value::<Visit>(&wrong).unwrap_err().to_string(), told);
        assert_eq!(ops_runtime::record::from_str::<Visit>(&wrong.to_string()).unwrap_err().to_string(), told);
    }
}

#[test]
fn tools_have_types_like_endpoints() {
    use golden::tools::{Count, FilterKind, FindItems, FindItemsInput, Item, Levels, MoveItem, Photo};
    use ops_runtime::Operation;
    use ops_runtime::binding::McpOutput;
    use ops_runtime::content::ContentBlock;
    use ops_runtime::spec::OperationKind;
    fn output<Op: Operation<Output = T>, T>() -> (&'static str, OperationKind, McpOutput) {
        let tool = Op::SPEC.mcp().unwrap();
        (tool.tool.as_ref(), Op::SPEC.kind, tool.output)
    }
    assert_eq!(output::<FindItems, Vec<Item>>(), ("find-items", OperationKind::Query, McpOutput::Wrapped));
    assert_eq!(output::<Count, i64>(), ("count", OperationKind::Query, McpOutput::Wrapped));
    assert_eq!(output::<MoveItem, _>().2, McpOutput::Structured);
    assert_eq!(output::<Photo, Vec<ContentBlock>>(), ("photo", OperationKind::Mutation, McpOutput::Content));
    assert_eq!(output::<Levels, Option<std::collections::BTreeMap<String, i64>>>().2, McpOutput::Structured);
    let input: FindItemsInput =
        round_trip(json!({ "filter": { "kind": "box" }, "limit": 5, "self": "x", "$meta": {}, "x-loc-lat": 1.5 }));
    assert_eq!((input.filter.kind, input.self_.as_deref()), (Some(FilterKind::Box), Some("x")));
    assert_eq!((input.meta.map(|meta| meta.len()), input.x_loc_lat, input.cursor), (Some(0), Some(1.5), None));
}

#[test]
fn settings_are_heeded() {
    use std::collections::HashSet;
    use std::net::IpAddr;

    use golden::settings::{
        Box, Cash, CreateOrder, CreateOrderError, CreateOrderInput, Order, OrderKind, OrderLost, OrderPaid, Payment,
        Price, StringOrCard,
    };
    use ops_runtime::Operation;
    use own::{Card, Money, Problem};

    // What refers to a schema has the user's type, in requests, responses and errors.
    let money = |cents: u64| Money { cents, currency: "EUR".to_owned() };
    let price: <Price as Operation>::Output = money(5);
    assert_eq!(serde_json::to_string(&price).unwrap(), r#""0.05 EUR""#);
    let card = Card { number: "7".to_owned() };
    let order = Order {
        tip: Some(money(20)),
        parts: Some(vec![money(1250)]),
        from: Some("::1".parse::<IpAddr>().unwrap()),
        note: Some(StringOrCard::Card(card.clone())),
        count: std::num::NonZeroU32::new(2),
        ..Order::new(1, OrderKind::Once, money(1250), card.clone())
    };
    // The union writes the tag, of which the user's type does not know. Names of fields change nothing in JSON.
    let text = r#"{"id":1,"type":"once","total":"12.50 EUR","tip":"0.20 EUR","parts":["12.50 EUR"],"payment":{"kind":"card","number":"7"},"from":"::1","note":{"number":"7"},"count":2}"#;
    assert_eq!(serde_json::to_string(&order).unwrap(), text);
    let read: Order = serde_json::from_str(text).unwrap();
    assert_eq!((&read, &read.kind, &read.payment), (&order, &OrderKind::Once, &Payment::Card(card)));
    // The tag may come anywhere; what follows and precedes it is the user's.
    assert_eq!(
        serde_json::from_value::<Payment>(json!({ "number": "8", "kind": "card" })).unwrap(),
        Payment::Card(Card { number: "8".to_owned() })
    );
    let error = serde_json::from_value::<Payment>(json!({ "kind": "card" })).unwrap_err();
    assert!(error.to_string().contains("`number`"), "{error}");
    let error = serde_json::from_str::<Order>(&text.replace("12.50 EUR", "x")).unwrap_err();
    assert!(error.to_string().contains("no amount"), "{error}");
    let nothing: Order = serde_json::from_str(&text.replace("\"::1\"", "null")).unwrap();
    assert_eq!(nothing.from, None);
    let mut input: CreateOrderInput = order.into();
    input.page = Some(2);
    assert!(serde_json::to_string(&input).unwrap().starts_with(r#"{"X-Page":2,"body":{"id":1,"type":"once""#));
    let input: <CreateOrder as Operation>::Input =
        serde_json::from_value(serde_json::to_value(&input).unwrap()).unwrap();
    assert_eq!(input.page, Some(2));
    let gone = CreateOrderError::NotFound(Problem { title: "gone".to_owned() });
    assert!(matches!(gone, CreateOrderError::NotFound(Problem { title }) if title == "gone"));

    // Derives, where they can be had.
    fn is_hashed<T: std::hash::Hash + Eq>(values: impl IntoIterator<Item = T>) -> usize {
        values.into_iter().collect::<HashSet<T>>().len()
    }
    assert_eq!(is_hashed([OrderKind::Once, OrderKind::Once]), 1);
    let cash = Cash { coins: Some(1) };
    let copy = cash;
    assert_eq!(is_hashed([cash, copy]), 1);
    // The defaults of the document are those of `Default`, and what it requires is zero.
    let small = Box::default();
    assert_eq!(serde_json::to_value(&small).unwrap(), json!({ "width": 0, "height": 0.0, "kind": "", "depth": 3 }));
    assert!(small < Box { width: 1, ..small.clone() });
    let mut lost = [OrderLost::Burnt, OrderLost::Stolen];
    lost.sort();
    assert_eq!(lost, [OrderLost::Stolen, OrderLost::Burnt]);

    // Schemas that no operation has, and what they lead to.
    let paid: OrderPaid = serde_json::from_value(json!({ "order": 1, "by": { "name": "Ann" } })).unwrap();
    assert_eq!((paid.retries, paid.by.unwrap().name.as_deref()), (3, Some("Ann")));
    let source = generate("settings");
    assert!(!source.contains("Unused") && source.contains("pub struct Payer"));
    // Schemas stay as they are, for checks and repairs.
    let definition = CreateOrder::SPEC.definitions.get("Money").unwrap().schema.to_value().unwrap().into_owned();
    assert_eq!(definition["pattern"], "^[0-9]+[.][0-9]{2} [A-Z]{3}$");
}
