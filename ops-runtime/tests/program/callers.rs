//! Programs whose calls go to a registry.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ops_runtime::access::{CallPolicy, Decision, Identity};
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::HttpBinding;
use ops_runtime::call::{CallHandler, InProcess};
use ops_runtime::program::{CallerHost, Functions, Host, MemoryStore, Outcome, Program, Sandbox, StoredJournal};
use ops_runtime::spec::OperationSpec;
use ops_runtime::{CallError, Registry, operation};
use serde_json::{Value, json};

/// Refunds an order, or an amount of it.
#[operation(namespace = "shop", kind = mutation)]
async fn refund(order: u64, amount: Option<u64>) -> String {
    amount.map_or_else(|| format!("all of {order}"), |amount| format!("{amount} of {order}"))
}

/// A program that refunds what its input says.
fn refunding() -> Program {
    let functions: Functions = [("shop", "refund", "shop.refund")].into_iter().collect();
    Program::new("try { return await ops.shop.refund(input) } catch (e) { return [e.code, e.message] }", functions)
}

/// The error of a misspelt `amount`.
fn wrong() -> Value {
    json!(["VALIDATION_ERROR", "`ammount` is not in the input of `shop.refund`: did you mean `amount`?"])
}

/// A member that the function would pass over is misspelt: without it, the whole order would be refunded.
#[tokio::test]
async fn a_misspelt_argument_is_refused_and_nobody_is_asked_about_it() {
    let registry = Registry::new();
    registry.register(Refund).unwrap();
    let specs = registry.list();
    let program = refunding();
    let ann = registry.scoped(Identity::new("ann"));
    let allowing = CallPolicy::new().with_allow("shop.*");
    let specs = || specs.iter().map(|spec| &**spec);
    let free = CallerHost::new(registry.clone(), specs(), &allowing);
    let scoped = CallerHost::new(ann.clone(), specs(), &allowing);
    let asking = CallerHost::new(registry.clone(), specs(), &CallPolicy::new());
    let asking = asking.with_check(move |id, input| registry.check_input(id, input));
    let asking_ann = CallerHost::new(ann.clone(), specs(), &CallPolicy::new());
    let asking_ann = asking_ann.with_check(move |id, input| ann.check_input(id, input));
    let (sandbox, misspelt) = (Sandbox::default(), program.clone().with_input(json!({ "order": 7, "ammount": 5 })));
    let hosts: [&dyn Host; 4] = [&free, &scoped, &asking, &asking_ann];
    for (at, host) in hosts.into_iter().enumerate() {
        let outcome = sandbox.run(&misspelt, host).await.outcome;
        assert!(matches!(outcome, Outcome::Done(ref value) if *value == wrong()), "{at}: {outcome:?}");
    }
    let right = program.with_input(json!({ "order": 7, "amount": 5 }));
    let outcome = sandbox.run(&right, &free).await.outcome;
    assert!(matches!(outcome, Outcome::Done(ref value) if value == "5 of 7"), "{outcome:?}");
    let outcome = sandbox.run(&right, &asking).await.outcome;
    assert!(matches!(outcome, Outcome::Waiting(_)), "{outcome:?}");
}

