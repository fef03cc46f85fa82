//! Values and schemas whose checking, listing or repair could cost more than they do.

use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::binding::{HttpBinding, HttpBody};
use ops_runtime::registry::OutputPolicy;
use ops_runtime::spec::{Definition, Definitions, OperationSpec, Schema};
use ops_runtime::{Call, CallError, CallOptions, Context, Operation, Registry, ResponseEnvelope, mock, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Case, Outcome, block_on};

pub(super) const CASES: &[Case] = &[
    Case::new("union-tagged-valid", 11, |nesting| tagged(nested(nesting, json!(1)), true)),
    Case::new("union-tagged-invalid", 14, |nesting| tagged(nested(nesting, json!("x")), false)),
    Case::new("union-tagged-deep", 60, |nesting| tagged(nested(nesting, json!("x")), false)),
    Case::new("union-tagged-deeper", 200, |nesting| tagged(nested(nesting, json!("x")), false)),
    Case::new("union-tagged-wide", 1 << 18, |size| tagged(wide(size, json!(1)), true)).with_family("unions"),
    Case::new("union-tagged-wide-invalid", 1 << 18, |size| tagged(wide(size, json!("x")), false)).with_family("unions"),
    Case::new("union-untagged-input", 40, |nesting| untagged_input(chain(nesting))),
    Case::new("union-untagged-wide", 1 << 18, |size| untagged_input(repeated(size, &chain(12)))).with_family("unions"),
    Case::new("union-response-by-id", 40, |nesting| response(chain(nesting), OutputPolicy::Repair)),
    Case::new("union-response-strict", 40, |nesting| response(chain(nesting), OutputPolicy::Strict)),
    Case::new("union-response-cast", 40, |nesting| response(chain(nesting), OutputPolicy::Cast)),
    Case::new("union-response-typed", 40, |nesting| typed_response(nesting, OutputPolicy::Repair)),
    Case::new("union-response-typed-strict", 40, |nesting| typed_response(nesting, OutputPolicy::Strict)),
    Case::new("union-response-wide", 1 << 17, |size| response(repeated(size, &chain(8)), OutputPolicy::Repair))
        .with_family("unions"),
    Case::new("union-beside-pattern", 40, |nesting| {
        input(
            json!({ "$ref": "#/$defs/N", "$defs": { "N": {
            "type": "object", "properties": { "a": { "$ref": "#/$defs/N" } },
            "patternProperties": { "a": { "$ref": "#/$defs/N" } },
        } } }),
            chain(nesting),
            |fits| !fits,
        )
    }),
    Case::new("references-all-of-chain", 30 * 64, |size| all_of(size / 64, &json!(1), true)).with_family("references"),
    Case::new("references-all-of-chain-invalid", 30 * 64, |size| all_of(size / 64, &json!("x"), false))
        .with_family("references"),
    Case::new("references-all-of-output", 30 * 64, |size| all_of_output(size / 64)).with_family("references"),
    Case::new("references-in-a-circle", 3, circle),
    Case::new("references-read-only", 8 * 64, |size| read_only(size / 64)).with_family("references"),
    Case::new("references-to-a-long-definition", 1 << 20, example).with_family("references"),
    Case::new("warnings-wrong-items", 3 << 20, |size| wrong_items(size, OutputPolicy::Repair)).with_family("warnings"),
    Case::new("warnings-wrong-items-cast", 1 << 20, |size| wrong_items(size, OutputPolicy::Cast))
        .with_family("warnings"),
    Case::new("warnings-wrong-items-strict", 3 << 20, |size| wrong_items(size, OutputPolicy::Strict))
        .with_family("warnings"),
    Case::new("warnings-wrong-items-beyond", 1 << 20, |size| {
        let schema = json!({ "type": "array", "items": { "type": "integer" }, "contains": { "type": "integer" } });
        wrong(schema, size, OutputPolicy::Repair)
    })
    .with_family("warnings"),
    Case::new("warnings-wrong-input", 1 << 20, |size| {
        input(json!({ "type": "array", "items": { "type": "integer" } }), items(size), |fits| !fits || size < 16)
    })
    .with_family("warnings"),
    Case::new("warnings-undeclared", 1 << 20, undeclared).with_family("warnings"),
    Case::new("warnings-long-names", 1 << 20, long_names).with_family("warnings"),
    Case::new("warnings-nulls", 1 << 18, nulls).with_family("warnings"),
    Case::new("depth-of-a-response", 1000, |depth| {
        let value = (0..depth).fold(json!(1), |inner, _| json!([inner]));
        let schema =
            json!({ "$ref": "#/$defs/L", "$defs": { "L": { "type": "array", "items": { "$ref": "#/$defs/L" } } } });
        let outcome = output(schema, value.clone(), OutputPolicy::Repair);
        dismantle(value);
        outcome.map(|envelope| format!("{} warnings", envelope.warnings.len()))
    }),
    Case::new("pattern-that-backtracks", 1 << 14, |size| {
        let schema = json!({ "type": "array", "items": { "type": "string", "pattern": "^(a|a)*(?=b)c$" } });
        input(schema, Value::Array(vec![json!("a".repeat(40)); size / 42]), |fits| !fits || size < 42)
    }),
    Case::new("enum-in-a-schema-of-many-values", 1 << 20, |size| {
        let names: Vec<Value> = (0..size / 20).map(|index| json!(format!("value-{index}"))).collect();
        let last = names.last().cloned().unwrap_or_default();
        let schema = json!({ "type": "array", "items": { "enum": names } });
        let values = Value::Array(vec![last; size / 20]);
        let checked = input(schema.clone(), values.clone(), |fits| fits)?;
        output(schema, values, OutputPolicy::Repair)?;
        Ok(checked)
    }),
];

