//! What programs can do.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ops_runtime::program::{Limits, Outcome, Program, Reason, Sandbox};
use serde_json::json;

use crate::support::{Recorder, failure, functions, program, run, run_in, value};

#[tokio::test]
async fn values_go_in_and_out_as_json() {
    for (source, wanted) in [
        ("return 1 + 1", json!(2)),
        ("", json!(null)),
        ("return undefined // the end", json!(null)),
        ("const a = await ops.t.echo({ b: [1, null, 'ü'] }); return a.b", json!([1, null, "ü"])),
        ("return await ops.t.echo()", json!({})),
        ("return await ops.t.echo(null)", json!(null)),
        ("return ops.t.echo(7)", json!(7)),
        (
            "return { a: undefined, b: [undefined], c: new Date(0) }",
            json!({ "b": [null], "c": "1970-01-01T00:00:00.000Z" }),
        ),
        ("return -0", json!(0)),
        // Only what a call is given must not be rounded, and beyond 64 bits there is no other way to write it.
        (
            "const [a, b] = await ops.t.echo([1e20, 2 ** 53 - 1]); return [a, b, 2 ** 60]",
            json!([1e20, 9_007_199_254_740_991_u64, 1_152_921_504_606_847_000_u64]),
        ),
        ("return await ops.t.echo(2 ** 60).catch((error) => error.name)", json!("TypeError")),
        ("return await ops.t.echo(BigInt(2 ** 60))", json!(1_152_921_504_606_846_976_u64)),
        ("return await ops.t.echo([Object(2n ** 60n), Object(7)])", json!([1_152_921_504_606_846_976_u64, 7])),
        (
            "return await ops.t.echo({ a: undefined, b: null, c: new Date(0) })",
            json!({ "b": null, "c": "1970-01-01T00:00:00.000Z" }),
        ),
        ("return { ['a\\ud800\\\\ud800']: 1 }", json!({ "a\u{fffd}\\ud800": 1 })),
        ("return '\\ud800'", json!("\u{fffd}")),
        ("const [a, b] = await Promise.all([ops.t.echo(1), ops.t.echo(2)]); return a + b", json!(3)),
        ("return [typeof ops.t.echo, ops.t.echo.name]", json!(["function", "echo"])),
        ("return ['echo' in ops.t, 'nothing' in ops.t, 't' in ops, 'u' in ops]", json!([true, false, true, false])),
        ("const { t } = ops; const { echo } = t; return echo(5)", json!(5)),
        ("let s = 0; for await (const x of [ops.t.echo(1), ops.t.echo(2)]) s += x; return s", json!(3)),
        // As in Node, what nobody awaits is done before the end.
        ("let s = 0; [1, 2].forEach(async (x) => { s += await ops.t.echo(x) }); return s", json!(0)),
        ("return [1, 2, 3].toReversed().map((x) => x ** 2).at(-1)", json!(1)),
        ("return `${'é'.normalize('NFD').length} ${/(?<y>\\d{4})/u.exec('in 2024').groups.y}`", json!("2 2024")),
    ] {
        assert_eq!(value(source).await, wanted, "{source}");
    }
    let input = json!({ "__proto__": 1, "a": "\u{2028}`${x}`" });
    let with_input = program("return input").with_input(input.clone());
    let Outcome::Done(value) = Sandbox::default().run(&with_input, &Recorder::default()).await.outcome else {
        panic!()
    };
    assert_eq!(value, input);
}