/// Nor is it sent to a worker, whose function would pass over it as well.
#[tokio::test]
async fn a_misspelt_argument_is_not_sent_to_another_process() {
    let (served, transport) = (Registry::new(), InProcess::new());
    served.register(Refund).unwrap();
    let worker = transport.serve(CallHandler::new(served));
    let (registry, remote) = (Registry::new(), transport.remote());
    registry.register_all(remote.bind(remote.list()).unwrap()).unwrap();
    let specs = registry.list();
    let specs = || specs.iter().map(|spec| &**spec);
    let allowing = CallPolicy::new().with_allow("shop.*");
    let direct = CallerHost::new(remote, specs(), &allowing);
    let bound = CallerHost::new(registry.clone(), specs(), &allowing);
    let asking = CallerHost::new(registry.clone(), specs(), &CallPolicy::new());
    let asking = asking.with_check(move |id, input| registry.check_input(id, input));
    let (sandbox, program) = (Sandbox::default(), refunding());
    let misspelt = program.clone().with_input(json!({ "order": 7, "ammount": 5 }));
    let hosts: [&dyn Host; 3] = [&direct, &bound, &asking];
    for (at, host) in hosts.into_iter().enumerate() {
        let outcome = sandbox.run(&misspelt, host).await.outcome;
        assert!(matches!(outcome, Outcome::Done(ref value) if *value == wrong()), "{at}: {outcome:?}");
    }
    let right = program.with_input(json!({ "order": 7, "amount": 5 }));
    let hosts: [&dyn Host; 2] = [&direct, &bound];
    for (at, host) in hosts.into_iter().enumerate() {
        let outcome = sandbox.run(&right, host).await.outcome;
        assert!(matches!(outcome, Outcome::Done(ref value) if value == "5 of 7"), "{at}: {outcome:?}");
    }
    worker.stop().await;
}

/// As the types for TypeScript say it: without that, a script that they accept would fail.
#[tokio::test]
async fn a_stream_gives_its_first_items_as_a_list() {
    static COUNT: OperationSpec = OperationSpec::subscription("shop.count");
    let registry = Registry::new();
    let items = |_, _| async move {
        let item = |n: u32| if n == 1 { Err(CallError::new("NO_ITEM", "it is gone")) } else { Ok(json!(n)) };
        Ok(futures_util::stream::iter((0..1_000).map(item)))
    };
    registry.register(Registration::new(&COUNT, Handler::dynamic_stream(items))).unwrap();
    let host = CallerHost::new(registry, [&COUNT], &CallPolicy::new());
    assert!(host.is_query("shop.count"));
    let functions: Functions = [("shop", "count", "shop.count")].into_iter().collect();
    let source = "const all = await ops.shop.count(); return [all.length, all[0], all[1].error.code, all[99]]";
    let outcome = Sandbox::default().run(&Program::new(source, functions), &host).await.outcome;
    assert!(matches!(outcome, Outcome::Done(ref value) if *value == json!([100, 0, "NO_ITEM", 99])), "{outcome:?}");
}

/// A resumed program does not repeat such a stream, as it repeats no other change.
#[tokio::test]
async fn a_stream_that_may_change_something_is_not_repeated() {
    static RUN: OperationSpec = OperationSpec::subscription("ai.run").with_http(HttpBinding::new("POST", "/runs"));
    static ASK: OperationSpec =
        OperationSpec::subscription("ai.ask").with_http(HttpBinding::new("POST", "/questions")).with_changes(false);
    let functions: Functions = [("ai", "run", "ai.run"), ("ai", "ask", "ai.ask")].into_iter().collect();
    for (spec, name, decision, calls) in [(&RUN, "run", Decision::Ask, 1), (&ASK, "ask", Decision::Allow, 2)] {
        let (registry, made) = (Registry::new(), Arc::new(AtomicUsize::new(0)));
        let counted = made.clone();
        let items = move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Err::<futures_util::stream::Empty<_>, _>(CallError::execution("status 503")) }
        };
        registry.register(Registration::new(spec, Handler::dynamic_stream(items))).unwrap();
        let asking = CallerHost::new(registry.clone(), [spec], &CallPolicy::new());
        assert_eq!((asking.decide(&spec.id, &json!({})), asking.is_query(&spec.id)), (decision, calls == 2), "{name}");
        let host = CallerHost::new(registry, [spec], &CallPolicy::new().with_allow("*"));
        let program = Program::new(format!("return await ops.ai.{name}({{}})"), functions.clone());
        let store = MemoryStore::new();
        for _ in 0..2 {
            let outcome =
                Sandbox::default().run_stored(&program, &StoredJournal::new(&store, "one"), &host).await.outcome;
            assert!(matches!(outcome, Outcome::Failed(_)), "{name}: {outcome:?}");
        }
        assert_eq!(made.load(Ordering::SeqCst), calls, "{name}");
    }
}
