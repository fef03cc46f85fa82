//! Programs of models that wait, and what may not happen while they do.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use ops_runtime::access::CallPolicy;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::gateway::{CallerLimits, Gateway, ResultLimits, Tools};
use ops_runtime::http::HttpConfig;
use ops_runtime::mcp::{McpPeer, McpServerOptions};
use ops_runtime::program::{FolderStore, Hold, Journal, JournalStore, Limits, MemoryStore};
use ops_runtime::spec::OperationSpec;
use ops_runtime::{CallError, Context};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::audit::Kept;
use crate::client::{Client, PATIENCE, REVISIONS};
use crate::fixture::{Shop, owner, text, texts};
use crate::programs::{Shared, asked, part};

/// A shop with an operation that asks its user, if it can, and counts how often it went on.
fn asking() -> (Shop, Arc<AtomicUsize>) {
    static DELETE: OperationSpec = OperationSpec::mutation("shop.deleteAll");
    let (shop, deleted) = (Shop::new(), Arc::new(AtomicUsize::new(0)));
    let counted = deleted.clone();
    let delete = move |_: Value, context: Context| {
        let counted = counted.clone();
        async move {
            if let Some(peer) = McpPeer::of(&context).filter(|peer| peer.supports("elicitation")) {
                let schema = json!({ "type": "object", "properties": {} });
                let params = json!({ "message": "Delete all pets?", "requestedSchema": schema });
                let answer = peer.ask("sure", "elicitation/create", params).await?;
                if answer["action"] != "accept" {
                    return Ok(json!("kept"));
                }
            }
            counted.fetch_add(1, Ordering::SeqCst);
            Ok::<_, CallError>(json!("gone"))
        }
    };
    shop.registry.register(Registration::new(&DELETE, Handler::dynamic(delete))).unwrap();
    (shop, deleted)
}

#[tokio::test]
async fn a_question_of_a_handler_does_not_run_a_program_again() {
    let code = "
        await ops.shop.renamePet({ petId: 7, name: 'Max' });
        try { return await ops.shop.deleteAll({}) } catch (error) { return error.code }
    ";
    let policy = CallPolicy::new().with_allow("*");
    let (shop, deleted) = asking();
    let gateway = shop.gateway().with_tools(Tools::Code).with_policy(policy).build().await.unwrap();
    // Such a client would answer by repeating the request.
    let mut client = Client::connect(gateway.owned_mcp_server(), REVISIONS[1]).await;
    let done = client.request("tools/call", asked(json!({ "code": code }), json!({}))).await["result"].clone();
    assert_eq!(text(&done), "UNSUPPORTED", "{done}");
    assert_eq!((shop.renamed(), deleted.load(Ordering::SeqCst)), (1, 0));
    // One of an earlier revision answers within the call.
    let form = json!({ "elicitation": {} });
    let mut client = Client::connect_with(gateway.owned_mcp_server(), REVISIONS[0], form).await;
    let id = client.send("tools/call", json!({ "name": "execute", "arguments": { "code": code } })).await;
    let question = client.receive().await;
    assert_eq!(question["params"]["message"], "Delete all pets?", "{question}");
    client.respond(&question["id"], json!({ "action": "accept" })).await;
    let done = client.answer(id).await["result"].clone();
    assert_eq!((text(&done), shop.renamed(), deleted.load(Ordering::SeqCst)), ("gone", 2, 1), "{done}");
}

