//! `QuickJS` in a WebAssembly interpreter.
//!
//! `engine.wasm` is built from `engine/` of the repository. It can only compute, in memory of its own, and call the
//! three functions of [`linker`]. Each of its instructions takes fuel, so it can be stopped anywhere: inside a string
//! search as well as inside a loop of the program.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use wasmi::{
    Caller, CompilationMode, Config, CustomFuelCosts, Engine, Error, Linker, Memory, Module, Store, TrapCode,
    TypedFunc, TypedResumableCall,
};
use wasmi::{Instance as Wasm, TypedResumableCallOutOfFuel};

use crate::program::functions::Functions;
use crate::program::guest::Guest;
use crate::program::limits::Limits;
use crate::program::outcome::{Failure, Reason};

static ENGINE: &[u8] = include_bytes!("engine.wasm");
static BOOTSTRAP: &str = include_str!("bootstrap.js");

/// Fuel between two checks of the clock: a fraction of a millisecond, or 20 ms for the most expensive loops.
const SLICE: u64 = 20_000_000;

/// The fuel of copying and filling memory, which take as much as other instructions of the same duration: a processor copies
/// about 4 bytes per nanosecond, which is the time of a unit of fuel. With the interpreter's own price of 64 bytes, a slice
/// of nothing but copies would take over 200 ms. The other prices are the interpreter's own, and are not used: all is
/// translated at the start.
const COSTS: CustomFuelCosts =
    CustomFuelCosts { bytes_copied_per_fuel: 4, fuel_per_bytes_translated: 7, fuel_per_bytes_validated: 2 };

/// Fuel for work that is not the program's, such as allocating room for a message.
const OWN: u64 = 20_000_000_000;

/// The bytes of a page that is copied if it is not empty.
const PAGE: usize = 4096;

/// The bytes of a page of WebAssembly's memory.
const WASM_PAGE: usize = 65_536;

/// How many calls of the engine's own functions may nest, and the bytes of their values.
const MAX_DEPTH: usize = 5_000;
const MAX_STACK: usize = 1 << 20;

/// The engine after it has run the bootstrap: the initial state of each program.
struct Template {
    module: Module,
    linker: Linker<Guest>,
    engine: Engine,
    /// The pages of memory that are not empty.
    pages: Vec<(usize, Box<[u8]>)>,
    size: usize,
}

/// One program in the engine.
pub(super) struct Instance {
    store: Store<Guest>,
    memory: Memory,
    room: TypedFunc<u32, u32>,
    deliver: TypedFunc<(u32, u32), u32>,
    paused: Option<TypedResumableCallOutOfFuel<u32>>,
}

fn template() -> Result<&'static Template, Failure> {
    static TEMPLATE: OnceLock<Result<Template, String>> = OnceLock::new();
    let made = TEMPLATE.get_or_init(|| Template::new().map_err(|error| error.to_string()));
    made.as_ref().map_err(|error| Failure::new(Reason::Engine, format!("the engine does not start: {error}")))
}

impl Template {
    fn new() -> Result<Self, Error> {
        let mut config = Config::default();
        config.consume_fuel(true).fuel_cost(COSTS).set_max_recursion_depth(MAX_DEPTH).set_max_stack_height(MAX_STACK);
        // At once: translating a function when it is first called takes fuel, and would fail without.
        config.compilation_mode(CompilationMode::Eager);
        let engine = Engine::new(&config);
        let module = Module::new(&engine, ENGINE)?;
        let linker = linker(&engine)?;
        let mut template = Self { module, linker, engine, pages: Vec::new(), size: 0 };
        let guest = Guest::new(Functions::new().into(), Limits::new().into(), Default::default(), 0);
        let (mut instance, wasm) = template.instance(guest)?;
        let text = instance.write(BOOTSTRAP)?;
        let start = wasm.get_typed_func::<(u32, u32), u32>(&instance.store, "start")?;
        instance.store.set_fuel(u64::MAX)?;
        if start.call(&mut instance.store, text)? != 0 {
            return Err(Error::new("the bootstrap fails"));
        }
        let memory = instance.memory.data(&instance.store);
        template.size = memory.len();
        let pages = memory.chunks(PAGE).enumerate().filter(|(_, page)| page.iter().any(|byte| *byte != 0));
        template.pages = pages.map(|(at, page)| (at * PAGE, page.into())).collect();
        Ok(template)
    }

