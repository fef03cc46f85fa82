//! The table of definitions that the operations of one API share.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;

use super::equal::discard;
use super::findings::{Problem, Problems};
use super::node::Unit;
use super::pattern::size::Allowance;
use super::reference::key_of;
use super::{compat, lower};
use crate::model::keywords::certain;
use crate::model::lock::lock;
use crate::pointer::{percent_decoded, unescaped};

/// How a schema is interpreted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reading {
    /// All dialects of JSON Schema and OpenAPI, read as their authors mean them.
    ///
    /// `nullable`, lists of types, maps, `patternProperties`, `const`, tuples of both drafts, boolean schemas,
    /// keywords beside `$ref` and `allOf`, discriminators. `format` is an annotation; `oneOf` is satisfied by any
    /// variant; `not`, `if`, `contains` and `dependent*` are not checked.
    #[default]
    Default,
    /// The conversion table of the original in TypeScript; keywords that it lacks are not checked.
    ///
    /// `const` is a literal of any value, `null` may stand in enums, a schema in `additionalProperties` counts. Seven
    /// formats are known, and strings of any other format do not conform. References lead to the `$id` of an enclosing
    /// schema, or else to the shared definitions.
    Compat,
}

/// The definitions of an API: `Name` to schema, each compiled at most once, when a value first reaches it.
///
/// Cloning is cheap and shares the table, and so do all schemas compiled with it.
///
/// ```
/// use ops_runtime::normalise::{CompiledSchema, CompiledDefinitions, Reading};
/// use serde_json::json;
///
/// let definitions = CompiledDefinitions::new(Reading::Default, |name| match name {
///     "Pet" => Some(json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]})),
///     _ => None,
/// });
/// let pets = CompiledSchema::with_definitions(
///     &json!({"type": "array", "items": {"$ref": "#/$defs/Pet"}}),
///     &definitions,
/// );
/// assert!(pets.check(&json!([{"id": 1}])));
/// assert!(!pets.check(&json!([{}])));
/// ```
#[derive(Clone)]
pub struct CompiledDefinitions(Arc<Inner>);

type Source = dyn Fn(&str) -> Option<Value> + Send + Sync;

struct Inner {
    reading: Reading,
    source: Option<Box<Source>>,
    ids: Mutex<HashMap<String, u32>>,
    slots: Pool<Slot>,
    problems: Mutex<Problems>,
    /// True if one of them is nested deeper, or combines more, than is read.
    is_cut: AtomicBool,
    patterns: Allowance,
}

/// One definition, or a part of one that a reference leads to.
struct Slot {
    key: String,
    unit: OnceLock<Unit>,
    writes: OnceLock<Writes>,
    is_write_only: OnceLock<bool>,
}

/// What a definition says of `writeOnly`, without those that it refers to.
struct Writes {
    is_only: bool,
    /// The keys of the first definitions that it refers to.
    referred: Vec<String>,
}

/// In how many definitions `writeOnly` is looked for behind references.
const MAX_REFERRED: usize = 8;

impl CompiledDefinitions {
    /// True if there are other clones of this table.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// A table over a source that returns a definition's schema by name.
    ///
    /// The source is called when a definition is needed, at most a few times for each.
    pub fn new(reading: Reading, source: impl Fn(&str) -> Option<Value> + Send + Sync + 'static) -> Self {
        CompiledDefinitions::build(reading, Some(Box::new(source)))
    }

    /// A table without definitions.
    pub fn none(reading: Reading) -> Self {
        CompiledDefinitions::build(reading, None)
    }

    fn build(reading: Reading, source: Option<Box<Source>>) -> Self {
        CompiledDefinitions(Arc::new(Inner {
            reading,
            source,
            ids: Mutex::default(),
            slots: Pool::new(),
            problems: Mutex::default(),
            is_cut: AtomicBool::new(false),
            patterns: Allowance::default(),
        }))
    }

    /// The reading in which the definitions, and schemas that use them, are compiled.
    pub fn reading(&self) -> Reading {
        self.0.reading
    }

    /// The problems in the definitions compiled so far.
    pub fn problems(&self) -> Vec<Problem> {
        lock(&self.0.problems).list().to_vec()
    }

    /// What the patterns of the definitions may still take.
    fn patterns(&self) -> &Allowance {
        &self.0.patterns
    }

