//! Bringing results into the shape that their schema promises.
//!
//! "The original" below is TypeBox 0.34, whose `Value.Cast`, `Check` and `Errors` the compatible reading reproduces.
//!
//! What comes back from an API or a tool seldom is exactly what its schema says: there are properties that nobody
//! declared, defaults that were left out, a `null` or a `"42"` where there should be a number. Normalising takes
//! three steps: undeclared properties are removed, absent properties with a `default` get it, and whatever still
//! does not conform is repaired. Every repair is told, by place and kind, so that no made-up value passes silently.
//!
//! ```
//! use ops_runtime::normalise::{CompiledSchema, Reading};
//! use serde_json::json;
//!
//! let schema = CompiledSchema::new(
//!     &json!({
//!         "type": "object",
//!         "properties": {
//!             "id": {"type": "integer"},
//!             "name": {"type": "string", "nullable": true},
//!             "status": {"type": "string", "enum": ["available", "sold"], "default": "available"}
//!         },
//!         "required": ["id"]
//!     }),
//!     Reading::Default,
//! );
//!
//! let (value, repairs) = schema.normalise(json!({"id": "7", "name": null, "_links": {}}));
//! assert_eq!(value, json!({"id": 0, "name": null, "status": "available"}));
//! assert_eq!(repairs.len(), 1);
//! assert_eq!(repairs[0].to_string(), "/id: expected integer, found string");
//! ```
//!
//! Schemas are compiled once, in one of two [readings](Reading), and used by any number of threads. Those of one
//! API share its [`CompiledDefinitions`], each of which is compiled when a value first reaches it.
//!
//! # What the steps do
//!
//! 1. A property is removed if the schema does not declare it: not by `properties` or `patternProperties` of any
//!    `allOf` member, nor by the variant of a union that the value belongs to. It stays if `additionalProperties` is
//!    `true` or a schema, or if the object declares nothing.
//! 2. An absent property gets its `default`, be it required or not. A default that does not fit its own schema is
//!    none.
//! 3. A node that still does not conform is repaired as the original's `Value.Cast` does it: a scalar is *replaced*
//!    by its default or its zero value, not parsed or clamped; an object is repaired property by property; a union
//!    by the variant that comes closest. Where the original throws (nothing can be made up to match a `pattern`, say)
//!    the node stays as received, and that is told too.
//!
//! The default reading differs from the original where that loses data, or makes some up, without need. A `null` where
//! a property may be absent but not `null` counts as absent, and that is told. An `allOf` of objects is one
//! object, so that one wrong property costs just itself. An object that is repaired keeps what
//! `additionalProperties: true` allows. A union is repaired by the variant that its discriminator or constant tag
//! names, and if no variant scores anything by the first of the value's own type.
//!
//! # Limits
//!
//! Schemas come from strangers, so everything is bounded: a value is followed to about 280 levels (JSON is parsed to
//! 128), a schema to 100, what is made up to 65,536 characters or items a piece, and patterns in size and time. What
//! lies beyond does not conform, stays as it is, and is told.

mod check;
mod compat;
mod create;
mod definitions;
mod draft;
mod equal;
mod lower;
mod node;
mod number;
mod path;
mod reference;
mod repair;
mod text;
mod violations;

use std::fmt;

use serde_json::Value;

use check::Checker;
use node::{At, Unit};
use repair::{Fixer, Mode, Strip};
use violations::Lister;

pub use definitions::CompiledDefinitions;

/// What a schema is taken to mean.
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
    /// The conversion table of the original in TypeScript: what that does not know is not checked.
    ///
    /// `const` is a literal whatever its value, `null` may stand in enums, a schema in `additionalProperties` counts,
    /// seven formats are known and strings of any other format do not conform. References lead to the `$id` of an
    /// enclosing schema, or else to the shared definitions.
    Compat,
}

/// A change that repairing made to a value, or would have had to make.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What the schema asks for, in a few words.
    pub expected: String,
    /// The kind of value found: `null`, `boolean`, `number`, `integer`, `string`, `array`, `object` or `absent`.
    pub found: &'static str,
    /// Nothing could be made up, so the value stays as it was received (or absent).
    pub kept: bool,
}

impl fmt::Display for Repair {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Repair { pointer, expected, found, kept } = self;
        write!(out, "{pointer}: expected {expected}, found {found}{}", if *kept { ", kept" } else { "" })
    }
}

/// One thing wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What was expected there.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.pointer, self.message)
    }
}

/// Something in a schema that could not be understood, and is therefore not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The reference it is about; empty if it is the schema as a whole.
    pub subject: String,
    /// What is the matter.
    pub message: &'static str,
}

impl Problem {
    fn nowhere(reference: &str) -> Self {
        Problem { subject: reference.to_owned(), message: "is a reference that leads nowhere, so anything conforms" }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.subject.as_str() {
            "" => write!(out, "the schema {}", self.message),
            subject => write!(out, "`{subject}` {}", self.message),
        }
    }
}