    fn instance(&self, guest: Guest) -> Result<(Instance, Wasm), Error> {
        let mut store = Store::new(&self.engine, guest);
        store.limiter(|guest| &mut guest.memory);
        store.set_fuel(OWN)?;
        let wasm = self.linker.instantiate_and_start(&mut store, &self.module)?;
        let memory = wasm.get_memory(&store, "memory").ok_or_else(|| Error::new("the engine has no memory"))?;
        let room = wasm.get_typed_func(&store, "room")?;
        let deliver = wasm.get_typed_func(&store, "deliver")?;
        Ok((Instance { store, memory, room, deliver, paused: None }, wasm))
    }
}

/// All that the engine can call: sending to the host, reading its reply, and the clock.
fn linker(engine: &Engine) -> Result<Linker<Guest>, Error> {
    let mut linker = Linker::new(engine);
    linker.func_wrap("host", "send", |mut caller: Caller<'_, Guest>, kind: u32, at: u32, length: u32| {
        let memory = memory(&caller)?;
        let (data, guest) = memory.data_and_store_mut(&mut caller);
        let text = (at as usize).checked_add(length as usize).and_then(|end| data.get(at as usize..end));
        let text = text.ok_or(TrapCode::MemoryOutOfBounds)?;
        match guest.hear(kind, &String::from_utf8_lossy(text)) {
            Ok(()) => Ok(u32::try_from(guest.reply.len()).unwrap_or(0)),
            Err(failure) => {
                guest.ended = Some(failure);
                Err(Error::new("the program ended"))
            }
        }
    })?;
    linker.func_wrap("host", "reply", |mut caller: Caller<'_, Guest>, at: u32| {
        let memory = memory(&caller)?;
        let reply = std::mem::take(&mut caller.data_mut().reply);
        memory.write(&mut caller, at as usize, &reply).map_err(|_| Error::from(TrapCode::MemoryOutOfBounds))
    })?;
    linker.func_wrap("env", "__rquickjs_host_now_us", |caller: Caller<'_, Guest>| caller.data().now as f64 * 1000.0)?;
    Ok(linker)
}

fn memory(caller: &Caller<'_, Guest>) -> Result<Memory, Error> {
    let memory = caller.get_export("memory").and_then(wasmi::Extern::into_memory);
    memory.ok_or_else(|| Error::new("the engine has no memory"))
}

impl Instance {
    /// An engine for a program.
    pub(super) fn new(guest: Guest) -> Result<Box<Self>, Failure> {
        let template = template()?;
        let make = |guest| {
            let (mut instance, _) = template.instance(guest)?;
            let size = instance.memory.data_size(&instance.store);
            let more = template.size.saturating_sub(size).div_ceil(WASM_PAGE) as u64;
            if instance.memory.grow(&mut instance.store, more).is_err() {
                return Ok(None);
            }
            for (at, page) in &template.pages {
                let written = instance.memory.write(&mut instance.store, *at, page);
                written.map_err(|error| Error::new(error.to_string()))?;
            }
            Ok::<_, Error>(Some(Box::new(instance)))
        };
        let failed = |error: &Error| Failure::new(Reason::Engine, format!("the engine does not start: {error}"));
        match make(guest) {
            Ok(Some(instance)) => Ok(instance),
            Ok(None) => Err(Failure::out_of_memory()),
            // If the initial memory of a module is refused, the interpreter returns an error.
            Err(error) if error.as_trap_code().is_none() && error.to_string().contains("memory") => {
                Err(Failure::out_of_memory())
            }
            Err(error) => Err(failed(&error)),
        }
    }

    pub(super) fn guest(&mut self) -> &mut Guest {
        self.store.data_mut()
    }

    /// Passes a message to the script, which is read by [`advance`](Self::advance): without fuel, the call stops at its
    /// beginning.
    pub(super) fn give(&mut self, message: &str) -> Result<(), Failure> {
        let text = self.write(message).map_err(|error| self.failure(&error))?;
        let call = self.store.set_fuel(0).and_then(|()| self.deliver.call_resumable(&mut self.store, text));
        self.ran(call).map(drop)
    }

