//! QuickJS as a WebAssembly module: one function in, one function out.
//!
//! The host gives the module a script with `start`. The script ends with a function, which is called with each text that
//! the host gives to `deliver`; it asks the host by `host(kind, text)`. All else is JavaScript, and is the host's to choose.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::RefCell;

use rquickjs::context::EvalOptions;
use rquickjs::prelude::Func;
use rquickjs::{CatchResultExt, Context, Ctx, Function, Persistent, Runtime, Value};

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// Takes a text of a kind that script and host agree on; gives the length of the reply.
    safe fn send(kind: u32, text: *const u8, length: usize) -> usize;
    /// Writes the reply.
    safe fn reply(to: *mut u8);
}

/// One allocator for Rust and C: that of C takes all memory there is when it is first asked.
struct Malloc;

unsafe extern "C" {
    fn aligned_alloc(align: usize, size: usize) -> *mut u8;
    fn free(memory: *mut u8);
}

// SAFETY: these are C's own, which keep what `GlobalAlloc` asks for.
unsafe impl GlobalAlloc for Malloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { aligned_alloc(layout.align().max(8), layout.size().next_multiple_of(layout.align().max(8))) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        unsafe { free(memory) }
    }
}

#[global_allocator]
static MALLOC: Malloc = Malloc;

/// What the script wants to be told of promises that failed: the promise, the error, and whether something waits for it.
type Tell = Persistent<Function<'static>>;

/// What the script gave, and what it lives in.
struct Engine {
    deliver: Persistent<Function<'static>>,
    context: Context,
    runtime: Runtime,
}

thread_local! {
    static ENGINE: RefCell<Option<Engine>> = const { RefCell::new(None) };
    static TELL: RefCell<Option<Tell>> = const { RefCell::new(None) };
}

/// Room for a text of the host's, which `start` and `deliver` give back.
#[unsafe(no_mangle)]
pub extern "C" fn room(length: usize) -> *mut u8 {
    Box::into_raw(vec![0; length].into_boxed_slice()).cast()
}

fn taken(text: *mut u8, length: usize) -> String {
    // SAFETY: the host gives what `room` gave, once.
    let bytes = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(text, length)) };
    String::from_utf8(bytes.into_vec()).unwrap_or_default()
}

/// Runs the script; 0 if it gave a function.
#[unsafe(no_mangle)]
pub extern "C" fn start(text: *mut u8, length: usize) -> u32 {
    let script = taken(text, length);
    let Ok(runtime) = Runtime::new() else { return 1 };
    // The host bounds the stack.
    runtime.set_max_stack_size(0);
    runtime.set_host_promise_rejection_tracker(Some(Box::new(rejected)));
    let Ok(context) = Context::full(&runtime) else { return 1 };
    let deliver = context.with(|ctx| {
        let global = ctx.globals();
        global.set("host", Func::from(host))?;
        global.set("evaluate", Func::from(evaluate))?;
        global.set("watch", Func::from(watch))?;
        let deliver: Function = ctx.eval_with_options(script, options("ops.js"))?;
        Ok::<_, rquickjs::Error>(Persistent::save(&ctx, deliver))
    });
    let Ok(deliver) = deliver else { return 1 };
    ENGINE.set(Some(Engine { deliver, context, runtime }));
    0
}

/// Gives the script a text, and runs until nothing is left to do; 0 if nothing was thrown.
#[unsafe(no_mangle)]
pub extern "C" fn deliver(text: *mut u8, length: usize) -> u32 {
    let text = taken(text, length);
    ENGINE.with_borrow(|engine| {
        let Some(engine) = engine else { return 1 };
        let thrown = engine.context.with(|ctx| {
            let deliver = engine.deliver.clone().restore(&ctx)?;
            deliver.call::<_, ()>((text,)).catch(&ctx).map_err(|_| rquickjs::Error::Exception)
        });
        // A job that throws is not the end of the others.
        while !matches!(engine.runtime.execute_pending_job(), Ok(false)) {}
        u32::from(thrown.is_err())
    })
}

/// Tells the host something; gives its reply.
fn host(kind: u32, text: String) -> String {
    let mut answer = vec![0; send(kind, text.as_ptr(), text.len())];
    if !answer.is_empty() {
        reply(answer.as_mut_ptr());
    }
    String::from_utf8(answer).unwrap_or_default()
}

/// Evaluates a script that has a name in stacks.
fn evaluate<'js>(ctx: Ctx<'js>, text: String, name: String) -> rquickjs::Result<Value<'js>> {
    ctx.eval_with_options(text, options(&name))
}

/// Keeps a function that is told of promises that failed.
fn watch<'js>(ctx: Ctx<'js>, tell: Function<'js>) {
    TELL.set(Some(Persistent::save(&ctx, tell)));
}

/// A promise failed while nothing waits for it, or something waits for one that did.
fn rejected<'js>(ctx: Ctx<'js>, promise: Value<'js>, error: Value<'js>, is_heard: bool) {
    let Some(tell) = TELL.with_borrow(Option::clone) else { return };
    // What it throws is nobody's.
    let _ = tell.restore(&ctx).and_then(|tell| tell.call::<_, ()>((promise, error, is_heard))).catch(&ctx);
}

fn options(name: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = true;
    options.filename = Some(name.into());
    options
}