/// An expression as serde tags it: every variant holds others.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(super) enum Expr {
    And { args: Vec<Expr> },
    Or { args: Vec<Expr> },
    Not { arg: Box<Expr> },
    Leaf { value: i64 },
}

/// Counts the leaves of an expression.
#[operation(namespace = "hostile", kind = query)]
async fn leaves(expr: Expr) -> u64 {
    fn count(expr: &Expr) -> u64 {
        match expr {
            Expr::And { args } | Expr::Or { args } => args.iter().map(count).sum(),
            Expr::Not { arg } => count(arg),
            Expr::Leaf { .. } => 1,
        }
    }
    count(&expr)
}

/// An expression with a leaf this deep; the tag is last, so that nothing is known of a variant before its arguments.
fn nested(nesting: usize, leaf: Value) -> Value {
    (0..nesting).fold(json!({ "value": leaf, "op": "leaf" }), |inner, level| match level % 3 {
        0 => json!({ "args": [inner], "op": "and" }),
        1 => json!({ "args": [inner], "op": "or" }),
        _ => json!({ "arg": inner, "op": "not" }),
    })
}

/// Many expressions of nesting 11 beside each other, the last one with this leaf.
fn wide(size: usize, leaf: Value) -> Value {
    let mut args = vec![nested(11, json!(1)); size / 320];
    args.push(nested(11, leaf));
    json!({ "args": args, "op": "and" })
}

fn tagged(expr: Value, fits: bool) -> Outcome {
    let registry = Registry::new();
    registry.register(Leaves).map_err(|error| error.to_string())?;
    let result = block_on(registry.call("hostile.leaves", json!({ "expr": expr })));
    match (result, fits) {
        (Ok(envelope), true) => Ok(envelope.data.to_string()),
        (Ok(envelope), false) => Err(format!("a fault is taken for {}", envelope.data)),
        (Err(error), true) => Err(format!("refused: {error}")),
        (Err(error), false) => bounded(&error),
    }
}

