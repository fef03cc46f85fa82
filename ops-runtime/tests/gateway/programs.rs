//! Programs of models: many calls in one, and what stops them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use ops_runtime::CallError;
use ops_runtime::access::CallPolicy;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::gateway::{CallerLimits, Rate, Tools};
use ops_runtime::program::{FolderStore, Hold, Journal, JournalStore, Limits, MemoryStore};
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};

use crate::client::{Client, REVISIONS};
use crate::fixture::{Shop, owner, text, texts};

const RENAME: &str = "
    const before = await ops.shop.showPet({ petId: 7 });
    const first = await ops.shop.renamePet({ petId: 7, name: 'Max' });
    const second = await ops.shop.renamePet({ petId: 8, name: 'Tom' });
    return [before.name, first.renamed, second.renamed];
";

/// The parameters of `execute` by a client that can be asked.
pub(crate) fn asked(arguments: Value, more: Value) -> Value {
    let meta = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    let mut params = json!({ "name": "execute", "arguments": arguments, "_meta": meta });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

#[tokio::test]
async fn a_program_makes_many_calls() {
    let gateway = Shop::new().gateway().with_tools(Tools::Code).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let listed = client.request("tools/list", json!({})).await["result"]["tools"].clone();
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["describe", "execute", "search"]);
    assert!(listed.to_string().len() < 4_000, "{} bytes", listed.to_string().len());
    let code = "
        const [pet, all] = await Promise.all([ops.shop.showPet({ petId: 7 }), ops.shop.listPets()]);
        console.log('pets', all.length);
        const found = await search('what was sold');
        const signature = await describe('shop.showPet');
        return { pet, last: all.at(-1).name, found: found[0].id, takes: signature.includes('petId: number') };
    ";
    let done = client.call("execute", json!({ "code": code })).await;
    let wanted =
        json!({ "pet": { "id": 7, "name": "Rex" }, "last": "pet 1999", "found": "books.total", "takes": true });
    assert_eq!(serde_json::from_str::<Value>(texts(&done)[0]).unwrap(), wanted, "{done}");
    assert_eq!(texts(&done)[1..], ["The console:", "log: pets 2000"]);
}

#[tokio::test]
async fn a_program_sees_what_is_denied() {
    let policy = CallPolicy::new().with_deny("shop.showPet");
    let gateway = Shop::new().gateway().with_tools(Tools::Code).with_policy(policy).build().await.unwrap();
    let code = "
        const found = await search('pet', 50);
        const denied = found.filter(one => one.denied !== undefined);
        return { all: found.length > 1, denied, said: (await describe('shop.showPet')).split('\\n')[0] };
    ";
    let done = owner(&gateway).await.call("execute", json!({ "code": code })).await;
    let done: Value = serde_json::from_str(texts(&done)[0]).unwrap();
    assert_eq!(done["all"], true);
    let denied: Vec<_> = done["denied"].as_array().unwrap().iter().map(|one| (&one["id"], &one["denied"])).collect();
    assert_eq!(denied, [(&json!("shop.showPet"), &json!(true))]);
    assert_eq!(done["said"], "// This may not be called: the policy of this gateway denies it.");
}

#[tokio::test]
async fn a_mistake_says_where() {
    let limits = Limits::new().with_cpu(Duration::from_secs(2));
    let gateway = Shop::new().gateway().with_tools(Tools::Code).with_program_limits(limits).build().await.unwrap();
    let mut client = owner(&gateway).await;
    for (code, told) in [
        ("return 1 +", &["The program failed: SyntaxError"][..]),
        ("\n\nawait ops.shop.showPets({});", &["ops.shop.showPets", "showPet", "at line 3"]),
        ("await ops.shop.showPet({ petId: 'x' });", &["VALIDATION_ERROR", "at line 1"]),
        ("await ops.shop.showPet({ petId: 8 });", &["there is no such pet [NO_PET]"]),
        ("for (;;) {}", &["Limits::with_cpu"]),
        ("try { await ops.shop.showPet({ petId: 8 }) } catch (e) { throw new Error('oh ' + e.code) }", &["oh NO_PET"]),
    ] {
        let result = client.call("execute", json!({ "code": code })).await;
        for part in told {
            assert!(text(&result).contains(part), "{code}: {part} in {}", text(&result));
        }
        assert_eq!(result["isError"], true, "{code}");
    }
}

