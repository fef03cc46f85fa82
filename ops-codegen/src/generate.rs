//! The engine behind `build.rs`: an API in, source out.

use std::collections::HashSet;

use ops_runtime::spec::{Api, Definitions, Diagnostic, OperationSpec};
use serde_json::{Map, Value, json};

use crate::Error;
use crate::derivable::{derive, derive_less};
use crate::derive::Derive;
use crate::lower::Source;
use crate::module::module;
use crate::only::{leave_out, names};
use crate::path::{is_field_name, is_type_name, module_path, type_path};
use crate::rename::rename;
use crate::render::render;
use crate::settings::{Faults, Serving, Settings};
use crate::types::Format;

/// Renders APIs as Rust modules.
#[derive(Debug, Clone)]
pub struct Generator {
    runtime: String,
    settings: Settings,
}

/// A rendered module, and its diagnostics.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Generated {
    /// The source of the module: a plain module body, without inner attributes.
    pub source: String,
    /// Diagnostics of what was left out, made less precise, or renamed.
    pub diagnostics: Vec<Diagnostic>,
    /// The operations that were left out because nothing names them, as JSON: the file that the source includes.
    pub(crate) others: Option<String>,
    /// Every identifier by which a crate can name a part of the module; only if something may be left out.
    pub(crate) names: HashSet<String>,
}

impl Default for Generator {
    fn default() -> Self {
        Self { runtime: "::ops_runtime".to_owned(), settings: Settings { methods: true, ..Settings::default() } }
    }
}

impl Generator {
    /// A generator whose output uses the runtime as `::ops_runtime`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets another path for the runtime, such as `crate::ops` if a crate re-exports it. It begins with `crate` or the name
    /// of a crate.
    ///
    /// # Errors
    /// If the text is no such path.
    pub fn with_runtime(mut self, path: &str) -> Result<Self, Error> {
        let Some(path) = module_path(path) else {
            let help = "begin with `crate::` or the name of a crate";
            return Err(Error::Settings(format!("`{path}` is no path to the runtime: {help}")));
        };
        self.runtime = path;
        Ok(self)
    }

    /// Gives strings of a format a type of its own; by default they are text.
    ///
    /// The crate that uses the module needs the runtime's feature for the type's crate: `chrono`, `uuid` or `url`. A
    /// string that does not fit its format is then an error; text accepts anything.
    #[must_use]
    pub fn with_format(mut self, format: Format) -> Self {
        self.settings.formats.push(format);
        self
    }

    /// Gives strings of every [`Format`] a type of its own.
    #[must_use]
    pub fn with_typed_formats(mut self) -> Self {
        self.settings.formats.extend(Format::ALL.map(|(_, format)| format));
        self
    }

    /// Uses a type of your own for a schema of the document: nothing is generated for it, and everything that refers to
    /// it has your type.
    ///
    /// The schema is named as in the document. The path begins with `crate` or the name of a crate, and may have types
    /// as arguments: `crate::Pet`, `chrono::NaiveDate`, `std::collections::HashSet<String>`. The type implements
    /// `Serialize`, `DeserializeOwned`, `Debug`, `Clone`, `PartialEq` and `Send`. Its JSON must match the schema:
    /// requests and responses are still checked and repaired by the schema. If the schema allows `null`, the type is in
    /// an `Option`.
    ///
    /// A schema that extends this one by `allOf` has its properties, not your type. A default of the schema is not a
    /// value of your type, so a property with a default is an `Option`.
    ///
    /// # Errors
    /// If the text is not the path of a type, or if the schema has another type already. Generating fails if the
    /// document has no such schema.
    ///
    /// ```
    /// use ops_codegen::Generator;
    /// use ops_runtime::spec::{Api, Definition, Definitions, OperationSpec, Schema};
    ///
    /// let definitions = Definitions::new(vec![Definition::new("Day", r#"{"type":"string"}"#)]);
    /// let today = OperationSpec::query("zoo.today").with_output(Schema::text(r##"{"$ref":"#/$defs/Day"}"##));
    /// let generator = Generator::new().with_type("Day", "chrono::NaiveDate")?;
    /// let source = generator.generate(&Api::new(definitions, vec![today])).source;
    /// assert!(source.contains("type Output = ::chrono::NaiveDate;"));
    /// # Ok::<(), ops_codegen::Error>(())
    /// ```
    pub fn with_type(mut self, schema: impl Into<String>, path: &str) -> Result<Self, Error> {
        let schema = schema.into();
        let Some(path) = type_path(path) else {
            let help = "begin with `crate::` or the name of a crate";
            return Err(Error::Settings(format!("`{path}` is no path of a type for `{schema}`: {help}")));
        };
        match self.settings.types.insert(schema.clone(), path.clone()).filter(|other| *other != path) {
            Some(other) => Err(Error::Settings(format!("`{schema}` has two types, `{other}` and `{path}`"))),
            None => Ok(self),
        }
    }