#[tokio::test]
async fn calls_run_at_once_and_are_bounded() {
    let host = Recorder::default();
    let source = "await Promise.all(Array.from({ length: 12 }, (_, i) => ops.t.sleep({ ms: 20, i }))); return 1";
    let report = Sandbox::new(Limits::new().with_calls_in_flight(5)).run(&program(source), &host).await;
    assert!(matches!(report.outcome, Outcome::Done(_)), "{report:?}");
    assert_eq!((report.calls, host.calls.lock().unwrap().len()), (12, 12));
    assert_eq!(host.most_at_once.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn a_time_may_be_longer_than_any_clock_tells() {
    let report = run_in(Limits::new().with_time(Duration::MAX), "return ops.t.sleep({ ms: 1 })").await;
    assert!(matches!(report.outcome, Outcome::Done(_)), "{report:?}");
}

#[tokio::test]
async fn a_call_that_fails_throws() {
    let source = "try { await ops.t.fail({}) } catch (e) { return [e instanceof Error, e.code, e.message, e.details] }";
    assert_eq!(value(source).await, json!([true, "OUT_OF_STOCK", "no pets left", { "left": 0 }]));
    let source = "try { await ops.t.denied({}) } catch (e) { return e.code }";
    assert_eq!(value(source).await, json!("ACCESS_DENIED"));
    let failed = failure("const a = 1;\n\n  await ops.t.fail({});").await;
    assert_eq!((failed.reason, failed.code.as_deref(), failed.line), (Reason::Thrown, Some("OUT_OF_STOCK"), Some(3)));
    assert_eq!(failed.message, "no pets left");
}

#[tokio::test]
async fn whole_numbers_beyond_2_to_the_53rd_are_exact() {
    let source = "const { id, list } = await ops.t.ids({}); await ops.t.echo({ id, list }); console.log({ id });
        return [id, typeof id, typeof list[1], `${id}`, JSON.stringify({ id }), id + 1n, list, input]";
    let (host, most) = (Recorder::default(), json!({ "n": u64::MAX }));
    let report = Sandbox::default().run(&program(source).with_input(most.clone()), &host).await;
    let Outcome::Done(value) = report.outcome else { panic!("{:?}", report.outcome) };
    let (id, list) = (9_007_199_254_740_993_u64, json!([i64::MIN, 5, 1.5]));
    let text = id.to_string();
    let written = format!(r#"{{"id":"{text}"}}"#);
    assert_eq!(value, json!([id, "bigint", "number", text, written, id + 1, list, most]));
    assert_eq!(host.calls.lock().unwrap()[1].1, json!({ "id": id, "list": list }));
    assert_eq!(report.logs[0].text, format!(r#"{{"id":"{id}n"}}"#));
}

#[tokio::test]
async fn numbers_are_exact() {
    // Readers that are a little faster miss them by one in the last place.
    let numbers = json!([31.245270191439438, 121.48791951161945]);
    let source = format!("return [{numbers}, await ops.t.echo({numbers})]");
    assert_eq!(value(&source).await, json!([numbers, numbers]));
}

#[tokio::test]
async fn an_error_that_was_caught_is_data() {
    let told =
        json!({ "name": "CallError", "message": "no pets left", "code": "OUT_OF_STOCK", "details": { "left": 0 } });
    let source = "return (await Promise.allSettled([ops.t.fail({})]))[0]";
    assert_eq!(value(source).await, json!({ "status": "rejected", "reason": told }));
    let source = "return { e: new RangeError('far', { cause: new Error('near') }) }";
    let cause = json!({ "name": "Error", "message": "near" });
    assert_eq!(value(source).await, json!({ "e": { "name": "RangeError", "message": "far", "cause": cause } }));
    let source = "const e = new Error('x'); e.self = { e }; return e";
    assert!(failure(source).await.message.contains("the result has a cycle at `self.e`"));
    let report = run("try { await ops.t.fail({}) } catch (e) { console.error(e); console.log([e]) }").await;
    let logs: Vec<&str> = report.logs.iter().map(|log| log.text.as_str()).collect();
    assert!(logs[0].starts_with("CallError: no pets left [OUT_OF_STOCK] {\"left\":0}\n"), "{logs:?}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(logs[1]).unwrap(), json!([told]));
    assert_eq!(failure("await ops.t.fail({})").await.details.as_deref(), Some(r#"{"left":0}"#));
    let failed = failure("await Promise.any([ops.t.fail({})])").await;
    assert!(failed.details.as_deref().is_some_and(|details| details.contains("no pets left")), "{failed:?}");
}

#[tokio::test]
async fn what_fails_after_the_end_is_told() {
    let report = run("[1, 2].forEach(async () => { await ops.t.fail({}) }); return 'done'").await;
    assert!(matches!(report.outcome, Outcome::Done(ref value) if value == "done"), "{report:?}");
    let [told] = &report.warnings[..] else { panic!("{report:?}") };
    assert!(told.contains("`t.fail`: no pets left [OUT_OF_STOCK]; `t.fail`: "), "{told}");
    let report = run("for (let i = 0; i < 100; i++) ops.t.fail({}); return 1").await;
    assert!(report.warnings[0].contains("; and 95 more."), "{report:?}");
    for heard in ["try { await ops.t.fail({}) } catch {} return 1", "ops.t.echo({}); return 1"] {
        assert!(run(heard).await.warnings.is_empty(), "{heard}");
    }
}

#[tokio::test]
async fn what_fails_unheard_is_told() {
    for (source, wanted) in [
        (
            "[1, 2].forEach(async (id) => { await ops.t.showPets({ id }) }); return 1",
            "TypeError: there is no ops.t.showPets; nearest: showPet, at line 1, column ",
        ),
        ("[{ a: 1 }].forEach((i) => ops.t.echo({ price: i.a / 0 })); return 1", "the input has Infinity at `price`"),
        (
            "[1].forEach(async () => { await ops.t.fail({}) }); await ops.t.sleep({ ms: 50 }); return 1",
            "`t.fail`: no pets left [OUT_OF_STOCK].",
        ),
        ("[1].forEach(async () => { (await ops.t.echo({})).a.b }); return 1", "TypeError: cannot read property 'b'"),
        ("new Map([[1, 2]]).forEach(async () => { null.a }); return 1", "TypeError: cannot read property 'a'"),
        ("[1].map(async () => { null.a }); return 1", "TypeError: cannot read property 'a'"),
        (
            "const save = async () => { null.a }; for (const id of [1, 2]) save(id); return 1",
            "TypeError: cannot read property 'a'",
        ),
        ("[1].filter(async () => { null.a }); return 1", "TypeError: cannot read property 'a'"),
        ("new Promise((_, reject) => reject('no')); return 1", "the program threw no"),
        ("(async () => { await ops.t.sleep({ ms: 50 }); await ops.t.fail({}) })(); return 1", "`t.fail`: no pets left"),
        ("ops.t.echo({}).then((r) => r.a.b); return 1", "TypeError: cannot read property 'b'"),
        (
            "Promise.all([ops.t.fail({})]); await ops.t.sleep({ ms: 50 }); return 1",
            "`t.fail`: no pets left [OUT_OF_STOCK].",
        ),
        ("for (let i = 0; i < 1000; i++) ops.t.echo({ a: 1 / 0 }); return 1", "; and 995 more."),
    ] {
        let report = run(source).await;
        assert!(matches!(report.outcome, Outcome::Done(ref value) if *value == json!(1)), "{source}: {report:?}");
        let [told] = &report.warnings[..] else { panic!("{source}: {report:?}") };
        assert!(told.contains(wanted) && told.len() < 3_000, "{source}: {told}");
    }
    for heard in [
        "const p = ops.t.fail({}); await ops.t.sleep({ ms: 50 }); try { await p } catch {} return 1",
        "ops.t.fail({}).catch(() => {}); await ops.t.sleep({ ms: 50 }); return 1",
        "await Promise.allSettled([1, 2].map(async () => { await ops.t.fail({}) })); return 1",
        "const all = []; [1, 2].forEach(() => all.push(ops.t.fail({}))); for (const p of all) try { await p } catch {} return 1",
        "let p = Promise.resolve(); [1].forEach(() => (p = p.then(() => ops.t.fail({})))); try { await p } catch {} return 1",
        "[1, 2].forEach((n) => n + 1); return [1, 2].map((n) => n + 1)",
        "(async () => { await ops.t.sleep({ ms: 50 }); try { await ops.t.fail({}) } catch {} })(); return 1",
        "const f = async () => { throw new Error('x') }; for (let i = 0; i < 100; i++) try { await f() } catch {} return 1",
    ] {
        let report = run(heard).await;
        assert!(matches!(report.outcome, Outcome::Done(_)) && report.warnings.is_empty(), "{heard}: {report:?}");
    }
}

#[tokio::test]
async fn errors_say_what_and_where() {
    for (source, reason, message, line) in [
        ("x.y", Reason::Thrown, "ReferenceError: x is not defined", Some(1)),
        ("\n\nnull.a", Reason::Thrown, "TypeError: cannot read property 'a' of null", Some(3)),
        ("const a = {};\na.b()", Reason::Thrown, "TypeError: not a function", Some(2)),
        ("throw new Error('no')", Reason::Thrown, "no", Some(1)),
        ("throw { a: 1 }", Reason::Thrown, "the program threw {\"a\":1}", None),
        ("throw null", Reason::Thrown, "the program threw null", None),
        ("return (", Reason::Syntax, "SyntaxError: ", Some(1)),
        ("\nimport x from 'y'", Reason::Syntax, "SyntaxError: ", Some(2)),
        (
            "await ops.t.showPets({})",
            Reason::Thrown,
            "TypeError: there is no ops.t.showPets; nearest: showPet",
            Some(1),
        ),
        ("await ops.tt.a({})", Reason::Thrown, "TypeError: there is no ops.tt", Some(1)),
        ("return () => 1", Reason::Thrown, "TypeError: the result has a function, which has no JSON", None),
        (
            "return { a: [1, { b: 1n << 64n }] }",
            Reason::Thrown,
            "TypeError: the result has a BigInt beyond 64 bits at `a.1.b`",
            None,
        ),
        ("return [0 / 0]", Reason::Thrown, "TypeError: the result has NaN at `0`, which has no JSON", None),
        (
            "await ops.t.echo({ a: [{ id: 9007199254740993 }] })",
            Reason::Thrown,
            "TypeError: the input has a whole number beyond 2^53 at `a.0.id`, which JavaScript rounds: write it as a BigInt, \
             such as 9007199254740993n",
            Some(1),
        ),
        (
            "await ops.t.echo(-(2 ** 63))",
            Reason::Thrown,
            "TypeError: the input has a whole number beyond 2^53, which",
            Some(1),
        ),
        ("await ops.t.echo({ price: 1 / 0 })", Reason::Thrown, "TypeError: the input has Infinity at `price`", Some(1)),
        (
            "await ops.t.echo({ ids: [{ id: 1 }].map((pet) => pet.ID) })",
            Reason::Thrown,
            "TypeError: the input has undefined at `ids.0`, which has no JSON: use null, or leave it out",
            Some(1),
        ),
        ("await ops.t.echo([, 1])", Reason::Thrown, "TypeError: the input has undefined at `0`", Some(1)),
        (
            "await ops.t.echo({ until: new Date('soon') })",
            Reason::Thrown,
            "TypeError: the input has an invalid date at `until`, which has no JSON",
            Some(1),
        ),
        ("return [new Date(NaN)]", Reason::Thrown, "TypeError: the result has an invalid date at `0`", None),
        (
            "await ops.t.echo({ id: Object(2 ** 60) })",
            Reason::Thrown,
            "TypeError: the input has a whole number beyond 2^53 at `id`",
            Some(1),
        ),
        ("await ops.t.echo([new Number(NaN)])", Reason::Thrown, "TypeError: the input has NaN at `0`", Some(1)),
        (
            "await ops.t.echo([Object(1n << 64n)])",
            Reason::Thrown,
            "TypeError: the input has a BigInt beyond 64 bits at `0`",
            Some(1),
        ),
        ("return new Map().values()", Reason::Thrown, "TypeError: the result has an iterator, which has no JSON", None),
        ("return { r: /a/ }", Reason::Thrown, "TypeError: the result has a regular expression at `r`", None),
        ("return new Uint8Array(2)", Reason::Thrown, "TypeError: the result has bytes, which has no JSON", None),
        (
            "const a = { b: {} }; a.b.c = a; return a",
            Reason::Thrown,
            "TypeError: the result has a cycle at `b.c`",
            None,
        ),
        ("return { m: new Map() }", Reason::Thrown, "TypeError: the result has a Map at `m`", None),
        ("return [ops.t.echo(1)]", Reason::Thrown, "TypeError: the result has a promise at `0`", None),
        ("await ops.t.echo({ f() {} })", Reason::Thrown, "TypeError: the input has a function at `f`", Some(1)),
        ("await new Promise(() => {})", Reason::Stuck, "the program waits for a promise that nothing settles", None),
    ] {
        let failed = failure(source).await;
        assert_eq!(failed.reason, reason, "{source}: {failed:?}");
        assert!(failed.message.starts_with(message), "{source}: {failed:?}");
        if line.is_some() {
            assert_eq!(failed.line, line, "{source}: {failed:?}");
        }
    }
    let failed = failure("function one() {\n  throw new RangeError('far')\n}\none()").await;
    assert_eq!((failed.line, failed.to_string().as_str()), (Some(2), failed.to_string().as_str()));
    assert!(failed.stack.contains("one (program.js:2:"), "{failed:?}");
}

/// A program that catches an error often writes it to the console.
#[tokio::test]
async fn a_stack_has_the_lines_of_the_program_alone() {
    let source = "function one() {
  throw new RangeError('far');
}
class Own extends Error {
  constructor() { super('own'); Error.captureStackTrace(this, Own); }
}
try { one() } catch (error) { console.log(error); console.error(error.stack); }
try { await ops.t.fail({}) } catch (error) { console.log(error.stack); }
throw new Own()";
    let report = run(source).await;
    let logs: Vec<&str> = report.logs.iter().map(|log| log.text.as_str()).collect();
    let far = "    at one (program.js:2:13)\n    at <anonymous> (program.js:7:7)";
    let caught = format!("RangeError: far\n{far}");
    assert_eq!(logs, [caught.as_str(), far, "    at <anonymous> (program.js:8:19)"]);
    let Outcome::Failed(failed) = report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!((failed.line, failed.stack.as_str()), (Some(9), "at <anonymous> (program.js:9:11)"), "{failed:?}");
}

/// The engine's own functions throw errors of another kind, whose stack is a member of theirs.
#[tokio::test]
async fn an_error_of_the_engine_has_the_lines_of_the_program_alone() {
    let report = run("try { atob('*') } catch (error) { console.log(error); }\natob('*');\nreturn 1;").await;
    let logs: Vec<&str> = report.logs.iter().map(|log| log.text.as_str()).collect();
    let message = "InvalidCharacterError: The string to be decoded is not correctly encoded";
    assert_eq!(logs, [format!("{message}\n    at <anonymous> (program.js:1:7)")]);
    let Outcome::Failed(failed) = report.outcome else { panic!("{:?}", report.outcome) };
    let found = (&*failed.message, failed.line, failed.column, &*failed.stack);
    assert_eq!(found, (message, Some(2), Some(1), "at <anonymous> (program.js:2:1)"));
}

#[tokio::test]
async fn a_call_fails_as_usual_where_the_program_has_changed_what_a_stack_is() {
    let source = "Object.defineProperty(Error.prototype, 'stack', { get() { throw 1 } });
try { await ops.t.fail({}) } catch (error) { return [error.code, error.stack] }";
    assert_eq!(value(source).await, json!(["OUT_OF_STOCK", "    at <anonymous> (program.js:2:19)"]));
}

#[tokio::test]
async fn the_console_is_kept_and_bounded() {
    let report =
        run("console.log('a', 1, { b: [2] }); console.warn(new Error('no').message); console.error(undefined, 1n)")
            .await;
    let logs: Vec<(&str, &str)> = report.logs.iter().map(|log| (log.level.as_str(), log.text.as_str())).collect();
    assert_eq!(logs, [("log", "a 1 {\"b\":[2]}"), ("warn", "no"), ("error", "undefined 1n")]);
    let report = run("for (let i = 0; i < 3000; i++) console.log('x'.repeat(1000)); return 1").await;
    assert!(matches!(report.outcome, Outcome::Done(_)), "{:?}", report.outcome);
    let bytes: usize = report.logs.iter().map(|log| log.text.len()).sum();
    assert!(bytes > 60_000 && bytes <= 64 << 10, "{bytes}");
    assert_eq!(
        report.warnings,
        [format!("{} lines of the console were left out: it holds 65536 bytes", 3000 - bytes / 1000)]
    );
    let source = "for (let i = 0; i < 10; i++) console.log('x'.repeat(100)); return 1";
    let report = run_in(Limits::new().with_logs(400), source).await;
    assert_eq!(report.logs.len(), 3);
    assert_eq!(report.warnings, ["7 lines of the console were left out: it holds 400 bytes"]);
}

#[tokio::test]
async fn each_limit_ends_a_program_with_an_error_that_names_it() {
    let small = || Limits::new().with_time(Duration::from_millis(700));
    for (limits, source, reason, named) in [
        (
            Limits::new().with_time(Duration::from_secs(3)),
            "await ops.t.sleep({ ms: 60000 })",
            Reason::Time,
            "while it waited for t.sleep (`Limits::with_time`)",
        ),
        (Limits::new().with_cpu(Duration::from_millis(100)), "for (;;) {}", Reason::Cpu, "with_cpu"),
        // What never waits is ended in time, too.
        (small().with_cpu(Duration::from_secs(20)), "for (;;) {}", Reason::Time, "with_time"),
        (
            small().with_cpu(Duration::from_secs(20)).with_calls(usize::MAX).with_traffic(usize::MAX),
            "for (;;) await ops.t.echo(1)",
            Reason::Time,
            "with_time",
        ),
        (
            Limits::new().with_memory(4 << 20),
            "const a = []; for (;;) a.push('x'.repeat(1000) + a.length)",
            Reason::Memory,
            "with_memory",
        ),
        (
            Limits::new().with_total_memory(4 << 20),
            "const a = []; for (;;) a.push('x'.repeat(1000) + a.length)",
            Reason::Memory,
            "with_total_memory",
        ),
        (
            Limits::new().with_calls(3),
            "for (;;) await ops.t.echo(1)",
            Reason::Calls,
            "more than 3 calls (`Limits::with_calls`)",
        ),
        (Limits::new().with_traffic(1 << 20), "await ops.t.big({})", Reason::Traffic, "with_traffic"),
        (
            Limits::new().with_output(100),
            "return 'x'.repeat(100)",
            Reason::Output,
            "returned 102 bytes of JSON, more than 100",
        ),
        (Limits::new().with_source(10), "return 12345", Reason::Source, "with_source"),
    ] {
        let sandbox = Sandbox::new(limits);
        let report = sandbox.run(&program(source), &Recorder::default()).await;
        let Outcome::Failed(failed) = report.outcome else { panic!("{source}: {:?}", report.outcome) };
        assert_eq!(failed.reason, reason, "{source}: {failed:?}");
        assert!(failed.message.contains(named), "{source}: {failed:?}");
    }
}

#[tokio::test]
async fn clocks_and_random_numbers_are_those_of_the_journal() {
    let source = "const a = [Date.now(), Math.random()]; for (let i = 0; i < 1e4; i++); const b = Date.now(); \
                  await ops.t.sleep({ ms: 30 }); return [...a, b, Date.now(), Math.random()]";
    let seen = value(source).await;
    assert_eq!(seen[0], seen[2], "the clock stands still: {seen}");
    assert!(seen[3].as_u64().unwrap() >= seen[2].as_u64().unwrap() + 30, "{seen}");
    assert!(seen[0].is_u64() && seen[1] != seen[4], "{seen}");
    assert_ne!(value(source).await[1], seen[1]);
}

#[tokio::test]
async fn a_program_without_search_has_none() {
    assert_eq!(
        value("return [typeof search, typeof describe, typeof input]").await,
        json!(["undefined", "undefined", "object"])
    );
    let program = Program::new("return 1", functions());
    assert!(matches!(Sandbox::default().run(&program, &Recorder::default()).await.outcome, Outcome::Done(_)));
}
