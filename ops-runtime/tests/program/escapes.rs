//! Attempts to get out, or to take more than there is: each ends in a value that is harmless, or in the error of a limit.

use std::process::Command;
use std::time::Duration;

use ops_runtime::program::{Limits, Outcome, Reason, Sandbox};
use serde_json::json;

use crate::support::{Recorder, program};

/// What an attempt comes to.
enum End {
    /// A value, as JSON.
    Gets(&'static str),
    /// One of these failures.
    Fails(&'static [Reason]),
}

use End::{Fails, Gets};
use Reason::{Calls, Cpu, Depth, Memory, Output, Stuck, Syntax, Thrown, Time, Traffic};

/// The text of the error that a statement throws.
const CAUGHT: &str = "const caught = (act) => { try { return String(act()) } catch (e) { return e.message } };
    const awaited = async (act) => { try { return String(await act()) } catch (e) { return e.message } };\n";

const NO_CODE: &str = "\"text cannot be made into code here\"";

const ATTEMPTS: &[(&str, End, &str)] = &[
    // Code out of text.
    ("eval", Gets("\"undefined\""), "return typeof eval"),
    ("indirect-eval", Gets("\"eval is not defined\""), "return caught(() => (0, eval)('1'))"),
    ("Function", Gets("\"undefined\""), "return typeof Function"),
    ("function-constructor", Gets(NO_CODE), "return caught(() => (() => {}).constructor('return 1')())"),
    ("async-constructor", Gets(NO_CODE), "return caught(() => (async () => {}).constructor('return 1')())"),
    ("generator-constructor", Gets(NO_CODE), "return caught(() => (function* () {}).constructor('yield 1')())"),
    ("async-generator-constructor", Gets(NO_CODE), "return caught(() => (async function* () {}).constructor('1')())"),
    ("constructor-of-operation", Gets(NO_CODE), "return caught(() => ops.t.echo.constructor('return 1')())"),
    ("constructor-of-native", Gets(NO_CODE), "return caught(() => [].map.constructor.constructor('return 1')())"),
    (
        "constructor-by-reflect",
        Gets(NO_CODE),
        "return caught(() => Reflect.construct(Object.getPrototypeOf(() => {}).constructor, ['return 1']))",
    ),
    (
        "constructor-put-back",
        Gets("\"property is not configurable\""),
        "return caught(() => Object.defineProperty(Object.getPrototypeOf(() => {}), 'constructor', { get() { return 1 } }))",
    ),
    ("import", Gets("true"), "return (await awaited(() => import('std'))).includes('std')"),
    ("import-file", Gets("true"), "return (await awaited(() => import('/etc/passwd'))).includes('passwd')"),
    ("import-statement", Fails(&[Syntax]), "import * as os from 'os'"),
    ("import-meta", Fails(&[Syntax, Thrown]), "return import.meta.url"),
    ("break-out-of-the-body", Gets("null"), "}); globalThis.x = 1; (async () => {"),
    (
        "require",
        Gets("\"undefined undefined undefined undefined\""),
        "return [typeof require, typeof process, typeof Deno, typeof module].join(' ')",
    ),
    // What leads out, or is finer than it may be.
    (
        "globals",
        Gets("[\"console\",\"input\",\"ops\"]"),
        "return Object.keys(globalThis).filter((k) => k !== 'x').sort()",
    ),
    (
        "network-and-timers",
        Gets("true"),
        "return ['fetch', 'XMLHttpRequest', 'WebSocket', 'setTimeout', 'setInterval', 'std', 'os', \
        'scriptArgs', 'print', 'Worker', 'navigator', 'gc', 'host', 'evaluate'].every((k) => !(k in globalThis))",
    ),
    (
        "shared-memory",
        Gets("\"undefined undefined undefined undefined\""),
        "return [typeof Atomics, typeof SharedArrayBuffer, typeof WeakRef, typeof FinalizationRegistry].join(' ')",
    ),
    (
        "clock",
        Gets("[true,\"undefined\",true]"),
        "const a = Date.now(); for (let i = 0; i < 1e4; i++); \
        return [a === Date.now(), typeof performance, Number.isInteger(+new Date())]",
    ),
    ("time-zone", Gets("0"), "return new Date().getTimezoneOffset()"),
    ("this", Gets("\"undefined\""), "return (function () { return typeof this })()"),
    ("caller", Gets("true"), "return caught(() => (function f() { return f.caller })()).length > 0"),
    ("stack-of-the-host", Gets("false"), "return /\\/(root|home|work|usr)\\//.test(new Error().stack)"),
    (
        "prepare-stack-trace",
        Gets("\"undefined\""),
        "Error.prepareStackTrace = (_, sites) => sites; const sites = new Error().stack; return typeof sites[0]?.getThis?.()",
    ),
    ("global-of-function", Gets("true"), "return (0, function () { return this })() === undefined"),
    // Changing what it finds.
    ("replace-ops", Gets("true"), "return caught(() => { globalThis.ops = {} }).includes('read-only')"),
    ("set-operation", Gets("\"`ops.t` cannot be changed\""), "return caught(() => { ops.t.echo = () => 1 })"),
    (
        "define-operation",
        Gets("true"),
        "return caught(() => Object.defineProperty(ops.t, 'echo', { value: 1 })).length > 0 && (await ops.t.echo(2)) === 2",
    ),
    (
        "prototype-of-ops",
        Gets("[true,true]"),
        "return [Object.getPrototypeOf(ops) === null, caught(() => Object.setPrototypeOf(ops, {})).length > 0]",
    ),
    ("ops-of-a-prototype", Gets("\"there is no ops.__proto__\""), "return caught(() => ops.__proto__)"),
    ("operation-of-a-prototype", Gets("\"there is no ops.t.constructor\""), "return caught(() => ops.t.constructor)"),
    (
        "poisoned-array",
        Gets("3"),
        "Array.prototype.map = Array.prototype.push = Array.prototype.pop = () => { throw 1 }; return ops.t.echo(3)",
    ),
    (
        "poisoned-promise",
        Gets("4"),
        "const then = Promise.prototype.then; Promise.prototype.then = function (...a) { return then.apply(this, a) }; return ops.t.echo(4)",
    ),
    (
        "poisoned-json",
        Gets("\"undefined\""),
        "JSON.stringify = () => '{\"x\":1}'; JSON.parse = () => ({ ops: 1 }); return typeof (await ops.t.echo({})).ops",
    ),
    (
        "poisoned-map",
        Gets("5"),
        "Map.prototype.get = () => ({ resolve() { throw 1 } }); return await Promise.race([ops.t.echo(5), Promise.resolve(5)])",
    ),
    (
        "poisoned-object",
        Gets("true"),
        "Object.prototype.number = 7; Object.prototype.run = { source: 'x' }; return (await ops.t.echo({ a: 1 })).a === 1",
    ),
    (
        "setter-of-prototype",
        Gets("1"),
        "Object.defineProperty(Object.prototype, 'value', { set() { throw 1 }, get() { return 2 } }); return ops.t.echo(1)",
    ),
    // Names, inputs, results and errors made to break out.
    ("name-made-to-break-out", Gets("1"), "return ops.odd[\"x'];process.exit();//\"](1)"),
    (
        "name-of-prototype",
        Gets("[1,2,3]"),
        "return [await ops.odd.__proto__(1), await ops.odd.constructor(2), await ops.odd['then'](3)]",
    ),
    ("name-with-zero", Gets("true"), "return caught(() => ops.t['a\\0b\"]},{']).startsWith('there is no')"),
    ("name-with-half-a-pair", Gets("true"), "return caught(() => ops.t['\\ud800']).length > 0"),
    ("long-name", Gets("true"), "return caught(() => ops['x'.repeat(1e5)]).length < 1000"),
    ("await-ops", Gets("\"object\""), "return typeof await ops"),
    (
        "result-with-prototype",
        Gets("[true,\"undefined\",\"undefined\"]"),
        "const r = await ops.t.hostile({}); return [Object.hasOwn(r, '__proto__'), typeof r.polluted, typeof {}.polluted]",
    ),
    ("result-that-is-a-thenable", Gets("\"now\""), "return (await ops.t.hostile({})).then"),
    ("result-with-code", Gets("true"), "return (await ops.t.hostile({})).text.includes('ops.t.set')"),
    (
        "result-sent-back",
        Gets("true"),
        "const r = await ops.t.hostile({}); return JSON.stringify(await ops.t.echo(r)) === JSON.stringify(r)",
    ),
    (
        "input-with-prototype",
        Gets("[\"__proto__\"]"),
        "return Object.keys(await ops.t.echo(JSON.parse('{\"__proto__\": 1}')))",
    ),
    ("input-with-getter", Gets("{\"a\":1}"), "let i = 0; return ops.t.echo({ get a() { i++; return 1 } })"),
    (
        "input-that-throws",
        Gets("\"mine\""),
        "return awaited(() => ops.t.echo({ get a() { throw new Error('mine') } }))",
    ),
    (
        "input-that-is-a-proxy",
        Gets("{\"a\":\"a\"}"),
        "return ops.t.echo(new Proxy({}, { ownKeys: () => ['a'], get: (_, k) => k === 'toJSON' ? undefined : k, \
        getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }) }))",
    ),
    (
        "proxy-without-end",
        Fails(&[Depth, Memory, Cpu]),
        "const p = () => new Proxy({}, { ownKeys: () => ['a'], get: (_, k) => k === 'toJSON' ? undefined : p(), \
        getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }) }); return p()",
    ),
    ("to-json-that-answers-a-function", Fails(&[Thrown]), "return { toJSON: () => () => 1 }"),
    (
        "to-json-without-end",
        Fails(&[Depth, Memory, Cpu, Thrown]),
        "const o = () => ({ toJSON: () => ({ o: o() }) }); return o()",
    ),
    ("thenable-without-end", Fails(&[Cpu, Memory]), "const t = () => ({ then: (f) => f(t()) }); return t()"),
    (
        "hostile-error",
        Fails(&[Thrown]),
        "const e = new Error('x'); Object.defineProperty(e, 'message', { get() { throw e } }); throw e",
    ),
    ("hostile-stack", Fails(&[Thrown]), "const e = new Error('x'); e.stack = { toString() { throw 1 } }; throw e"),
    (
        "stack-made-up",
        Fails(&[Thrown]),
        "const e = new Error('x'); e.stack = 'at program.js:99999999999999999999:1\\n'.repeat(1e4); throw e",
    ),
    ("thrown-proxy", Fails(&[Thrown]), "throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 2 } })"),
    (
        "hostile-log",
        Gets("1"),
        "console.log({ toString() { throw 1 }, toJSON() { throw 2 } }, Symbol('x'), new Proxy(() => {}, {}), '\\ud800'); return 1",
    ),
    ("call-of-what-is-denied", Gets("\"programs may not call `t.denied`\""), "return awaited(() => ops.t.denied({}))"),
    // Time.
    ("loop", Fails(&[Cpu]), "for (;;) {}"),
    ("loop-that-catches", Fails(&[Cpu]), "for (;;) { try { for (;;) {} } catch {} }"),
    ("loop-in-finally", Fails(&[Cpu]), "try { for (;;) {} } finally { for (;;) {} }"),
    ("loop-in-a-getter", Fails(&[Cpu]), "return { get a() { for (;;) {} } }"),
    ("generator-without-end", Fails(&[Cpu]), "function* g() { for (;;) yield 1 } for (const x of g());"),
    ("spread-without-end", Fails(&[Memory, Cpu]), "function* g() { for (;;) yield 1 } return [...g()]"),
    (
        "async-iterator-without-end",
        Fails(&[Cpu]),
        "for await (const x of { [Symbol.asyncIterator]: () => ({ next: async () => ({ value: 1 }) }) });",
    ),
    ("regular-expression", Fails(&[Cpu]), "return /^(a+)+$/.test('a'.repeat(60) + 'b')"),
    ("regular-expression-with-references", Fails(&[Cpu, Memory]), "return /(x+x+)+\\1+y/.exec('x'.repeat(200))"),
    ("search-of-a-string", Fails(&[Cpu]), "return 'a'.repeat(4e6).indexOf('a'.repeat(2e6) + 'b')"),
    ("search-of-an-array-like", Fails(&[Cpu]), "return Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)"),
    ("sparse-array", Fails(&[Cpu, Memory]), "const a = []; a.length = 2 ** 32 - 1; return a.join('').length"),
    (
        "sort-that-lies",
        Gets("100"),
        "return Array.from({ length: 100 }, (_, i) => i).sort(() => Math.random() - 0.5).length",
    ),
    ("normalise-marks", Fails(&[Cpu, Memory]), "return ('a' + '\\u0301\\u0323'.repeat(3e6)).normalize('NFC').length"),
    ("promise-that-never-ends", Fails(&[Stuck]), "await new Promise(() => {})"),
    ("promise-of-an-operation-that-never-ends", Fails(&[Time]), "await ops.t.sleep({ ms: 600000 })"),
    ("microtasks-without-end", Fails(&[Cpu]), "const f = () => Promise.resolve().then(f); await f()"),
    (
        "microtasks-in-the-background",
        Fails(&[Cpu, Memory]),
        "const f = () => { Promise.resolve().then(f); Promise.resolve().then(f) }; f(); return 1",
    ),
    ("queue-microtask", Fails(&[Cpu]), "const f = () => queueMicrotask(f); f(); return 1"),
    ("calls-without-end", Fails(&[Calls]), "for (;;) await ops.t.echo(1)"),
    ("calls-at-once-without-end", Fails(&[Calls]), "for (;;) ops.t.echo(1).catch(() => {})"),
    // Memory.
    ("array", Fails(&[Memory, Cpu]), "const a = []; for (;;) a.push(a.slice())"),
    ("string", Fails(&[Memory, Thrown, Cpu]), "let s = 'x'; for (;;) s += s"),
    ("string-repeat", Fails(&[Memory, Thrown]), "return 'x'.repeat(2 ** 30).length"),
    ("array-of-length", Fails(&[Memory, Thrown, Cpu]), "return new Array(2 ** 32 - 1).fill(1).length"),
    ("typed-array", Fails(&[Memory, Thrown]), "return new Uint8Array(2 ** 31).length"),
    ("typed-arrays", Fails(&[Memory, Thrown]), "const a = []; for (;;) a.push(new Float64Array(1e5))"),
    (
        "growing-buffer",
        Fails(&[Memory, Thrown]),
        "const b = new ArrayBuffer(1, { maxByteLength: 2 ** 31 }); b.resize(2 ** 30); return 1",
    ),
    (
        "memory-that-is-caught",
        Fails(&[Cpu, Memory]),
        "const a = []; for (;;) { try { a.push('x'.repeat(1e6 + a.length)) } catch {} }",
    ),
    ("big-integer", Fails(&[Memory, Thrown, Cpu]), "let b = 2n; for (;;) b *= b"),
    ("closures", Fails(&[Memory, Cpu]), "let f = null; for (;;) { const g = f; f = () => g }"),
    ("map", Fails(&[Memory, Cpu]), "const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })"),
    ("symbols", Fails(&[Memory, Cpu]), "for (let i = 0; ; i++) Symbol.for('x'.repeat(1000) + i)"),
    ("promises", Fails(&[Memory, Cpu]), "const a = []; for (;;) a.push(new Promise(() => {}))"),
    // Depth.
    ("recursion", Fails(&[Depth]), "const f = () => f() + 1; return f()"),
    (
        "recursion-that-is-caught",
        Fails(&[Depth, Cpu]),
        "const f = () => { try { return f() + 1 } catch { return f() } }; return f()",
    ),
    ("recursion-by-to-string", Fails(&[Depth]), "const o = { toString: () => `${o}` }; return `${o}`"),
    ("recursion-by-a-proxy", Fails(&[Depth]), "const p = new Proxy({}, { get: (_, k, r) => r[k] }); return p.a"),
    ("deep-json", Fails(&[Depth]), "return JSON.parse('['.repeat(2e4) + ']'.repeat(2e4))"),
    ("deep-result", Fails(&[Depth, Cpu]), "let a = []; for (let i = 0; i < 1e4; i++) a = [a]; return a"),
    ("deep-input", Fails(&[Depth]), "let a = []; for (let i = 0; i < 200; i++) a = [a]; return ops.t.echo(a)"),
    ("deep-expression", Fails(&[Depth, Thrown]), "return caught(() => JSON.parse('{\"a\":'.repeat(1e5)))"),
    (
        "deep-regular-expression",
        Fails(&[Depth, Thrown, Syntax]),
        "return new RegExp('('.repeat(1e5) + ')'.repeat(1e5)).test('a')",
    ),
    // Output.
    ("output", Fails(&[Output]), "return 'x'.repeat(2e5)"),
    ("console", Gets("1"), "for (let i = 0; i < 2e3; i++) console.log('x'.repeat(100)); return 1"),
    ("one-long-line", Gets("1"), "console.log('x'.repeat(5e5)); return 1"),
    ("long-error", Fails(&[Thrown]), "throw new Error('x'.repeat(5e5))"),
    (
        "long-error-without-cuts",
        Fails(&[Thrown]),
        "String.prototype.slice = function () { return String(this) }; const e = new Error('x'.repeat(2e4)); \
        e.stack = 'program.js:1\\n'.repeat(1e3); throw e",
    ),
    (
        "longer-error-without-cuts",
        Fails(&[Thrown]),
        "String.prototype.slice = function () { return String(this) }; throw new Error('x'.repeat(5e5))",
    ),
    ("inputs", Fails(&[Traffic, Cpu]), "const s = 'x'.repeat(1e5); for (;;) await ops.t.echo(s)"),
    ("results", Fails(&[Traffic, Memory]), "for (;;) await ops.t.big({})"),
];

/// Runs the attempts; the test below starts it with little memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "`attempts_end_in_their_limits` starts it"]
async fn attempts() {
    let limits = Limits::new()
        .with_time(Duration::from_secs(120))
        .with_cpu(Duration::from_millis(1000))
        .with_memory(24 << 20)
        .with_traffic(3 << 20)
        .with_output(100_000)
        .with_calls(300);
    let sandbox = Sandbox::new(limits);
    let slow = Sandbox::new(Limits::new().with_time(Duration::from_millis(300)));
    let mut wrong = Vec::new();
    for (name, end, source) in ATTEMPTS {
        let host = Recorder::default();
        let sandbox = if matches!(end, Fails([Time])) { &slow } else { &sandbox };
        let start = std::time::Instant::now();
        let report = sandbox.run(&program(&format!("{CAUGHT}{source}")), &host).await;
        let is_right = match (&report.outcome, end) {
            (Outcome::Done(value), Gets(wanted)) => {
                *value == serde_json::from_str::<serde_json::Value>(wanted).unwrap()
            }
            (Outcome::Failed(failed), Fails(reasons)) => {
                reasons.contains(&failed.reason) && failed.message.len().max(failed.stack.len()) < 5000
            }
            _ => false,
        };
        // A call that asks, or that is denied, is not made.
        let made = host.ids();
        let only = made.iter().all(|id| !id.starts_with("t.set") && id != "t.denied");
        let logs: usize = report.logs.iter().map(|log| log.text.len()).sum();
        if !is_right || !only || logs > 64 << 10 || start.elapsed() > Duration::from_secs(60) {
            wrong.push(
                format!("{name}: {:?} after {:?}, {made:?}", report.outcome, start.elapsed())
                    .chars()
                    .take(600)
                    .collect::<String>(),
            );
        }
    }
    println!("{} attempts", ATTEMPTS.len());
    assert!(wrong.is_empty(), "{}\n", wrong.join("\n"));
    // After all of them, a program runs as ever.
    let report = sandbox.run(&program("return ops.t.echo({ a: 1 })"), &Recorder::default()).await;
    assert!(matches!(report.outcome, Outcome::Done(ref value) if *value == json!({ "a": 1 })), "{report:?}");
}

#[test]
fn attempts_end_in_their_limits() {
    assert!(ATTEMPTS.len() >= 60);
    let output = Command::new("prlimit")
        .args([format!("--data={}:", 400 << 20), "--core=0".to_owned()])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "escapes::attempts", "--nocapture"])
        .env("MALLOC_ARENA_MAX", "2")
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("`prlimit` runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    assert!(stdout.contains("1 passed"), "{stdout}");
}
