//! The JSON of schemas and specs.

use std::time::Duration;

use serde_core::de::{Deserialize, Deserializer};
use serde_core::ser::{Error, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::model::json::{Whole, fields, through, words};
use crate::{
    AccessControl, Binding, Definitions, ErrorDefinition, InvalidId, List, OperationKind, OperationSpec, RetryPolicy,
    Schema, Text, TextList,
};

words!(OperationKind {
    "query" => Query,
    "mutation" => Mutation,
    "subscription" => Subscription,
});

/// The schema as it is, without the definitions that it refers to.
impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.to_value().map_err(S::Error::custom)?.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Value::deserialize(d).map(Self::from)
    }
}

/// A spec in the shape of its JSON: the id in two parts, and every schema with the definitions that it reaches.
struct SpecJson {
    name: Text,
    namespace: Text,
    version: Text,
    kind: OperationKind,
    changes: Option<bool>,
    title: Option<Text>,
    description: Text,
    tags: TextList,
    input: Schema,
    output: Schema,
    errors: List<ErrorDefinition>,
    access: AccessControl,
    binding: Option<Binding>,
    timeout: Option<Whole>,
    retry: Option<RetryPolicy>,
    deprecated: bool,
    meta: Option<Map<String, Value>>,
}

fields!(SpecJson {
    "name" => name: required,
    "namespace" => namespace: required,
    "version" => version: required,
    "type" => kind: required,
    "changes" => changes: some,
    "title" => title: some,
    "description" => description: required,
    "tags" => tags: filled,
    "inputSchema" => input: required,
    "outputSchema" => output: required,
    "errorSchemas" => errors: filled,
    "accessControl" => access: required,
    "deprecated" => deprecated: flag,
    "timeout" => timeout: some,
    "retry" => retry: some,
    "binding" => binding: some,
    "_meta" => meta: some,
});

through!(OperationSpec, SpecJson);

impl TryFrom<&OperationSpec> for SpecJson {
    type Error = Unwritable;

    fn try_from(spec: &OperationSpec) -> Result<Self, Unwritable> {
        spec.check_id()?;
        let whole = |schema: &Schema| whole(schema, &spec.definitions);
        let error = |error: &ErrorDefinition| Ok(ErrorDefinition { schema: whole(&error.schema)?, ..error.clone() });
        Ok(Self {
            name: spec.name().to_owned().into(),
            namespace: spec.namespace().to_owned().into(),
            version: spec.version.clone(),
            kind: spec.kind,
            changes: spec.changes,
            title: spec.title.clone(),
            description: spec.description.clone(),
            tags: spec.tags.clone(),
            input: whole(&spec.input)?,
            output: whole(&spec.output)?,
            errors: spec.errors.iter().map(error).collect::<Result<Vec<_>, Unwritable>>()?.into(),
            access: spec.access.clone(),
            binding: Some(spec.binding.clone()).filter(|binding| *binding != Binding::Local),
            timeout: spec.timeout.map(milliseconds),
            retry: spec.retry().cloned(),
            deprecated: spec.deprecated,
            meta: spec.meta.clone(),
        })
    }
}

impl TryFrom<SpecJson> for OperationSpec {
    type Error = InvalidId;

    fn try_from(json: SpecJson) -> Result<Self, InvalidId> {
        let mut spec = Self::new(json.kind, &json.namespace, &json.name)?;
        spec.changes = json.changes;
        spec.version = json.version;
        spec.title = json.title;
        spec.description = json.description;
        spec.tags = json.tags;
        spec.input = json.input;
        spec.output = json.output;
        spec.errors = json.errors;
        spec.access = json.access;
        spec.binding = json.binding.unwrap_or_default();
        spec.timeout = json.timeout.map(|Whole(milliseconds)| Duration::from_millis(milliseconds));
        spec.set_retry(json.retry);
        spec.deprecated = json.deprecated;
        spec.meta = json.meta;
        Ok(spec)
    }
}

fn whole(schema: &Schema, definitions: &Definitions) -> Result<Schema, serde_json::Error> {
    schema.self_contained(definitions).map(Schema::from)
}

/// Rounded up, so that a short time does not become zero.
fn milliseconds(time: Duration) -> Whole {
    Whole(time.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(u64::MAX))
}

/// Why a spec has no JSON.
enum Unwritable {
    Id(InvalidId),
    Schema(serde_json::Error),
}

impl From<InvalidId> for Unwritable {
    fn from(error: InvalidId) -> Self {
        Self::Id(error)
    }
}

impl From<serde_json::Error> for Unwritable {
    fn from(error: serde_json::Error) -> Self {
        Self::Schema(error)
    }
}

impl std::fmt::Display for Unwritable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(error) => error.fmt(f),
            Self::Schema(error) => write!(f, "a schema is not JSON: {error}"),
        }
    }
}
