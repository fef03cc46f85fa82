//! The Rust names in a module, for the command `ops`; not part of the public interface.

use std::collections::BTreeMap;

use ops_runtime::spec::Api;

use crate::lower::Source;
use crate::module::{Module, module};
use crate::render::type_text;
use crate::settings::{Faults, Settings};
use crate::types::Shape;

mod constructors;
mod example;

pub use self::constructors::{Reordered, reordered};

/// The names of a module.
#[derive(Debug, Default)]
pub struct Described {
    /// The name that a program is likely to give the module.
    pub module: String,
    /// The trait whose methods run the operations; `None` without operations.
    pub methods: Option<String>,
    /// The names of operations, by their ids.
    pub operations: BTreeMap<String, Operation>,
    /// The named types, by the places of their schemas: `/$defs/Pet`, `/operations/shop.showPet/input`.
    pub types: BTreeMap<String, Type>,
}

/// The names of an operation.
#[derive(Debug)]
pub struct Operation {
    /// The struct that is the operation.
    pub name: String,
    /// The method that runs it.
    pub method: String,
    /// The type of its input.
    pub input: String,
    /// The type of its output.
    pub output: String,
    /// The enum of the errors that it declares; `None` if it has none.
    pub errors: Option<String>,
    /// The import and the call of its method, as an example: what is required is set.
    pub example: String,
}

/// A named type.
#[derive(Debug)]
pub struct Type {
    /// Its name.
    pub name: String,
    /// The fields of a struct, in their order.
    pub fields: Vec<Field>,
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field {
    /// The name in JSON.
    pub json: String,
    /// The identifier.
    pub ident: String,
    /// The type of a value, without the `Option` of an optional field.
    pub type_: String,
    /// True if the field is an `Option` because the property may be absent.
    pub is_optional: bool,
}

/// Describes the module that a generator with default settings makes of an API.
pub fn describe(api: &Api) -> Described {
    let module = lowered(api);
    let mut described = Described {
        module: example::module_name(&module.file),
        methods: module.methods.clone(),
        ..Described::default()
    };
    for operation in &module.operations {
        let (input, output) = (public(&module, &operation.input), public(&module, &operation.output));
        let import = module.methods.as_ref().map(|name| {
            let namespace = example::module_name(operation.spec.namespace());
            format!("use {namespace}::{name};\n")
        });
        let example = import.unwrap_or_default() + &example::call(&module, operation);
        let (name, method) = (operation.name.clone(), operation.method.clone());
        let errors = operation.errors.as_ref().map(|errors| errors.name.clone());
        let names = Operation { name, method, input, output, errors, example };
        described.operations.insert(operation.spec.id.to_string(), names);
    }
    for item in &module.types.items {
        let fields = match &item.shape {
            Shape::Record(record) => record.fields.as_slice(),
            _ => &[],
        };
        let fields = fields.iter().map(|field| Field {
            json: field.json.clone(),
            ident: field.ident.clone(),
            type_: public(&module, &field.type_),
            is_optional: field.is_optional(),
        });
        let names = Type { name: item.name.clone(), fields: fields.collect() };
        described.types.insert(item.pointer.clone(), names);
    }
    described
}

/// The module that a generator with default settings makes of an API.
fn lowered(api: &Api) -> Module {
    let settings = Settings { methods: true, ..Settings::default() };
    let source = Source::new(&api.definitions, &mut Vec::new());
    module(api, &source, &settings, &mut Vec::new(), &mut Faults::default())
}

/// A type by the paths that a program can write: a module has its own name for the runtime.
fn public(module: &Module, type_: &crate::types::Type) -> String {
    let paths = [
        ("ops::Value", "serde_json::Value"),
        ("ops::Body", "ops_runtime::Body"),
        ("ops::ContentBlock", "ops_runtime::content::ContentBlock"),
        ("::std::", "std::"),
    ];
    paths.iter().fold(type_text(module, type_), |text, (own, public)| text.replace(own, public))
}