    /// Uses the types that the document names by the extension `x-rust-type`, in the form of typify.
    ///
    /// `{ "crate": "my-crate", "version": "1.2", "path": "my_crate::Type" }` beside a schema is `::my_crate::Type`,
    /// which is a type as in [`with_type`](Self::with_type). Your crate needs the dependency; its version is not
    /// compared. An extension in another form, or with `parameters`, causes a warning, and the type is generated. The
    /// schemas of MCP tools are read without the extension. Use it only for documents whose authors may choose which
    /// code you run.
    #[must_use]
    pub fn with_rust_types(mut self) -> Self {
        self.settings.rust_types = true;
        self
    }

    /// Sets the name of a generated type.
    ///
    /// The type is given by the name of its schema in the document, or, if it has none, by the name that it would have:
    /// `ShowPetInput`. No other name changes.
    ///
    /// # Errors
    /// If the name is not valid for a type, or if the type has another already. Generating fails if there is no such
    /// type, or if the name is taken.
    ///
    /// ```
    /// # fn main() -> Result<(), ops_codegen::Error> {
    /// let generator = ops_codegen::Generator::new().with_renamed_type("com.example.PetV2", "Pet")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_renamed_type(mut self, schema: impl Into<String>, name: impl Into<String>) -> Result<Self, Error> {
        let (schema, name) = (schema.into(), name.into());
        if !is_type_name(&name) {
            let help = "use letters and digits, and begin with an upper-case letter";
            return Err(Error::Settings(format!("`{name}` is no name for the type of `{schema}`: {help}")));
        }
        match self.settings.type_names.insert(schema.clone(), name.clone()).filter(|other| *other != name) {
            Some(other) => Err(Error::Settings(format!("`{schema}` has two names, `{other}` and `{name}`"))),
            None => Ok(self),
        }
    }

    /// Sets the name of a field; its name in JSON stays.
    ///
    /// The type is given as in [`with_renamed_type`](Self::with_renamed_type), the property by its name in JSON.
    ///
    /// # Errors
    /// If the name is not valid for a field, or if the field has another already. Generating fails if there is no such
    /// property, or if another field has the name.
    ///
    /// ```
    /// # fn main() -> Result<(), ops_codegen::Error> {
    /// let generator = ops_codegen::Generator::new()
    ///     .with_renamed_field("Pet", "type", "species")?
    ///     .with_renamed_field("ListPetsInput", "X-Page", "page")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_renamed_field(
        mut self,
        schema: impl Into<String>,
        property: impl Into<String>,
        name: impl Into<String>,
    ) -> Result<Self, Error> {
        let (schema, property, name) = (schema.into(), property.into(), name.into());
        let place = format!("the property `{property}` of `{schema}`");
        if !is_field_name(&name) {
            let help = "use lower-case letters, digits and single `_`, and no word of the language";
            return Err(Error::Settings(format!("`{name}` is no name for {place}: {help}")));
        }
        match self.settings.field_names.insert((schema, property), name.clone()).filter(|other| *other != name) {
            Some(other) => Err(Error::Settings(format!("{place} has two names, `{other}` and `{name}`"))),
            None => Ok(self),
        }
    }

    /// Adds a derive to the types whose names match this pattern.
    ///
    /// The name is that of the type or of its schema; `*` stands for any text, `?` for any character. The derive is a
    /// trait of the standard library, such as `Hash`, or the path of a macro, such as `strum::EnumIs`. Traits of the
    /// standard library are left out if a type cannot have them, with a note that names the part that lacks the trait;
    /// your own types are expected to have them. `Ord` includes `Eq` and `PartialOrd`. For any other derive, only the
    /// compiler reports errors.
    ///
    /// Every type has `Debug`, `Clone`, `PartialEq`, `Serialize` and `Deserialize`. The latter two are not derived: a
    /// macro finds no attributes of serde, and so assumes that JSON has the names of the fields. Therefore use the
    /// runtime's feature `macros` rather than deriving `schemars::JsonSchema`.
    ///
    /// # Errors
    /// If the text is not a derive. Generating fails if the pattern matches no type.
    ///
    /// ```
    /// # fn main() -> Result<(), ops_codegen::Error> {
    /// let generator = ops_codegen::Generator::new().with_derive("*", "Hash")?.with_derive("Pet*", "Default")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_derive(mut self, schema_pattern: impl Into<String>, derive: &str) -> Result<Self, Error> {
        self.settings.derives.push((schema_pattern.into(), Derive::read(derive)?));
        Ok(self)
    }

    /// Generates the schemas of the document that match this pattern even if no operation has them, such as those of
    /// webhooks.
    ///
    /// `*` stands for any text, `?` for any character. Their types come after those of operations and do not change
    /// their names. They are read like responses: defaults of the document are values. Generating fails if no schema
    /// matches.
    #[must_use]
    pub fn with_schema(mut self, pattern: impl Into<String>) -> Self {
        self.settings.schemas.push(pattern.into());
        self
    }

    /// Leaves out the trait `Methods`, whose methods run the operations: `client.show_pet(7)`.
    #[must_use]
    pub fn without_methods(mut self) -> Self {
        self.settings.methods = false;
        self
    }

    /// Adds the trait `Server`, with a method for each operation, and `register_server`, which registers an
    /// implementation as the handlers of a registry. So a program can serve what the document describes.
    ///
    /// A method gets the [`Context`](https://docs.rs/ops-runtime/latest/ops_runtime/struct.Context.html) of the call
    /// and the operation's input, and returns its output, or a boxed stream for a subscription. A missing method is a
    /// compiler error. The declared errors of an operation become a `CallError`, by `?` or `.into()`:
    /// `ops_runtime::serve` sends their status and their body. A range of statuses becomes its first, and `Default`
    /// becomes 500; `ErrorResponse::new(503, body)` has any other. Of several successes, the output's variant selects
    /// the status: that of a range is its first that no other success describes.
    ///
    /// Inputs are checked by the document before a method gets them. A property that was not sent is `None`, even if
    /// the document has a default. Outputs are checked by the registry's policy. With `OutputPolicy::Repair`, the
    /// default, values are converted if possible, and a result that still does not match its schema gets the status
    /// 500. With `Strict`, any difference gets 500; use it in tests. Items of a stream are repaired, and sent even if
    /// they still do not match.
    ///
    /// Every type can then be made by `new`. Even with [`only_used`](crate::Builder::only_used), all operations are
    /// generated. The crate needs the runtime's feature `registry`.
    ///
    /// ```
    /// use ops_codegen::Generator;
    /// use ops_runtime::spec::{Api, Definitions, OperationSpec};
    ///
    /// let api = Api::new(Definitions::EMPTY, vec![OperationSpec::query("zoo.showPet")]);
    /// let source = Generator::new().with_server().generate(&api).source;
    /// assert!(source.contains("pub trait Server") && source.contains("pub fn register_server"));
    /// ```
    #[must_use]
    pub fn with_server(mut self) -> Self {
        self.settings.server = Some(Serving::All);
        self
    }

    /// Like [`with_server`](Self::with_server), but methods may be left out: they fail with the code `NOT_IMPLEMENTED`,
    /// for which an HTTP server sends the status 501.
    #[must_use]
    pub fn with_partial_server(mut self) -> Self {
        self.settings.server = Some(Serving::Some);
        self
    }

    /// Lets requests of the operations that match this pattern send `null` for a property that may be absent.
    ///
    /// Such a property is an `Option<Option<_>>` in the operation's body, and in all types that the body reaches:
    /// `None` sends nothing, `Some(None)` sends `null`. Bodies of `PATCH` and merge patches
    /// (`application/merge-patch+json`) always have such properties. In all other bodies they are an `Option<_>`, and
    /// `null` is not sent. For an operation that is not an HTTP request, the whole input is the body.
    ///
    /// The pattern is that of [`Builder::include`](crate::Builder::include), such as an operation's id or name.
    ///
    /// ```
    /// use ops_codegen::Generator;
    /// use ops_runtime::spec::{Api, Definitions, OperationSpec, Schema};
    ///
    /// let schema = Schema::text(r#"{"type":"object","properties":{"owner":{"type":["string","null"]}}}"#);
    /// let api = Api::new(Definitions::EMPTY, vec![OperationSpec::mutation("zoo.edit").with_input(schema)]);
    /// assert!(Generator::new().generate(&api).source.contains("pub owner: Option<String>,"));
    /// let generator = Generator::new().with_explicit_null("zoo.edit");
    /// assert!(generator.generate(&api).source.contains("pub owner: Option<Option<String>>,"));
    /// ```
    #[must_use]
    pub fn with_explicit_null(mut self, pattern: impl Into<String>) -> Self {
        self.settings.explicit_null.push(pattern.into());
        self
    }

    /// The patterns of the operations whose requests can send `null`.
    pub(crate) fn explicit_null(&self) -> &[String] {
        &self.settings.explicit_null
    }

    /// Leaves out what is not among these identifiers.
    pub(crate) fn with_only(mut self, used: HashSet<String>) -> Self {
        self.settings.only = Some(used);
        self
    }

    /// True if types in the document are used.
    pub(crate) fn takes_rust_types(&self) -> bool {
        self.settings.rust_types
    }

    /// Renders an API.
    ///
    /// A setting that cannot be applied, such as a name that is taken, is skipped; a diagnostic with the severity
    /// `Error` reports it.
    #[must_use]
    pub fn generate(&self, api: &Api) -> Generated {
        let (mut generated, faults) = self.run(api, None, None);
        generated.diagnostics.splice(..0, faults.messages().map(|message| Diagnostic::error("", message)));
        generated
    }

    /// Renders an API, with this server if there is one, to a file with this name, by default its namespace; returns
    /// the errors in the settings.
    pub(crate) fn run(&self, api: &Api, server: Option<Serving>, file: Option<&str>) -> (Generated, Faults) {
        let (mut diagnostics, mut faults) = (Vec::new(), Faults::default());
        let source = Source::new(&api.definitions, &mut diagnostics);
        let settings = &Settings { server: server.or(self.settings.server), ..self.settings.clone() };
        let mut module = module(api, &source, settings, &mut diagnostics, &mut faults);
        if let Some(file) = file {
            file.clone_into(&mut module.file);
        }
        rename(&mut module, settings, &source, &mut faults);
        derive(&mut module.types, &settings.derives, &mut faults, &mut diagnostics);
        if let Some(used) = &settings.only {
            module.names = names(&module);
            leave_out(&mut module, used, &source, &mut diagnostics);
            // A field that now accepts any JSON lacks the traits of its type.
            derive_less(&mut module.types, &mut diagnostics);
        }
        let source = render(&module, &self.runtime, &mut diagnostics);
        Diagnostic::bound(&mut diagnostics);
        let others = module.others.take().map(|specs| others(api, specs));
        (Generated { source, diagnostics, others, names: module.names }, faults)
    }
}

/// Operations, and the definitions that they share, as JSON.
fn others(api: &Api, specs: Vec<OperationSpec>) -> String {
    let definitions = api.definitions.as_slice().iter();
    let definitions: Map<String, Value> =
        definitions.filter_map(|it| Some((it.name.to_string(), it.schema.to_value().ok()?.into_owned()))).collect();
    // With its definitions, each spec would repeat them.
    let specs = specs.into_iter().filter_map(|mut spec| {
        spec.definitions = Definitions::EMPTY;
        serde_json::to_value(spec).ok()
    });
    let specs: Vec<Value> = specs.collect();
    json!({ "definitions": definitions, "operations": specs }).to_string()
}
