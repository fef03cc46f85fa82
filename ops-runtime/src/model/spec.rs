//! Operations as data: the spec of an operation and the API that it belongs to.
//!
//! A spec is written in a `static` by generated code, and owned when it is loaded at run time:
//!
//! ```
//! use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
//!
//! static SHOW: OperationSpec = OperationSpec::query("petstore.showPetById")
//!     .with_description("Info for a specific pet")
//!     .with_input(Schema::text(r#"{"type":"object","properties":{"petId":{"type":"string"}}}"#));
//! assert_eq!((SHOW.namespace(), SHOW.name()), ("petstore", "showPetById"));
//!
//! let met = OperationSpec::new(OperationKind::Query, "petstore", "pets.list/all").unwrap();
//! assert_eq!((met.namespace(), met.name()), ("petstore", "pets.list/all"));
//! ```

mod json;
mod pattern;

#[cfg(any(feature = "openapi", feature = "registry"))]
pub use pattern::{check_pattern, may_name_a_method};

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::model::retry::{RetryPolicy, SpecRetry};
use crate::model::text::{List, Text, set};
use crate::model::text_list::TextList;
use crate::{AccessControl, Binding, Definitions, ErrorDefinition, HttpBinding, McpBinding, Schema};

/// The kind of an operation: it reads, writes or streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OperationKind {
    /// Reads and changes nothing.
    Query,
    /// May change something.
    Mutation,
    /// Returns a stream of results. [`OperationSpec::may_change`] tells if it may change something.
    Subscription,
}

/// The description of an operation as data.
///
/// Its id is `namespace.name`. A namespace has no dot, so the id splits at its first dot; a name is any text.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OperationSpec {
    /// `namespace.name`, unique in a registry.
    pub id: Text,
    /// The kind: it reads, writes or streams.
    pub kind: OperationKind,
    /// The result of [`may_change`](Self::may_change) for a subscription. `None` if its HTTP method decides. Ignored for other
    /// kinds.
    pub changes: Option<bool>,
    /// The version of the operation, or of the API that it belongs to.
    pub version: Text,
    /// A short name for people.
    pub title: Option<Text>,
    /// The description.
    pub description: Text,
    /// Tags for grouping.
    pub tags: TextList,
    /// The schema of the input.
    pub input: Schema,
    /// The schema of the output; for a subscription, of one item.
    pub output: Schema,
    /// Errors that callers can expect.
    pub errors: List<ErrorDefinition>,
    /// The access rules for callers.
    pub access: AccessControl,
    /// How the operation is reached.
    pub binding: Binding,
    /// The definitions that `input`, `output` and the errors' schemas refer to.
    pub definitions: Definitions,
    /// The time limit of a call, from when its handler first waits. For a subscription, it limits the opening and then,
    /// with what is left, how long a reader waits for the first item.
    pub timeout: Option<Duration>,
    pub(crate) retry: Option<SpecRetry>,
    /// True if callers should stop using it.
    pub deprecated: bool,
    /// Any other data of an adapter or a user (`_meta` in JSON).
    pub meta: Option<Map<String, Value>>,
}

impl OperationSpec {
    const fn of(kind: OperationKind, id: &'static str) -> Self {
        Self {
            id: Cow::Borrowed(id),
            kind,
            changes: None,
            version: Cow::Borrowed("1.0.0"),
            title: None,
            description: Cow::Borrowed(""),
            tags: TextList::new(&[]),
            input: Schema::ANY,
            output: Schema::ANY,
            errors: Cow::Borrowed(&[]),
            access: AccessControl::NONE,
            binding: Binding::Local,
            definitions: Definitions::EMPTY,
            timeout: None,
            retry: None,
            deprecated: false,
            meta: None,
        }
    }

    /// A query with the id `namespace.name`.
    pub const fn query(id: &'static str) -> Self {
        Self::of(OperationKind::Query, id)
    }

    /// A mutation with the id `namespace.name`.
    pub const fn mutation(id: &'static str) -> Self {
        Self::of(OperationKind::Mutation, id)
    }

    /// A subscription with the id `namespace.name`.
    pub const fn subscription(id: &'static str) -> Self {
        Self::of(OperationKind::Subscription, id)
    }

    /// A spec loaded at run time; its fields are set one by one.
    ///
    /// # Errors
    /// If the namespace is empty or has a dot, or if the name is empty.
    pub fn new(kind: OperationKind, namespace: &str, name: &str) -> Result<Self, InvalidId> {
        let mut spec = Self::of(kind, "");
        spec.id = Cow::Owned(format!("{namespace}.{name}"));
        if namespace.contains('.') {
            return Err(InvalidId { id: spec.id.into_owned() });
        }
        spec.check_id()?;
        Ok(spec)
    }

    /// Checks that the id is `namespace.name`, and that both parts are present.
    ///
    /// # Errors
    /// If it is not.
    pub fn check_id(&self) -> Result<(), InvalidId> {
        check_id(&self.id)
    }

    /// The part of the id before its first dot.
    pub fn namespace(&self) -> &str {
        self.id.split_once('.').map_or("", |(namespace, _)| namespace)
    }