    /// True if a definition compiled so far is nested deeper, or combines more, than is read.
    pub(super) fn is_cut(&self) -> bool {
        self.0.is_cut.load(Ordering::Relaxed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.source.is_none()
    }

    /// The number by which compiled schemas refer to a definition.
    pub(super) fn id(&self, key: &str) -> Option<u32> {
        let mut ids = lock(&self.0.ids);
        if let Some(id) = ids.get(key) {
            return Some(*id);
        }
        let id = u32::try_from(ids.len()).ok()?;
        self.0.slots.slot(id)?.get_or_init(|| Slot {
            key: key.to_owned(),
            unit: OnceLock::new(),
            writes: OnceLock::new(),
            is_write_only: OnceLock::new(),
        });
        ids.insert(key.to_owned(), id);
        Some(id)
    }

    /// The compiled definition; compiled now if this is its first use.
    pub(super) fn unit(&self, id: u32) -> Option<&Unit> {
        let slot = self.0.slots.slot(id)?.get()?;
        Some(slot.unit.get_or_init(|| self.compile(&slot.key)))
    }

    fn slot(&self, key: &str) -> Option<&Slot> {
        self.0.slots.slot(self.id(key)?)?.get()
    }

    /// True if a definition says `writeOnly`, itself or by what it refers to or consists of, null aside.
    pub(super) fn is_write_only(&self, key: &str) -> bool {
        self.id(key).is_some_and(|id| self.is_write_only_of(id))
    }

    /// The same, of the definition of this number.
    pub(super) fn is_write_only_of(&self, id: u32) -> bool {
        let slot = self.0.slots.slot(id).and_then(OnceLock::get);
        slot.is_some_and(|slot| *slot.is_write_only.get_or_init(|| self.says_write_only(&slot.key)))
    }

    fn says_write_only(&self, key: &str) -> bool {
        let mut keys = vec![key];
        for at in 0..MAX_REFERRED {
            let Some(slot) = keys.get(at).and_then(|key| self.slot(key)) else { continue };
            // Many definitions may refer to one, whose schema is read once.
            let writes = slot.writes.get_or_init(|| self.writes(&slot.key));
            if writes.is_only {
                return true;
            }
            for next in &writes.referred {
                if !keys.contains(&next.as_str()) {
                    keys.push(next);
                }
            }
        }
        false
    }

    fn writes(&self, key: &str) -> Writes {
        let mut writes = Writes { is_only: false, referred: Vec::new() };
        let Some(schema) = self.schema(key) else { return writes };
        let mut open = vec![&schema];
        while let Some(part) = open.pop() {
            writes.is_only |= part.get("writeOnly") == Some(&Value::Bool(true));
            let next = part.get("$ref").and_then(Value::as_str).and_then(key_of);
            let next = next.filter(|next| writes.referred.len() < MAX_REFERRED && !writes.referred.contains(next));
            writes.referred.extend(next);
            open.extend(certain(part));
        }
        discard(schema);
        writes
    }

    fn compile(&self, key: &str) -> Unit {
        let mut problems = Problems::default();
        let unit = match self.schema(key) {
            Some(schema) => {
                let unit = match self.reading() {
                    Reading::Compat => compat::compile(&schema, self, self.patterns()),
                    Reading::Default => lower::compile(&schema, Some(key), self, self.patterns(), &mut problems),
                };
                discard(schema);
                unit
            }
            None => {
                problems.add(Problem::nowhere(key));
                match self.reading() {
                    Reading::Compat => compat::missing(),
                    Reading::Default => Unit::any(),
                }
            }
        };
        if !problems.is_empty() {
            self.0.is_cut.fetch_or(problems.list().iter().any(Problem::is_cut), Ordering::Relaxed);
            let mut all = lock(&self.0.problems);
            problems.into_list().into_iter().for_each(|problem| all.add(problem));
        }
        unit
    }

    /// The schema behind a key, which is a name and possibly a pointer into its schema.
    ///
    /// Keys of ours are written as they are, those of others percent-encoded: a name may look as if it were.
    pub(super) fn schema(&self, key: &str) -> Option<Value> {
        self.written(key).or_else(|| if key.contains('%') { self.written(&percent_decoded(key)) } else { None })
    }

    fn written(&self, key: &str) -> Option<Value> {
        let source = self.0.source.as_deref()?;
        if let Some(schema) = source(&unescaped(key)) {
            return Some(schema);
        }
        let (name, pointer) = key.split_once('/')?;
        let mut whole = source(&unescaped(name))?;
        let part = whole.pointer_mut(&format!("/{pointer}")).map(Value::take);
        discard(whole);
        part
    }
}

impl fmt::Debug for CompiledDefinitions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = lock(&self.0.ids).len();
        out.debug_struct("CompiledDefinitions")
            .field("reading", &self.0.reading)
            .field("known", &known)
            .finish_non_exhaustive()
    }
}

/// A list that grows without moving its elements, so that they can be lent while it does.
pub(super) struct Pool<T> {
    /// The bucket `n` has room for `FIRST << n` elements.
    buckets: [OnceLock<Box<[OnceLock<T>]>>; 24],
}

const FIRST: u32 = 16;

impl<T> Pool<T> {
    pub(super) fn new() -> Self {
        Pool { buckets: [const { OnceLock::new() }; 24] }
    }

    /// The place of this number, empty or not; `None` if the number is too high.
    pub(super) fn slot(&self, id: u32) -> Option<&OnceLock<T>> {
        let position = id.checked_add(FIRST)?;
        let bucket = position.ilog2() - FIRST.ilog2();
        let size = FIRST << bucket;
        let slots = self.buckets.get(bucket as usize)?;
        slots.get_or_init(|| (0..size).map(|_| OnceLock::new()).collect()).get((position - size) as usize)
    }
}