/// An error that says where, in a line.
fn bounded(error: &ops_runtime::CallError) -> Outcome {
    let text = error.to_string();
    let details = error.details().to_string().len();
    if text.len() > 4096 {
        return Err(format!("a message of {} bytes", text.len()));
    }
    Ok(format!("{text} ({details} bytes of details)"))
}

/// A union of two variants that hold the same union at the same place: which one it is shows at the leaf only.
fn untagged() -> Value {
    json!({ "anyOf": [{ "$ref": "#/$defs/U" }, { "type": "array", "items": { "$ref": "#/$defs/U" } }], "$defs": {
        "U": { "anyOf": [{ "$ref": "#/$defs/A" }, { "$ref": "#/$defs/B" }] },
        "A": { "type": "object", "required": ["a"], "properties": { "a": { "$ref": "#/$defs/U" } } },
        "B": { "type": "object", "required": ["a"], "properties": { "a": { "$ref": "#/$defs/U" }, "b": {} } },
    } })
}

fn chain(nesting: usize) -> Value {
    (0..nesting).fold(json!(1), |inner, _| json!({ "a": inner }))
}

fn repeated(size: usize, value: &Value) -> Value {
    Value::Array(vec![value.clone(); size / value.to_string().len() + 1])
}

fn untagged_input(value: Value) -> Outcome {
    input(untagged(), value, |fits| !fits)
}

/// Calls an operation with this input schema by its id.
fn input(schema: Value, value: Value, promised: impl Fn(bool) -> bool) -> Outcome {
    let spec = OperationSpec::query("hostile.input").with_input(Schema::from(schema));
    let registry = Registry::new();
    let handler = Handler::dynamic(|_, _| async { Ok(Value::Null) });
    registry.register(Registration::new(spec, handler)).map_err(|error| error.to_string())?;
    let result = block_on(registry.call("hostile.input", value));
    if !promised(result.is_ok()) {
        return Err(result.map_or_else(|error| error.to_string(), |_| "it fits".to_owned()));
    }
    result.map_or_else(|error| bounded(&error), |_| Ok("it fits".to_owned()))
}

/// Calls an operation with this output schema by its id, which returns a value.
fn output(schema: Value, value: Value, policy: OutputPolicy) -> Result<ResponseEnvelope<Value>, String> {
    let spec = OperationSpec::query("hostile.output").with_output(Schema::from(schema));
    let registry = registry(spec, value)?;
    let options = CallOptions::new().with_policy(policy);
    block_on(registry.call_with("hostile.output", Value::Null, options)).map_err(|error| error.to_string())
}

fn registry(spec: OperationSpec, value: Value) -> Result<Registry, String> {
    let registry = Registry::new();
    let handler = Handler::dynamic(move |_, _| std::future::ready(Ok(value.clone())));
    registry.register(Registration::new(spec, handler)).map_err(|error| error.to_string())?;
    Ok(registry)
}

fn response(value: Value, policy: OutputPolicy) -> Outcome {
    match output(untagged(), value, policy) {
        Ok(envelope) if envelope.warnings.is_empty() => Err("nothing is told of a fault".to_owned()),
        Ok(envelope) if envelope.warnings.len() > 1001 => Err(format!("{} warnings", envelope.warnings.len())),
        Ok(envelope) => Ok(format!("{} warnings, first {:?}", envelope.warnings.len(), envelope.warnings.first())),
        Err(error) if error.len() > 4096 => Err(format!("a message of {} bytes", error.len())),
        Err(error) => Ok(error),
    }
}

/// An operation whose output is an expression.
struct Parsed;

impl Operation for Parsed {
    type Input = Value;
    type Output = Expr;
    const SPEC: &'static OperationSpec =
        &OperationSpec::query("hostile.parsed").with_output(Schema::make(|| schemars::schema_for!(Expr).into()));
}

impl Call for Parsed {}