    /// The part of the id after its first dot.
    pub fn name(&self) -> &str {
        self.id.split_once('.').map_or(self.id.as_ref(), |(_, name)| name)
    }

    /// True if a call may change something: such a call needs consent by default, and is not repeated without need.
    ///
    /// It is true for a mutation, and false for a query. For a subscription, it is [`changes`](Self::changes) if that is set.
    /// Otherwise, it is true if the HTTP method is none of `GET`, `HEAD`, `OPTIONS` and `QUERY`, and false without an HTTP method.
    ///
    /// ```
    /// use ops_runtime::binding::HttpBinding;
    /// use ops_runtime::spec::OperationSpec;
    ///
    /// const RUN: OperationSpec = OperationSpec::subscription("ai.run").with_http(HttpBinding::new("POST", "/runs"));
    /// const ASK: OperationSpec = RUN.with_changes(false);
    /// assert!(RUN.may_change() && !ASK.may_change());
    /// assert!(!OperationSpec::subscription("shop.watch").may_change());
    /// ```
    pub fn may_change(&self) -> bool {
        match self.kind {
            OperationKind::Query => false,
            OperationKind::Mutation => true,
            OperationKind::Subscription => {
                self.changes.unwrap_or_else(|| self.http().is_some_and(|http| !reads(&http.method)))
            }
        }
    }

    /// When and how often a failed attempt of a durable call is repeated. `None` if the operation does not say.
    ///
    /// It counts for jobs only, and only if their submitter has no policy; other calls have one attempt.
    pub fn retry(&self) -> Option<&RetryPolicy> {
        self.retry.as_deref()
    }

    /// Sets when and how often a failed attempt of a durable call is retried, in a spec loaded at run time.
    pub fn set_retry(&mut self, policy: Option<RetryPolicy>) {
        self.retry = policy.map(|policy| SpecRetry::Shared(Arc::new(policy)));
    }

    /// The binding to a tool of an MCP server, if there is one.
    pub fn mcp(&self) -> Option<&McpBinding> {
        match &self.binding {
            Binding::Mcp(mcp) => Some(mcp),
            _ => None,
        }
    }

    /// The binding to HTTP, if there is one.
    pub fn http(&self) -> Option<&HttpBinding> {
        match &self.binding {
            Binding::Http(http) => Some(http),
            _ => None,
        }
    }

    /// The binding to HTTP, if callers do not send what is `readOnly`. A function takes its own type, with all that this
    /// requires.
    #[cfg(any(feature = "registry", feature = "typescript"))]
    pub(crate) fn directed_http(&self) -> Option<&HttpBinding> {
        self.http().filter(|_| !self.input.is_made())
    }
}

/// Schemas kept as text.
#[cfg(all(feature = "http", feature = "openapi"))]
impl OperationSpec {
    fn compacted(mut self) -> Self {
        self.input = self.input.compacted();
        self.output = self.output.compacted();
        if !self.errors.is_empty() {
            let error = |error: ErrorDefinition| ErrorDefinition { schema: error.schema.compacted(), ..error };
            self.errors = self.errors.into_owned().into_iter().map(error).collect();
        }
        self
    }
}

/// Schemas that stand alone.
impl OperationSpec {
    /// The schema of the input with each definition that it reaches, under `$defs`: all that its `$ref`s lead to.
    ///
    /// Each definition is there once, so it is no larger than the schema and the table of definitions together.
    ///
    /// ```
    /// use ops_runtime::spec::{Definition, OperationSpec, Schema};
    ///
    /// static ADD: OperationSpec = OperationSpec::mutation("shop.addPet")
    ///     .with_input(Schema::text(r##"{"$ref":"#/$defs/Pet"}"##))
    ///     .with_definitions(const { &[Definition::new("Pet", r#"{"type":"object"}"#), Definition::new("Tag", "true")] });
    /// let pet = serde_json::json!({ "Pet": { "type": "object" } });
    /// assert_eq!(ADD.input_schema().unwrap(), serde_json::json!({ "$ref": "#/$defs/Pet", "$defs": pet }));
    /// ```
    ///
    /// # Errors
    /// If the schema or a definition was given as text that is not JSON.
    pub fn input_schema(&self) -> Result<Value, serde_json::Error> {
        self.input.self_contained(&self.definitions)
    }

    /// The schema of the output, of one item for a subscription, with each definition that it reaches, under `$defs`.
    ///
    /// # Errors
    /// If the schema or a definition was given as text that is not JSON.
    pub fn output_schema(&self) -> Result<Value, serde_json::Error> {
        self.output.self_contained(&self.definitions)
    }
}

/// The builder steps for generated statics.
impl OperationSpec {
    /// Sets if a call of the subscription may change something, whatever its HTTP method.
    #[must_use]
    pub const fn with_changes(mut self, changes: bool) -> Self {
        self.changes = Some(changes);
        self
    }

    /// Sets the version.
    #[must_use]
    pub const fn with_version(mut self, version: &'static str) -> Self {
        set(&mut self.version, Cow::Borrowed(version));
        self
    }