/// A schema ready for use.
#[derive(Debug)]
pub struct CompiledSchema {
    unit: Unit,
    definitions: CompiledDefinitions,
    problems: Vec<Problem>,
}

impl CompiledSchema {
    /// Compiles a schema that needs no definitions but its own.
    pub fn new(schema: &Value, reading: Reading) -> Self {
        CompiledSchema::with_definitions(schema, &CompiledDefinitions::none(reading))
    }

    /// Compiles a schema whose references may lead to shared definitions, in the reading of those.
    ///
    /// `#/$defs/Name`, `#/definitions/Name` and `#/components/schemas/Name` are looked for in the schema first.
    pub fn with_definitions(schema: &Value, definitions: &CompiledDefinitions) -> Self {
        let mut problems = Vec::new();
        let unit = match definitions.reading() {
            Reading::Compat => compat::compile(schema, definitions),
            Reading::Default => lower::compile(schema, None, definitions, &mut problems),
        };
        CompiledSchema { unit, definitions: definitions.clone(), problems }
    }

    /// What was not understood in the schema, references to nowhere above all.
    ///
    /// Shared definitions have [their own list](CompiledDefinitions::problems).
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    fn root(&self) -> At<'_> {
        self.unit.root()
    }

    /// Whether a value conforms.
    pub fn check(&self, value: &Value) -> bool {
        Checker::new(&self.definitions).check(self.root(), value, 0)
    }

    /// Everything that keeps a value from conforming; empty if it does.
    ///
    /// The list ends at 1,000 entries. In the compatible reading its order and words are the original's.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        if self.check(value) { Vec::new() } else { self.list(Some(value)) }
    }

    /// As [`violations`](Self::violations), of no value at all.
    pub fn violations_of_absence(&self) -> Vec<Violation> {
        self.list(None)
    }

    fn list(&self, value: Option<&Value>) -> Vec<Violation> {
        Lister::list(&Checker::new(&self.definitions), self.root(), value, 1000)
    }

    /// Repairs a value exactly as the original's `Value.Cast` does, and nothing else.
    ///
    /// A value that conforms is returned as it is, undeclared properties included.
    pub fn cast(&self, mut value: Value) -> (Value, Vec<Repair>) {
        let checker = Checker::new(&self.definitions);
        let mut fixer = Fixer::new(&checker, Mode::Cast);
        fixer.fix(self.root(), &mut value, &path::Path::ROOT, Strip::None, 0);
        (value, fixer.repairs)
    }

    /// What [`cast`](Self::cast) makes of no value at all, as a handler without a result gives; `None` if that will do.
    pub fn cast_absent(&self) -> (Option<Value>, Vec<Repair>) {
        let checker = Checker::new(&self.definitions);
        let mut fixer = Fixer::new(&checker, Mode::Cast);
        let value = fixer.fix_root_absent(self.root());
        (value, fixer.repairs)
    }

    /// Removes what is undeclared, fills in defaults, and repairs what does not conform then.
    ///
    /// Under an integer schema `1.0` becomes `1`, which is the same number and no repair.
    pub fn normalise(&self, mut value: Value) -> (Value, Vec<Repair>) {
        let checker = Checker::new(&self.definitions);
        let mut fixer = Fixer::new(&checker, Mode::Normalise);
        if self.definitions.reading() == Reading::Default {
            fixer.fix(self.root(), &mut value, &path::Path::ROOT, Strip::All, 0);
        } else {
            // The original repairs whole nodes, so they have to be clean before any is looked at.
            fixer.mode = Mode::Clean;
            fixer.fix(self.root(), &mut value, &path::Path::ROOT, Strip::All, 0);
            fixer.mode = Mode::Cast;
            fixer.fix(self.root(), &mut value, &path::Path::ROOT, Strip::None, 0);
        }
        (value, fixer.repairs)
    }
}

/// The result of [`cast`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cast {
    /// The repaired value; `None` if there was none and the schema asks for none.
    pub value: Option<Value>,
    /// What was repaired, and what could not be.
    pub repairs: Vec<Repair>,
}

/// Compiles a schema and casts one value, or none, with it.
///
/// ```
/// use ops_runtime::normalise::{Reading, cast};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
/// let result = cast(&schema, Some(json!({"n": "1", "x": 2})), Reading::Compat);
/// assert_eq!(result.value, Some(json!({"n": 0})));
/// ```
pub fn cast(schema: &Value, value: Option<Value>, reading: Reading) -> Cast {
    let schema = CompiledSchema::new(schema, reading);
    let (value, repairs) = match value {
        Some(value) => {
            let (value, repairs) = schema.cast(value);
            (Some(value), repairs)
        }
        None => schema.cast_absent(),
    };
    Cast { value, repairs }
}