#[tokio::test]
async fn a_program_stops_until_its_user_agrees() {
    let shop = Shop::new();
    let gateway = shop.gateway().with_tools(Tools::Code).build().await.unwrap();
    let mut client = Client::connect(gateway.owned_mcp_server(), REVISIONS[1]).await;
    let mut params = asked(json!({ "code": RENAME }), json!({}));
    for renamed in 0..2 {
        let question = client.request("tools/call", params).await["result"].clone();
        assert_eq!(question["resultType"], "input_required", "{question}");
        assert_eq!(shop.renamed(), renamed);
        let (key, request) = question["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert!(request["params"]["message"].as_str().unwrap().contains(["Max", "Tom"][renamed]), "{request}");
        let answers = json!({ key: { "action": "accept" } });
        params = asked(
            json!({ "code": RENAME }),
            json!({ "requestState": question["requestState"], "inputResponses": answers }),
        );
    }
    let done = client.request("tools/call", params).await["result"].clone();
    assert_eq!(text(&done), r#"["Rex","Max","Tom"]"#);
    assert_eq!(shop.renamed(), 2);
}

#[tokio::test]
async fn a_user_says_no() {
    let shop = Shop::new();
    let gateway = shop.gateway().with_tools(Tools::Code).build().await.unwrap();
    let mut client = Client::connect(gateway.owned_mcp_server(), REVISIONS[1]).await;
    let code = "try { await ops.shop.renamePet({ petId: 7, name: 'Max' }) } catch (error) { return error.code }";
    let question = client.request("tools/call", asked(json!({ "code": code }), json!({}))).await["result"].clone();
    let key = question["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let answers = json!({ key: { "action": "decline" } });
    let more = json!({ "requestState": question["requestState"], "inputResponses": answers });
    let done = client.request("tools/call", asked(json!({ "code": code }), more)).await["result"].clone();
    assert_eq!(text(&done), "ACCESS_DENIED", "{done}");
    assert_eq!(shop.renamed(), 0);
}

#[tokio::test]
async fn a_program_goes_on_behind_another_gateway() {
    let shop = Shop::new();
    let folder = std::env::temp_dir().join(format!("ops-gateway-{}", std::process::id()));
    let mut arguments = json!({ "code": RENAME });
    for renamed in 0..2 {
        // Each time as if the process had been started again.
        let gateway = shop.gateway().with_tools(Tools::Code).with_program_store(FolderStore::new(&folder));
        let gateway = gateway.build().await.unwrap();
        let waits = owner(&gateway).await.call("execute", arguments.clone()).await;
        assert_eq!(shop.renamed(), renamed, "{waits}");
        let part = |before: &str, after: char| {
            let (_, rest) = text(&waits).split_once(before).unwrap_or_else(|| panic!("{waits}"));
            rest.split(after).next().unwrap().to_owned()
        };
        let (key, ask) = (part("\"resume\": \"", '"'), part("(key ", ')'));
        // Other code is another program, and another caller has none of that key.
        let other = json!({ "code": "return 1", "resume": key });
        assert!(
            text(&owner(&gateway).await.call("execute", other).await).contains("It still waits: give the same code.")
        );
        arguments = json!({ "code": RENAME, "resume": key, "approve": [ask] });
        let bob = gateway.tools().scoped(ops_runtime::access::Identity::new("bob"));
        let unknown = bob.call("gateway.execute", arguments.clone()).await.unwrap();
        let said = unknown.meta.as_mcp().unwrap().content[0].as_text().unwrap().to_owned();
        assert!(said.starts_with("No program waits under the key"), "{said}");
    }
    let gateway = shop.gateway().with_tools(Tools::Code).with_program_store(FolderStore::new(&folder));
    let done = owner(&gateway.build().await.unwrap()).await.call("execute", arguments).await;
    assert_eq!(text(&done), r#"["Rex","Max","Tom"]"#, "{done}");
    assert_eq!(shop.renamed(), 2);
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn many_programs_run_at_once() {
    let policy = CallPolicy::new().with_allow("*");
    let limits = Limits::new().with_memory(16 << 20);
    let shop = Shop::new();
    let gateway = shop.gateway().with_tools(Tools::Code).with_policy(policy).with_program_limits(limits);
    let limits = ops_runtime::gateway::CallerLimits::new()
        .with_rate(None)
        .with_max_waiting(1_000, std::time::Duration::from_secs(60));
    let tools = Arc::new(gateway.with_limits(limits).build().await.unwrap().tools());
    let runs = (0..100).map(|n| {
        let tools = tools.clone();
        tokio::spawn(async move {
            let code =
                format!("const pet = await ops.shop.renamePet({{ petId: 7, name: 'n{n}' }}); return pet.renamed;");
            let done = tools.call("gateway.execute", json!({ "code": code })).await.unwrap();
            assert_eq!(done.meta.as_mcp().unwrap().content[0].as_text().unwrap(), format!("n{n}"));
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.unwrap();
    }
    assert_eq!(shop.renamed(), 100);
}

/// A store in which the journal of a program is removed just before the program goes on: as by one that was faster.
#[derive(Clone, Default)]
struct Overtaken(Arc<MemoryStore>, Arc<AtomicBool>);

impl JournalStore for Overtaken {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Option<Journal>>> {
        self.0.load(name)
    }

    fn save<'a>(&'a self, name: &'a str, journal: &'a Journal) -> BoxFuture<'a, io::Result<()>> {
        self.0.save(name, journal)
    }

    fn hold<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Hold>> {
        Box::pin(async move {
            if self.1.load(Ordering::SeqCst) {
                self.0.remove(name).await?;
            }
            self.0.hold(name).await
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<()>> {
        self.0.remove(name)
    }
}

#[tokio::test]
async fn a_program_that_is_resumed_twice_does_not_begin_again() {
    let (shop, store) = (Shop::new(), Overtaken::default());
    let policy = CallPolicy::new().with_allow("shop.renamePet").with_ask("shop.showPet");
    let gateway = shop.gateway().with_tools(Tools::Code).with_policy(policy).with_program_store(store.clone());
    let gateway = gateway.build().await.unwrap();
    let mut client = owner(&gateway).await;
    let code = "await ops.shop.renamePet({ petId: 7, name: 'Max' }); return await ops.shop.showPet({ petId: 7 })";
    let waits = client.call("execute", json!({ "code": code })).await;
    let (_, key) = text(&waits).split_once("\"resume\": \"").unwrap_or_else(|| panic!("{waits}"));
    let key = key.split('"').next().unwrap();
    assert_eq!(shop.renamed(), 1);
    store.1.store(true, Ordering::SeqCst);
    let late = client.call("execute", json!({ "code": code, "resume": key })).await;
    assert!(text(&late).starts_with("The program did not go on: "), "{late}");
    assert_eq!((shop.renamed(), &late["isError"]), (1, &json!(true)));
}

#[tokio::test]
async fn an_answer_without_its_program_starts_none() {
    let shop = Shop::new();
    let gateway = shop.gateway().with_tools(Tools::Code).build().await.unwrap();
    let mut client = owner(&gateway).await;
    for said in ["approve", "decline"] {
        let refused = client.call("execute", json!({ "code": RENAME, said: ["x"] })).await;
        assert!(text(&refused).contains("give its key as `resume`"), "{refused}");
        assert_eq!(refused["isError"], true, "{refused}");
    }
}

#[tokio::test]
async fn a_program_that_fails_tells_what_it_has_changed() {
    let shop = Shop::new();
    let policy = CallPolicy::new().with_allow("*");
    let gateway = shop.gateway().with_tools(Tools::Code).with_policy(policy).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let code = "await ops.shop.renamePet({ petId: 7, name: 'Max' }); await ops.shop.showPet({ petId: 8 });";
    let failed = client.call("execute", json!({ "code": code })).await;
    assert!(text(&failed).contains("stays done: `shop.renamePet` (1)."), "{failed}");
    // What was refused before it was made is none.
    let failed = client.call("execute", json!({ "code": "await ops.shop.renamePet({})" })).await;
    assert!(text(&failed).contains("VALIDATION_ERROR") && !text(&failed).contains("stays done"), "{failed}");
    let failed = client.call("execute", json!({ "code": "await ops.shop.showPet({ petId: 8 });" })).await;
    assert!(!text(&failed).contains("stays done"), "{failed}");
}

#[tokio::test]
async fn a_program_waits_where_its_calls_come_too_soon() {
    let limits = CallerLimits::new().with_rate(Rate::new(20, Duration::from_secs(1)).with_burst(2));
    let gateway = Shop::new().gateway().with_tools(Tools::Code).with_limits(limits).build().await.unwrap();
    let code = "let n = 0; for (let i = 0; i < 8; i++) n += (await ops.shop.showPet({ petId: 7 })).id; return n";
    let done = owner(&gateway).await.call("execute", json!({ "code": code })).await;
    assert_eq!(text(&done), "56", "{done}");
}

#[tokio::test]
async fn what_is_cut_says_so() {
    let gateway = Shop::new().gateway().with_tools(Tools::Code).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let code = "console.log('x'.repeat(100000)); console.log('LAST'); throw new Error('y'.repeat(100000))";
    let failed = client.call("execute", json!({ "code": code })).await;
    let [message, _, console] = texts(&failed)[..] else { panic!("{failed}") };
    assert!(message.contains("y...") && message.len() < 5_000, "{message}");
    let lines: Vec<&str> = console.lines().collect();
    assert!(lines[0].ends_with("x... (the rest of the line is left out)"), "{console}");
    assert_eq!(lines[1], "log: LAST");
}

#[tokio::test]
async fn what_was_done_before_it_waited_is_told_too() {
    let shop = Shop::new();
    let gateway = shop.gateway().with_tools(Tools::Code).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let mut arguments = json!({ "code": RENAME });
    for answer in ["approve", "decline"] {
        let waits = client.call("execute", arguments.clone()).await;
        let part = |before: &str, after: char| {
            let (_, rest) = text(&waits).split_once(before).unwrap_or_else(|| panic!("{waits}"));
            rest.split(after).next().unwrap().to_owned()
        };
        let (key, ask) = (part("\"resume\": \"", '"'), part("(key ", ')'));
        arguments = json!({ "code": RENAME, "resume": key, answer: [ask] });
    }
    let failed = client.call("execute", arguments).await;
    assert!(text(&failed).contains("stays done: `shop.renamePet` (1)."), "{failed}");
    assert_eq!(shop.renamed(), 1);
}

#[tokio::test]
async fn what_a_call_says_of_its_failure_is_told() {
    static FILL: OperationSpec = OperationSpec::query("shop.fill");
    let shop = Shop::new();
    let full = |_, _| async { Err(CallError::new("FULL", "no room").with_details(json!({ "table": "aquarium" }))) };
    shop.registry.register(Registration::new(&FILL, Handler::dynamic(full))).unwrap();
    let gateway = shop.gateway().with_tools(Tools::Code).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let failed = client.call("execute", json!({ "code": "await ops.shop.fill({})" })).await;
    assert!(text(&failed).starts_with("The program failed: no room [FULL], at line 1"), "{failed}");
    assert!(text(&failed).contains("\nThe details: {\"table\":\"aquarium\"}"), "{failed}");
    let done = client.call("execute", json!({ "code": "[1].forEach(() => ops.shop.fill({})); return 'ok'" })).await;
    assert!(texts(&done)[1].contains("`shop.fill`: no room [FULL]"), "{done}");
}

#[tokio::test]
async fn a_program_that_does_nothing_is_told() {
    let gateway = Shop::new().gateway().with_tools(Tools::Code).build().await.unwrap();
    let mut client = owner(&gateway).await;
    for (code, is_told) in [
        ("async () => { return await ops.shop.showPet({ petId: 7 }) }", true),
        ("const pet = await ops.shop.showPet({ petId: 7 });", true),
        ("await ops.shop.showPet({ petId: 7 }); return null", false),
        ("return 0", false),
    ] {
        let done = client.call("execute", json!({ "code": code })).await;
        assert_eq!(texts(&done).len() > 1, is_told, "{code}: {done}");
        assert!(!is_told || texts(&done)[1].starts_with("The program returned nothing."), "{code}: {done}");
    }
}

#[tokio::test]
async fn an_answer_to_no_question_lets_a_program_wait() {
    let shop = Shop::new();
    let gateway = shop.gateway().with_tools(Tools::Code).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let code = "return (await ops.shop.renamePet({ petId: 7, name: 'Max' })).renamed";
    let waits = client.call("execute", json!({ "code": code })).await;
    let part = |before: &str, after: char| {
        let (_, rest) = text(&waits).split_once(before).unwrap_or_else(|| panic!("{waits}"));
        rest.split(after).next().unwrap().to_owned()
    };
    let (key, ask) = (part("\"resume\": \"", '"'), part("(key ", ')'));
    // As if one key were the other.
    let wrong = client.call("execute", json!({ "code": code, "resume": key, "approve": [key] })).await;
    assert!(text(&wrong).starts_with("The program did not go on: "), "{wrong}");
    assert!(text(&wrong).contains("do not run it from its start"), "{wrong}");
    let again = client.call("execute", json!({ "code": code, "resume": key })).await;
    assert!(text(&again).contains(&format!("(key {ask})")), "{again}");
    let done = client.call("execute", json!({ "code": code, "resume": key, "approve": [ask] })).await;
    assert_eq!((text(&done), shop.renamed()), ("Max", 1), "{done}");
}

#[tokio::test]
async fn a_caller_runs_no_more_programs_than_calls() {
    static WAIT: OperationSpec = OperationSpec::query("shop.wait");
    let shop = Shop::new();
    let wait = |_, _| async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok(json!("waited"))
    };
    shop.registry.register(Registration::new(&WAIT, Handler::dynamic(wait))).unwrap();
    let limits = CallerLimits::new().with_max_in_flight(1).with_max_waiting(0, Duration::ZERO);
    let gateway = shop.gateway().with_tools(Tools::Code).with_limits(limits).build().await.unwrap();
    let tools = gateway.tools();
    let run = |who: &str| {
        let tools = tools.scoped(ops_runtime::access::Identity::new(who));
        async move { tools.call("gateway.execute", json!({ "code": "return await ops.shop.wait({})" })).await }
    };
    let (one, two, other) = futures_util::join!(run("ann"), run("ann"), run("bob"));
    let refused: Vec<_> = [&one, &two].into_iter().filter_map(|ran| ran.as_ref().err()).collect();
    assert_eq!(refused.len(), 1, "{one:?} {two:?}");
    assert_eq!(refused[0].code().as_str(), "TOO_MANY_REQUESTS");
    assert_eq!(other.unwrap().meta.as_mcp().unwrap().content[0].as_text(), Some("waited"));
}

#[tokio::test]
async fn an_error_of_many_signs_is_cut_as_any_other() {
    let gateway = Shop::new().gateway().with_tools(Tools::Code).build().await.unwrap();
    let mut client = owner(&gateway).await;
    for count in [2_000, 4_000, 4_001, 20_000] {
        let code = format!("throw new Error('\u{1f600}'.repeat({count}))");
        let failed = client.call("execute", json!({ "code": code })).await;
        let told = text(&failed);
        assert!(told.contains("\u{1f600}") && told.contains("line 1"), "{count}: {told}");
        assert_eq!(told.contains("..."), count > 4_000, "{count}: {told}");
    }
}

/// What stands between two texts in the answer of a program that waits.
pub(crate) fn part<'a>(waits: &'a Value, before: &str, after: char) -> &'a str {
    let (_, rest) = text(waits).split_once(before).unwrap_or_else(|| panic!("{waits}"));
    rest.split(after).next().unwrap()
}

#[tokio::test]
async fn a_program_whose_user_could_not_be_asked_waits() {
    let shop = Shop::new();
    let gateway = shop.gateway().with_tools(Tools::Code).build().await.unwrap();
    let form = json!({ "elicitation": {} });
    let mut client = Client::connect_with(gateway.owned_mcp_server(), REVISIONS[0], form).await;
    let code = "
        const rename = async name => (await ops.shop.renamePet({ petId: 7, name })).renamed;
        return [await rename('Ann'), ...await Promise.all([rename('Ben'), rename('Cid')])];
    ";
    let run = |more: Value| {
        let mut arguments = json!({ "code": code });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "name": "execute", "arguments": arguments })
    };
    let mut id = client.send("tools/call", run(json!({}))).await;
    for (name, is_asked) in [("Ann", true), ("Ben", true), ("Cid", false)] {
        let question = client.receive().await;
        assert!(question["params"]["message"].as_str().unwrap().contains(name), "{question}");
        match is_asked {
            true => client.respond(&question["id"], json!({ "action": "accept" })).await,
            false => client.refuse(&question["id"], "there is no screen").await,
        }
    }
    let waits = client.answer(id).await["result"].clone();
    assert_eq!((shop.renamed(), &waits["isError"]), (1, &json!(true)), "{waits}");
    for told in ["there is no screen", "Do not run it from its start.", "stays done: `shop.renamePet` (1)."] {
        assert!(text(&waits).contains(told), "{waits}");
    }
    // Nothing is made again, and nothing that was answered is asked again.
    id = client.send("tools/call", run(json!({ "resume": part(&waits, "\"resume\": \"", '"') }))).await;
    let question = client.receive().await;
    assert!(question["params"]["message"].as_str().unwrap().contains("Cid"), "{question}");
    client.respond(&question["id"], json!({ "action": "accept" })).await;
    let done = client.answer(id).await["result"].clone();
    assert_eq!((text(&done), shop.renamed()), (r#"["Ann","Ben","Cid"]"#, 3), "{done}");
}

#[tokio::test]
async fn a_program_for_which_there_is_no_room_waits_with_its_answers() {
    let (shop, store) = (Shop::new(), Arc::new(MemoryStore::new()));
    let built = |limits: Limits| {
        let gateway = shop.gateway().with_tools(Tools::Code).with_program_store(Shared(store.clone()));
        gateway.with_program_limits(limits).build()
    };
    let gateway = built(Limits::new()).await.unwrap();
    let mut client = owner(&gateway).await;
    let code = "return (await ops.shop.renamePet({ petId: 7, name: 'Max' })).renamed";
    let waits = client.call("execute", json!({ "code": code })).await;
    let (key, ask) = (part(&waits, "\"resume\": \"", '"'), part(&waits, "(key ", ')'));
    let agreed = json!({ "code": code, "resume": key, "approve": [ask] });
    let limits = Limits::new;
    for limits in [limits().with_memory(1), limits().with_time(Duration::ZERO), limits().with_source(1)] {
        let full = built(limits).await.unwrap();
        let told = owner(&full).await.call("execute", agreed.clone()).await;
        assert!(text(&told).starts_with("The program did not go on: the program "), "{told}");
        assert!(text(&told).contains("It waits as before, with the answers of the user"), "{told}");
        assert!(text(&told).contains(&format!("\"resume\": \"{key}\"")), "{told}");
    }
    let done = client.call("execute", json!({ "code": code, "resume": key })).await;
    assert_eq!((text(&done), shop.renamed()), ("Max", 1), "{done}");
    // One that has ended is gone.
    let gone = client.call("execute", json!({ "code": code, "resume": key })).await;
    assert!(text(&gone).starts_with("No program waits under the key"), "{gone}");
}

/// A store that several gateways share.
pub(crate) struct Shared(pub(crate) Arc<MemoryStore>);

impl JournalStore for Shared {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Option<Journal>>> {
        self.0.load(name)
    }

    fn save<'a>(&'a self, name: &'a str, journal: &'a Journal) -> BoxFuture<'a, io::Result<()>> {
        self.0.save(name, journal)
    }

    fn hold<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Hold>> {
        self.0.hold(name)
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<()>> {
        self.0.remove(name)
    }
}