fn typed_response(nesting: usize, policy: OutputPolicy) -> Outcome {
    let registry = registry(Parsed::SPEC.clone(), nested(nesting, json!("x")))?;
    let options = CallOptions::new().with_policy(policy);
    match block_on(registry.execute_with::<Parsed>(Value::Null, options)) {
        Ok(envelope) => Err(format!("a fault is taken for {:?}", envelope.data)),
        Err(error) => bounded(&error),
    }
}

/// A definition that is the next one, twice.
fn chained(length: usize) -> Value {
    let mut definitions: Map<String, Value> = (0..length)
        .map(|index| {
            let next = json!({ "$ref": format!("#/$defs/S{}", index + 1) });
            (format!("S{index}"), json!({ "allOf": [next, next] }))
        })
        .collect();
    definitions.insert(format!("S{length}"), json!({ "anyOf": [{ "type": "integer" }, { "const": null }] }));
    json!({ "$ref": "#/$defs/S0", "$defs": definitions })
}

fn all_of(length: usize, value: &Value, fits: bool) -> Outcome {
    // What is deeper than a schema may be is an error, too.
    input(chained(length), value.clone(), |came| came == fits || length > 100 && !came)
}

fn all_of_output(length: usize) -> Outcome {
    match output(chained(length), json!("x"), OutputPolicy::Strict) {
        Ok(_) => Err("a fault is not told".to_owned()),
        Err(error) if error.len() > 4096 => Err(format!("a message of {} bytes", error.len())),
        Err(error) => Ok(error),
    }
}

/// A request body of definitions, each of which is the next one six times; the last says that a property is `readOnly`.
fn read_only(length: usize) -> Outcome {
    let mut definitions: Vec<Definition> = (0..length)
        .map(|index| {
            let next = json!({ "$ref": format!("#/$defs/D{}", index + 1) });
            Definition::from_value(format!("D{index}"), json!({ "allOf": vec![next; 6] }))
        })
        .collect();
    let leaf = json!({ "properties": { "id": { "readOnly": true } } });
    definitions.push(Definition::from_value(format!("D{length}"), leaf));
    let http = HttpBinding::new("POST", "/").with_bodies(const { &[HttpBody::new("application/json")] });
    let mut spec = OperationSpec::mutation("hostile.readOnly").with_http(http);
    spec.input = Schema::from(json!({ "type": "object", "properties": { "body": { "$ref": "#/$defs/D0" } } }));
    spec.definitions = Definitions::new(definitions);
    let registry = Registry::new();
    let handler = Handler::endpoint(Mirror);
    registry.register(Registration::new(spec, handler)).map_err(|error| error.to_string())?;
    for (body, sent) in [(json!({}), json!({})), (json!({ "id": 1, "a": 2 }), json!({ "a": 2 }))] {
        let came = block_on(registry.call("hostile.readOnly", json!({ "body": body })));
        let came = came.map_err(|error| error.to_string())?.data;
        if came != json!({ "body": sent }) {
            return Err(format!("{came} was sent of {body}"));
        }
    }
    Ok("it was sent".to_owned())
}

/// Something remote that gives back what it is sent.
struct Mirror;

impl Endpoint for Mirror {
    fn call(
        &self,
        spec: &OperationSpec,
        input: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        Box::pin(std::future::ready(Ok(ResponseEnvelope::local(Payload::Value(input), spec.id.clone()))))
    }
}