#[tokio::test]
async fn a_program_goes_on_only_where_it_began() {
    let folder = std::env::temp_dir().join(format!("ops-place-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let remove = json!({ "operationId": "removePet", "responses": { "204": { "description": "Gone" } } });
    let document = json!({ "openapi": "3.1.0", "info": { "title": "Shop", "version": "1" },
        "servers": [{ "url": "http://127.0.0.1:9/own" }], "paths": { "/pet": { "delete": remove } } });
    let file = folder.join("shop.json");
    std::fs::write(&file, document.to_string()).unwrap();
    let store = Arc::new(MemoryStore::new());
    let built = |server: Option<&str>, is_mock: bool| {
        let config = HttpConfig::new().with_namespace("api");
        let config = server.into_iter().fold(config, ops_runtime::HttpConfig::with_base_url);
        let (builder, file) = (Gateway::builder().with_tools(Tools::Code), file.to_str().unwrap());
        let builder = if is_mock { builder.with_mock(file, config) } else { builder.with_document(file, config) };
        builder.with_program_store(Shared(store.clone())).build()
    };
    let code = "return await ops.api.removePet({})";
    let staging = built(Some("http://127.0.0.1:9/staging"), false).await.unwrap();
    let waits = owner(&staging).await.call("execute", json!({ "code": code })).await;
    let (key, ask) = (part(&waits, "\"resume\": \"", '"'), part(&waits, "(key ", ')'));
    let agreed = json!({ "code": code, "resume": key, "approve": [ask] });
    for (server, is_mock) in
        [(Some("http://127.0.0.1:9/production"), false), (None, false), (Some("http://127.0.0.1:9/staging"), true)]
    {
        let other = built(server, is_mock).await.unwrap();
        let refused = owner(&other).await.call("execute", agreed.clone()).await;
        assert!(text(&refused).contains("calls other servers now"), "{server:?} {is_mock}: {refused}");
        assert!(text(&refused).contains("It still waits"), "{server:?} {is_mock}: {refused}");
    }
    // As if the process had been started again.
    let staging = built(Some("http://127.0.0.1:9/staging"), false).await.unwrap();
    let waits = owner(&staging).await.call("execute", json!({ "code": code, "resume": key })).await;
    assert!(text(&waits).contains(&format!("(key {ask})")), "{waits}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn the_questions_of_a_program_have_the_room_of_one_result() {
    let (shop, kept) = (Shop::new(), Kept::default());
    let results = ResultLimits::new().with_max_shown(8_000);
    let gateway = shop.gateway().with_tools(Tools::Code).with_results(results.clone()).with_audit(kept.log());
    let gateway = gateway.build().await.unwrap();
    let mut client = owner(&gateway).await;
    let code = "
        const rename = petId => ops.shop.renamePet({ petId, name: 'x'.repeat(500) });
        return (await Promise.all(Array.from({ length: 30 }, (_, petId) => rename(petId)))).length;
    ";
    let (mut arguments, mut asked, mut rounds) = (json!({ "code": code }), 0, 0);
    let done = loop {
        let waits = client.call("execute", arguments).await;
        if asked == 30 {
            break waits;
        }
        assert_eq!(shop.renamed(), asked, "{waits}");
        let told = text(&waits);
        assert!(told.len() < 8_200, "{} bytes", told.len());
        // What cuts the text leaves its beginning.
        assert!(told.find("\"resume\": \"").is_some_and(|at| at < 200), "{told}");
        let keys: Vec<&str> =
            told.split("(key ").skip(1).filter_map(|rest| rest.split_once(')').map(|(key, _)| key)).collect();
        // The audit log has the calls that the model was told of, and no others.
        let outcomes = kept.outcomes(&gateway).await;
        let logged = outcomes.iter().filter(|outcome| outcome.ends_with(" APPROVAL_NEEDED")).count();
        assert_eq!(logged, keys.len(), "{outcomes:?}");
        asked += keys.len();
        rounds += 1;
        let more = 30 - asked;
        assert_eq!(told.contains(&format!("And {more} more call")), more > 0, "{told}");
        arguments = json!({ "code": code, "resume": part(&waits, "\"resume\": \"", '"'), "approve": keys });
    };
    assert_eq!((text(&done), shop.renamed()), ("30", 30), "{done}");
    assert!(rounds > 1, "{rounds}");
    // Nothing follows if the program cannot go on.
    let gateway = shop.gateway().with_tools(Tools::Code).with_results(results).with_approval_by_client_only();
    let gateway = gateway.build().await.unwrap();
    let waits = owner(&gateway).await.call("execute", json!({ "code": code })).await;
    assert!(text(&waits).contains("cannot go on") && text(&waits).ends_with(" more calls."), "{waits}");
}

#[tokio::test]
async fn a_program_that_went_on_after_a_no_has_ended() {
    let limits = Limits::new().with_memory(16 << 20);
    let gateway = Shop::new().gateway().with_tools(Tools::Code).with_program_limits(limits).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let code = "
        try { await ops.shop.renamePet({ petId: 7, name: 'Max' }) }
        catch (error) { const all = []; for (;;) all.push('x'.repeat(1e6) + all.length) }
    ";
    let waits = client.call("execute", json!({ "code": code })).await;
    let (key, ask) = (part(&waits, "\"resume\": \"", '"'), part(&waits, "(key ", ')'));
    let failed = client.call("execute", json!({ "code": code, "resume": key, "decline": [ask] })).await;
    assert!(text(&failed).starts_with("The program failed: ") && text(&failed).contains("memory"), "{failed}");
    let gone = client.call("execute", json!({ "code": code, "resume": key })).await;
    assert!(text(&gone).starts_with("No program waits under the key"), "{gone}");
}

#[tokio::test]
async fn an_argument_of_execute_that_says_nothing_is_none() {
    let gateway = Shop::new().gateway().with_tools(Tools::Code).build().await.unwrap();
    let mut client = owner(&gateway).await;
    for (arguments, told) in [
        (json!({ "code": "return 1", "resume": "", "approve": [], "decline": [] }), "1"),
        (json!({ "code": "return 1", "resume": null, "approve": null, "decline": null, "read": null }), "1"),
        (
            json!({ "code": null, "read": { "cursor": "x", "pointer": null, "from": null } }),
            "no result has this cursor",
        ),
        (json!({ "code": "", "resume": "", "read": { "cursor": "x" } }), "no result has this cursor"),
    ] {
        let answer = client.call("execute", arguments.clone()).await;
        assert!(texts(&answer)[0].contains(told), "{arguments}: {answer}");
    }
}

#[tokio::test]
async fn a_decision_is_taken_only_by_a_program_that_goes_on() {
    static WAIT: OperationSpec = OperationSpec::query("shop.wait");
    let (shop, kept) = (Shop::new(), Kept::default());
    let (begun, end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (tells, awaits) = (begun.clone(), end.clone());
    let wait = move |_: Value, _: Context| {
        let (begun, end) = (tells.clone(), awaits.clone());
        async move {
            begun.add_permits(1);
            drop(end.acquire().await);
            Ok::<_, CallError>(json!("waited"))
        }
    };
    shop.registry.register(Registration::new(&WAIT, Handler::dynamic(wait))).unwrap();
    let limits = CallerLimits::new().with_max_in_flight(1).with_max_waiting(0, Duration::ZERO);
    let gateway = shop.gateway().with_tools(Tools::Code).with_limits(limits).with_audit(kept.log());
    let gateway = gateway.build().await.unwrap();
    let (mut busy, mut client) = (owner(&gateway).await, owner(&gateway).await);
    let code = "return await ops.shop.renamePet({ petId: 7, name: 'Max' })";
    let waits = client.call("execute", json!({ "code": code })).await;
    let (key, ask) = (part(&waits, "\"resume\": \"", '"'), part(&waits, "(key ", ')'));
    assert_eq!(kept.outcomes(&gateway).await, ["shop.renamePet APPROVAL_NEEDED"]);
    // Another program of the same caller runs.
    let other = json!({ "name": "execute", "arguments": { "code": "return await ops.shop.wait({})" } });
    let id = busy.send("tools/call", other).await;
    begun.acquire().await.unwrap().forget();
    let declined = json!({ "code": code, "resume": key, "decline": [ask] });
    let refused = client.call("execute", declined.clone()).await;
    assert!(texts(&refused)[0].contains("TOO_MANY_REQUESTS"), "{refused}");
    assert_eq!(kept.outcomes(&gateway).await, [""; 0]);
    end.add_permits(1);
    busy.answer(id).await;
    assert_eq!(kept.outcomes(&gateway).await, ["shop.wait ok"]);
    client.call("execute", declined).await;
    assert_eq!(kept.outcomes(&gateway).await, ["shop.renamePet ACCESS_DENIED"]);
}

/// An operation that a test takes away, and registers again.
fn mail() -> Registration {
    static SEND: OperationSpec = OperationSpec::mutation("mail.send");
    Registration::new(&SEND, Handler::dynamic(|_: Value, _: Context| async { Ok::<_, CallError>(json!("sent")) }))
}

#[tokio::test]
async fn a_program_waits_while_one_of_its_operations_is_missing() {
    let shop = Shop::new();
    shop.registry.register(mail()).unwrap();
    let gateway = shop.gateway().with_tools(Tools::Code).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let code = "
        const first = await ops.shop.renamePet({ petId: 7, name: 'Max' });
        return [first.renamed, await ops.mail.send({})];
    ";
    let mut arguments = json!({ "code": code });
    for renamed in 0..2 {
        let waits = client.call("execute", arguments).await;
        assert_eq!(shop.renamed(), renamed, "{waits}");
        let (key, ask) = (part(&waits, "\"resume\": \"", '"'), part(&waits, "(key ", ')'));
        arguments = json!({ "code": code, "resume": key, "approve": [ask] });
    }
    shop.registry.remove("mail.send").unwrap();
    let told = client.call("execute", arguments.clone()).await;
    assert!(text(&told).starts_with("The program did not go on: TypeError: there is no ops.mail"), "{told}");
    assert!(text(&told).contains("It waits as before, with the answers of the user"), "{told}");
    shop.registry.register(mail()).unwrap();
    let done = client.call("execute", json!({ "code": code, "resume": arguments["resume"] })).await;
    assert_eq!((text(&done), shop.renamed()), (r#"["Max","sent"]"#, 1), "{done}");
}

/// A store that keeps the journals of ended programs, as if their calls were cancelled right before they end.
struct Lasting(MemoryStore);

impl JournalStore for Lasting {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Option<Journal>>> {
        self.0.load(name)
    }

    fn save<'a>(&'a self, name: &'a str, journal: &'a Journal) -> BoxFuture<'a, io::Result<()>> {
        self.0.save(name, journal)
    }

    fn hold<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Hold>> {
        self.0.hold(name)
    }

    fn remove<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn a_program_that_fails_at_its_end_waits_no_more() {
    let shop = Shop::new();
    let gateway = shop.gateway().with_tools(Tools::Code).with_program_store(Lasting(MemoryStore::new()));
    let gateway = gateway.build().await.unwrap();
    let mut client = owner(&gateway).await;
    let code = "await ops.shop.renamePet({ petId: 7, name: 'Max' }); throw new Error('no such shelf')";
    let waits = client.call("execute", json!({ "code": code })).await;
    let (key, ask) = (part(&waits, "\"resume\": \"", '"'), part(&waits, "(key ", ')'));
    for arguments in [
        json!({ "code": code, "resume": key, "approve": [ask] }),
        // All its calls are in the journal.
        json!({ "code": code, "resume": key }),
    ] {
        let failed = client.call("execute", arguments).await;
        assert!(text(&failed).starts_with("The program failed: no such shelf"), "{failed}");
        assert_eq!(shop.renamed(), 1, "{failed}");
    }
}

#[tokio::test]
async fn a_call_is_not_declined_because_its_operation_is_missing() {
    let shop = Shop::new();
    shop.registry.register(mail()).unwrap();
    let gateway = shop.gateway().with_tools(Tools::Code).build().await.unwrap();
    let form = json!({ "elicitation": {} });
    let mut client = Client::connect_with(gateway.owned_mcp_server(), REVISIONS[0], form).await;
    let code = "
        const [first, second] = await Promise.all([ops.shop.renamePet({ petId: 7, name: 'Max' }), ops.mail.send({})]);
        return [first.renamed, second];
    ";
    let id = client.send("tools/call", json!({ "name": "execute", "arguments": { "code": code } })).await;
    let question = client.receive().await;
    // While the user thinks about the first call, the operation of the second one goes away.
    shop.registry.remove("mail.send").unwrap();
    client.respond(&question["id"], json!({ "action": "accept" })).await;
    let waits = client.answer(id).await["result"].clone();
    assert!(text(&waits).starts_with("OPERATION_NOT_FOUND: "), "{waits}");
    assert!(text(&waits).contains("The program asks for `mail.send`, and waits"), "{waits}");
    shop.registry.register(mail()).unwrap();
    let arguments = json!({ "code": code, "resume": part(&waits, "\"resume\": \"", '"') });
    let id = client.send("tools/call", json!({ "name": "execute", "arguments": arguments })).await;
    let question = client.receive().await;
    assert!(question["params"]["message"].as_str().unwrap().contains("mail.send"), "{question}");
    client.respond(&question["id"], json!({ "action": "accept" })).await;
    let done = client.answer(id).await["result"].clone();
    assert_eq!((text(&done), shop.renamed()), (r#"["Max","sent"]"#, 1), "{done}");
}

#[tokio::test]
async fn a_call_of_an_operation_that_is_missing_is_not_a_denied_one() {
    static CLOSE: OperationSpec = OperationSpec::query("shop.close");
    let shop = Shop::new();
    shop.registry.register(mail()).unwrap();
    let registry = shop.registry.clone();
    let close = move |_: Value, _: Context| {
        registry.remove("mail.send");
        async { Ok::<_, CallError>(Value::Null) }
    };
    shop.registry.register(Registration::new(&CLOSE, Handler::dynamic(close))).unwrap();
    let gateway = shop.gateway().with_tools(Tools::Code).build().await.unwrap();
    let code = "await ops.shop.close({}); try { await ops.mail.send({}) } catch (error) { return error.code }";
    let done = owner(&gateway).await.call("execute", json!({ "code": code })).await;
    assert_eq!(text(&done), "OPERATION_NOT_FOUND", "{done}");
}

/// A program that changes something, and then makes a call that needs consent.
const RENAME_AND_SHOW: &str = "
    await ops.shop.renamePet({ petId: 7, name: 'Max' });
    return (await ops.shop.showPet({ petId: 7 })).name;
";

fn only_shows_ask() -> CallPolicy {
    CallPolicy::new().with_allow("shop.renamePet").with_ask("shop.showPet")
}

/// A client of 2026-07-28 may repeat its call without an answer: for example if its user closes the form.
#[tokio::test]
async fn a_program_without_an_answer_asks_again_and_repeats_nothing() {
    let shop = Shop::new();
    let gateway = shop.gateway().with_tools(Tools::Code).with_policy(only_shows_ask()).build().await.unwrap();
    let mut client = Client::connect(gateway.owned_mcp_server(), REVISIONS[1]).await;
    let arguments = json!({ "code": RENAME_AND_SHOW });
    let mut question = client.request("tools/call", asked(arguments.clone(), json!({}))).await["result"].clone();
    let key = question["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let yes = json!({ "action": "accept" });
    for answers in [json!({}), json!({ "other": yes }), json!({ key.as_str(): { "content": {} } })] {
        let more = json!({ "requestState": question["requestState"], "inputResponses": answers });
        question = client.request("tools/call", asked(arguments.clone(), more)).await["result"].clone();
        let requests = question["inputRequests"].as_object().unwrap_or_else(|| panic!("{answers}: {question}"));
        assert_eq!(requests.keys().collect::<Vec<_>>(), [&key], "{answers}");
        assert_eq!(shop.renamed(), 1, "{answers}");
    }
    // The client can no longer ask its user at all.
    let state = json!({ "requestState": question["requestState"] });
    let mut silent = asked(arguments.clone(), state);
    silent["_meta"] = json!({});
    let waits = client.request("tools/call", silent).await["result"].clone();
    assert_eq!(key.split(['-', '.']).nth(2), Some(part(&waits, "\"resume\": \"", '"')), "{waits}");
    let more = json!({ "requestState": question["requestState"], "inputResponses": { key.as_str(): yes } });
    let done = client.request("tools/call", asked(arguments, more)).await["result"].clone();
    assert_eq!((text(&done), shop.renamed()), ("Rex", 1), "{done}");
}

/// An operation that never ends, and a permit for each call of it.
fn add_endless(shop: &Shop) -> Arc<Semaphore> {
    static ENDLESS: OperationSpec = OperationSpec::query("shop.endless");
    let begun = Arc::new(Semaphore::new(0));
    let tells = begun.clone();
    let endless = move |_: Value, _: Context| {
        tells.add_permits(1);
        std::future::pending::<Result<Value, CallError>>()
    };
    shop.registry.register(Registration::new(&ENDLESS, Handler::dynamic(endless))).unwrap();
    begun
}

const RENAME_AND_WAIT: &str = "
    await ops.shop.renamePet({ petId: 7, name: 'Max' });
    await ops.shop.endless({});
";

fn half_a_minute() -> McpServerOptions {
    McpServerOptions::new("shop", "1").with_timeout(Duration::from_secs(30))
}

#[tokio::test(start_paused = true)]
async fn a_program_whose_call_ends_before_its_own_time_tells_what_it_has_changed() {
    let shop = Shop::new();
    add_endless(&shop);
    let policy = CallPolicy::new().with_allow("*");
    let gateway = shop.gateway().with_tools(Tools::Code).with_policy(policy).with_options(half_a_minute());
    let gateway = gateway.build().await.unwrap();
    let failed = owner(&gateway).await.call("execute", json!({ "code": RENAME_AND_WAIT })).await;
    assert_eq!(
        text(&failed),
        "The program failed: the program took longer than its call may take, while it waited for shop.endless\n\
         Before, it called what changes something, and what was done stays done: `shop.renamePet` (1)."
    );
    assert_eq!((shop.renamed(), &failed["isError"]), (1, &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn a_program_whose_call_ends_before_its_user_answers_waits() {
    let shop = Shop::new();
    let gateway = shop.gateway().with_tools(Tools::Code).with_policy(only_shows_ask()).with_options(half_a_minute());
    let gateway = gateway.build().await.unwrap();
    let form = json!({ "elicitation": {} });
    let mut client = Client::connect_with(gateway.owned_mcp_server(), REVISIONS[0], form).await;
    let waits = client.call("execute", json!({ "code": RENAME_AND_SHOW })).await;
    let told =
        "TIMEOUT: the user did not answer within the time of the call\nThe program asks for `shop.showPet`, and waits";
    assert!(text(&waits).starts_with(told), "{waits}");
    assert!(text(&waits).ends_with("stays done: `shop.renamePet` (1)."), "{waits}");
    let arguments = json!({ "code": RENAME_AND_SHOW, "resume": part(&waits, "\"resume\": \"", '"') });
    let id = client.send("tools/call", json!({ "name": "execute", "arguments": arguments })).await;
    // A message that withdraws the first question may come before the second question.
    let question = loop {
        let message = client.receive().await;
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    client.respond(&question["id"], json!({ "action": "accept" })).await;
    let done = client.answer(id).await["result"].clone();
    assert_eq!((text(&done), shop.renamed()), ("Rex", 1), "{done}");
}

/// Its key was never sent, so the program could not be resumed.
#[tokio::test]
async fn a_program_whose_call_is_dropped_leaves_no_journal() {
    let folder = std::env::temp_dir().join(format!("ops-dropped-{}", std::process::id()));
    let (shop, policy) = (Shop::new(), CallPolicy::new().with_allow("*"));
    let begun = add_endless(&shop);
    let gateway = shop.gateway().with_tools(Tools::Code).with_policy(policy);
    let gateway = gateway.with_program_store(FolderStore::new(&folder)).build().await.unwrap();
    let tools = gateway.tools();
    let call = tokio::spawn(async move { tools.call("gateway.execute", json!({ "code": RENAME_AND_WAIT })).await });
    begun.acquire().await.unwrap().forget();
    let journals = || {
        let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|extension| extension == "json")).count()
    };
    assert_eq!((journals(), shop.renamed()), (1, 1));
    call.abort();
    let removed = async {
        while journals() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, removed).await.expect("no journal");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn a_program_that_has_read_too_much_does_not_wait() {
    static ZEROS: OperationSpec = OperationSpec::query("shop.zeros");
    let code = "
        const zeros = await ops.shop.zeros({});
        await ops.shop.renamePet({ petId: 7, name: 'Max' });
        return zeros.length;
    ";
    let failed = "The program failed: the journal cannot be kept: the calls of the program take ";
    for (policy, told, renamed) in [(CallPolicy::new(), failed, 0), (CallPolicy::new().with_allow("*"), "400000", 1)] {
        let shop = Shop::new();
        let zeros = |_: Value, _: Context| async { Ok::<_, CallError>(json!(vec![0; 400_000])) };
        shop.registry.register(Registration::new(&ZEROS, Handler::dynamic(zeros))).unwrap();
        let gateway = shop.gateway().with_tools(Tools::Code).with_policy(policy).build().await.unwrap();
        let result = owner(&gateway).await.call("execute", json!({ "code": code })).await;
        assert!(texts(&result)[0].starts_with(told), "{}", texts(&result)[0]);
        assert_eq!(shop.renamed(), renamed);
    }
}