    /// Runs for a while; true if nothing is left to do until the next message.
    pub(super) fn advance(&mut self, most: Duration) -> Result<bool, Failure> {
        let start = Instant::now();
        while let Some(paused) = self.paused.take() {
            let fuel = SLICE.max(paused.required_fuel());
            let call = self.store.set_fuel(fuel).and_then(|()| paused.resume(&mut self.store));
            if self.ran(call)? {
                return Ok(true);
            }
            if start.elapsed() >= most {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn ran(&mut self, call: Result<TypedResumableCall<u32>, Error>) -> Result<bool, Failure> {
        match call {
            Ok(TypedResumableCall::Finished(0)) => Ok(true),
            Ok(TypedResumableCall::OutOfFuel(paused)) => {
                self.paused = Some(paused);
                Ok(false)
            }
            Ok(TypedResumableCall::Finished(_)) if self.store.data().memory.refused => Err(Failure::out_of_memory()),
            Ok(TypedResumableCall::Finished(_)) => {
                let message = "the program broke what it runs on: leave the built-in objects as they are";
                Err(Failure::new(Reason::Thrown, message))
            }
            Ok(TypedResumableCall::HostTrap(trap)) => Err(self.failure(trap.host_error())),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Writes a text into the engine's memory, and returns its place and length.
    fn write(&mut self, text: &str) -> Result<(u32, u32), Error> {
        let length = u32::try_from(text.len()).map_err(|_| Error::new("the text is too long"))?;
        self.store.set_fuel(OWN)?;
        let at = self.room.call(&mut self.store, length)?;
        let written = self.memory.write(&mut self.store, at as usize, text.as_bytes());
        written.map_err(|_| Error::from(TrapCode::MemoryOutOfBounds))?;
        Ok((at, length))
    }

    /// The reason why the engine stopped.
    fn failure(&mut self, error: &Error) -> Failure {
        if let Some(ended) = self.store.data_mut().ended.take() {
            return ended;
        }
        match error.as_trap_code() {
            Some(TrapCode::StackOverflow | TrapCode::MemoryOutOfBounds) => {
                let message = "the program nests too deep: use a loop in place of a recursion, and flatter values";
                Failure::new(Reason::Depth, message)
            }
            _ if self.store.data().memory.refused => Failure::out_of_memory(),
            _ => Failure::new(Reason::Engine, format!("the engine failed: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::program::guest;

    #[test]
    fn copies_take_as_much_fuel_as_time() {
        const BYTES: u64 = 20_000_000;
        let guest = Guest::new(Functions::new().into(), Limits::new().into(), Default::default(), 0);
        let source = format!("const a = new Uint8Array({BYTES}); for (;;) {{ a.copyWithin(1, 0); console.log(1) }}");
        let message = guest::start(&source, &Value::Null, &[1; 4], false, false, &guest.mark);
        let mut instance = Instance::new(guest).unwrap();
        instance.give(&message).unwrap();
        let most = SLICE * u64::from(COSTS.bytes_copied_per_fuel) / BYTES + 1;
        let mut copies = Vec::new();
        while copies.iter().filter(|count| **count > 0).count() < 5 {
            // One slice: the time is over when it ends.
            assert!(!instance.advance(Duration::ZERO).unwrap());
            copies.push(std::mem::take(&mut instance.guest().logs).len() as u64);
            assert!(copies.len() < 1_000, "no copy was made");
        }
        assert!(copies.iter().all(|count| *count <= most), "more than {most} of {BYTES} bytes in a slice: {copies:?}");
    }

    #[test]
    fn a_message_is_heard_when_it_is_the_turn_of_its_program() {
        let guest = Guest::new(Functions::new().into(), Limits::new().into(), Default::default(), 0);
        let message = guest::start("return 1", &Value::Null, &[1; 4], false, false, &guest.mark);
        let mut instance = Instance::new(guest).unwrap();
        instance.give(&message).unwrap();
        assert!(instance.guest().outbox.is_empty());
        assert!(instance.advance(Duration::from_secs(60)).unwrap());
        assert_eq!(instance.guest().outbox.len(), 1);
    }
}