/// An example of what refers to one definition of this length as often as an example may be large.
fn example(size: usize) -> Outcome {
    let properties: Map<String, Value> =
        (0..size / 48).map(|index| (format!("name-{index}"), json!({ "type": "string" }))).collect();
    let next = |name: &str| json!({ "allOf": vec![json!({ "$ref": format!("#/$defs/{name}") }); 32] });
    let definitions = [
        ("A", next("B")),
        ("B", next("C")),
        ("C", next("Long")),
        ("Long", json!({ "type": "object", "properties": properties })),
    ];
    let definitions = definitions.map(|(name, schema)| Definition::new(name, schema.to_string().leak()));
    let schema = json!({ "allOf": [{ "$ref": "#/$defs/A" }, { "minProperties": 1 }] });
    let mut spec = OperationSpec::query("hostile.example").with_output(Schema::from(schema));
    spec.definitions = Definitions::new(definitions.into());
    let registry = Registry::new();
    registry.register(mock::examples(spec)).map_err(|error| error.to_string())?;
    let made = block_on(registry.call("hostile.example", Value::Null)).map_err(|error| error.to_string())?;
    Ok(format!("{} members", made.data.as_object().map_or(0, Map::len)))
}

/// Definitions that are each other.
fn circle(length: usize) -> Outcome {
    let definitions: Map<String, Value> = (0..length)
        .map(|index| {
            let next = json!({ "$ref": format!("#/$defs/S{}", (index + 1) % length) });
            (format!("S{index}"), json!({ "allOf": [next, next], "anyOf": [next, { "type": "integer" }] }))
        })
        .collect();
    input(json!({ "$ref": "#/$defs/S0", "$defs": definitions }), json!(1), |_| true)
}

fn items(size: usize) -> Value {
    Value::Array(vec![json!("wrong"); size / 8])
}

fn wrong_items(size: usize, policy: OutputPolicy) -> Outcome {
    wrong(json!({ "type": "array", "items": { "type": "integer" } }), size, policy)
}

fn wrong(schema: Value, size: usize, policy: OutputPolicy) -> Outcome {
    told(output(schema, items(size), policy), size / 8)
}

/// That differences are told, of many the first ones and how many more there are.
fn told(result: Result<ResponseEnvelope<Value>, String>, differences: usize) -> Outcome {
    match result {
        Ok(envelope) if envelope.warnings.len() > 1001 => Err(format!("{} warnings", envelope.warnings.len())),
        Ok(envelope) if differences > 1001 && !format!("{:?}", envelope.warnings.last()).contains("more") => {
            Err("what is not listed is not told".to_owned())
        }
        Ok(envelope) => Ok(format!("{} warnings, last {:?}", envelope.warnings.len(), envelope.warnings.last())),
        Err(error) if error.len() > 4096 => Err(format!("a message of {} bytes", error.len())),
        Err(error) => Ok(error),
    }
}

/// An object with many properties that its schema does not declare.
fn undeclared(size: usize) -> Outcome {
    let value: Map<String, Value> = (0..size / 16).map(|index| (format!("name-{index}"), json!(1))).collect();
    let schema = json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] });
    let mut value = value;
    value.insert("a".to_owned(), json!(1));
    told(output(schema, Value::Object(value), OutputPolicy::Repair), size / 16)
}

/// A long name above many faults.
fn long_names(size: usize) -> Outcome {
    let value = json!({ "n".repeat(size / 2): items(size / 2) });
    let schema = json!({ "additionalProperties": { "type": "array", "items": { "type": "integer" } } });
    let came = output(schema.clone(), value.clone(), OutputPolicy::Repair)?;
    let bytes: usize = came.warnings.iter().map(|warning| warning.pointer.len() + warning.expected.len()).sum();
    if bytes > 4 << 20 {
        return Err(format!("warnings of {bytes} bytes"));
    }
    input(schema, value, |fits| !fits || size < 16)
}

/// Many properties that may be absent, and are null.
fn nulls(size: usize) -> Outcome {
    let count = size / 32;
    let named = |value: Value| -> Value {
        Value::Object((0..count).map(|index| (format!("name-{index}"), value.clone())).collect())
    };
    let schema = json!({ "type": "object", "properties": named(json!({ "type": "integer" })) });
    told(output(schema, named(Value::Null), OutputPolicy::Repair), count)
}

/// Drops a value without recursion.
fn dismantle(value: Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if let Value::Array(items) = value {
            open.extend(items);
        }
    }
}