    /// Sets the title.
    #[must_use]
    pub const fn with_title(mut self, title: &'static str) -> Self {
        set(&mut self.title, Some(Cow::Borrowed(title)));
        self
    }

    /// Sets the description.
    #[must_use]
    pub const fn with_description(mut self, description: &'static str) -> Self {
        set(&mut self.description, Cow::Borrowed(description));
        self
    }

    /// Sets the tags.
    #[must_use]
    pub const fn with_tags(mut self, tags: &'static [&'static str]) -> Self {
        set(&mut self.tags, TextList::new(tags));
        self
    }

    /// Sets the schema of the input.
    #[must_use]
    pub const fn with_input(mut self, schema: Schema) -> Self {
        set(&mut self.input, schema);
        self
    }

    /// Sets the schema of the output.
    #[must_use]
    pub const fn with_output(mut self, schema: Schema) -> Self {
        set(&mut self.output, schema);
        self
    }

    /// Sets the errors that callers can expect.
    #[must_use]
    pub const fn with_errors(mut self, errors: &'static [ErrorDefinition]) -> Self {
        set(&mut self.errors, Cow::Borrowed(errors));
        self
    }

    /// Sets the access rules for callers.
    #[must_use]
    pub const fn with_access(mut self, access: AccessControl) -> Self {
        set(&mut self.access, access);
        self
    }

    /// Binds the operation to an HTTP endpoint.
    #[must_use]
    pub const fn with_http(mut self, http: HttpBinding) -> Self {
        set(&mut self.binding, Binding::Http(http));
        self
    }

    /// Binds the operation to a tool of an MCP server.
    #[must_use]
    pub const fn with_mcp(mut self, mcp: McpBinding) -> Self {
        set(&mut self.binding, Binding::Mcp(mcp));
        self
    }

    /// Sets the definitions that the schemas refer to.
    #[must_use]
    pub const fn with_definitions(mut self, definitions: &'static [crate::Definition]) -> Self {
        set(&mut self.definitions, Definitions::Static(definitions));
        self
    }

    /// Sets the time limit of a call.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets when and how often a failed attempt of a durable call is repeated.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ops_runtime::spec::{OperationSpec, RetryPolicy};
    ///
    /// static CHARGE: OperationSpec = OperationSpec::mutation("shop.charge")
    ///     .with_retry(const { &RetryPolicy::new(5).with_codes(&["BUSY"]).with_deadline(Duration::from_secs(3600)) });
    /// assert_eq!(CHARGE.retry().map(|policy| policy.attempts), Some(5));
    /// ```
    #[must_use]
    pub const fn with_retry(mut self, policy: &'static RetryPolicy) -> Self {
        set(&mut self.retry, Some(SpecRetry::Static(policy)));
        self
    }

    /// Marks the operation as deprecated.
    #[must_use]
    pub const fn with_deprecated(mut self) -> Self {
        self.deprecated = true;
        self
    }
}

/// True if the method alone says that a request changes nothing.
pub(crate) fn reads(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "QUERY")
}

/// Checks an id as [`OperationSpec::check_id`] does that of a spec.
pub(crate) fn check_id(id: &str) -> Result<(), InvalidId> {
    match id.split_once('.') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => Ok(()),
        _ => Err(InvalidId { id: id.to_owned() }),
    }
}

/// An operation id that is not `namespace.name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidId {
    id: String,
}

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not an operation id: write `namespace.name`, the namespace without a dot", self.id)
    }
}

impl std::error::Error for InvalidId {}

/// The content of a document: operations, and the definitions that their schemas share.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Api {
    /// The definitions, shared by all operations.
    pub definitions: Definitions,
    /// The operations, in the document's order; each points to `definitions`.
    pub operations: Vec<OperationSpec>,
    /// The requests that the API sends, webhooks and callbacks; the output of each is what it sends.
    pub webhooks: Vec<OperationSpec>,
}

impl Api {
    /// An API of these operations, whose schemas refer to these definitions.
    pub fn new(definitions: Definitions, mut operations: Vec<OperationSpec>) -> Self {
        for operation in &mut operations {
            operation.definitions = definitions.clone();
        }
        Self { definitions, operations, webhooks: Vec::new() }
    }

    /// Sets the requests that the API sends, whose schemas refer to the same definitions.
    #[must_use]
    pub fn with_webhooks(mut self, mut webhooks: Vec<OperationSpec>) -> Self {
        for webhook in &mut webhooks {
            webhook.definitions = self.definitions.clone();
        }
        self.webhooks = webhooks;
        self
    }

    /// The same API with its schemas kept as text, which takes a fraction of the memory of their trees.
    #[cfg(all(feature = "http", feature = "openapi"))]
    pub(crate) fn compacted(self) -> Self {
        let Self { definitions, operations, webhooks } = self;
        let table = definitions.as_slice().iter().cloned();
        let table = table.map(|own| crate::Definition { schema: own.schema.compacted(), ..own }).collect();
        let compacted = |specs: Vec<OperationSpec>| specs.into_iter().map(OperationSpec::compacted).collect();
        Self::new(Definitions::new(table), compacted(operations)).with_webhooks(compacted(webhooks))
    }
}
