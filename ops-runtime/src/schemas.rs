//! The compiled schemas of a registered operation, made on first use.

#[cfg(feature = "validate")]
mod canonical;
mod constraints;

use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::{Value, json};

use self::constraints::Beyond;
use crate::normalise::{self, CompiledSchema, Reading};
use crate::{CallError, Definitions, ErrorCode, OperationSpec, Schema, Warning};

/// The compiled definitions of each API in a registry, shared by all operations of the API.
#[derive(Default)]
pub(crate) struct DefinitionCache(Mutex<Vec<(Definitions, normalise::CompiledDefinitions)>>);

impl DefinitionCache {
    fn get(&self, definitions: &Definitions) -> normalise::CompiledDefinitions {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, compiled)) = cache.iter().find(|(table, _)| table.same_table(definitions)) {
            return compiled.clone();
        }
        let source = definitions.clone();
        let schema = move |name: &str| Some(source.get(name)?.schema.to_value().ok()?.into_owned());
        let compiled = normalise::CompiledDefinitions::new(Reading::Default, schema);
        cache.push((definitions.clone(), compiled.clone()));
        compiled
    }
}

/// The input and output schema of an operation.
pub(crate) struct Schemas {
    input: Side,
    output: Side,
    beyond: OnceLock<Beyond>,
}

impl Schemas {
    pub(crate) fn new(spec: &OperationSpec, cache: &DefinitionCache) -> Self {
        let definitions = cache.get(&spec.definitions);
        let side = |schema: &Schema, other_side| {
            Side::new(schema.clone(), other_side, spec.definitions.clone(), definitions.clone())
        };
        let (input, output) = (side(&spec.input, "readOnly"), side(&spec.output, "writeOnly"));
        Self { input, output, beyond: OnceLock::new() }
    }

    /// Whether the input's schema asks for more than a Rust type can say.
    #[inline]
    pub(crate) fn input_is_constrained(&self) -> bool {
        self.beyond() == Beyond::Constraints
    }

    /// Whether JSON that can be read into the input's type matches its schema, too.
    #[inline]
    pub(crate) fn input_is_its_type(&self) -> bool {
        self.beyond() == Beyond::Nothing
    }

    #[inline]
    fn beyond(&self) -> Beyond {
        *self.beyond.get_or_init(|| constraints::beyond(&self.input.schema, &self.input.definitions))
    }

    /// Checks an input against its schema.
    pub(crate) fn check_input(&self, spec: &OperationSpec, input: &Value) -> Result<(), CallError> {
        let violations = self.input.violations(input)?;
        if violations.is_empty() {
            return Ok(());
        }
        let list: Vec<_> = violations.iter().map(|v| format!("{}: {}", v.pointer, v.message)).collect();
        let message = format!("the input of `{}` is invalid: {}", spec.id, list.join("; "));
        let list: Vec<_> =
            violations.into_iter().map(|v| json!({ "pointer": v.pointer, "message": v.message })).collect();
        Err(CallError::new(ErrorCode::ValidationError, message).with_details(json!({ "violations": list })))
    }

    /// Repairs an output, and says what was repaired and what still does not match.
    pub(crate) fn normalise_output(&self, output: Value) -> Result<(Value, Vec<Warning>), CallError> {
        let Some(schema) = self.output.compiled()? else { return Ok((output, Vec::new())) };
        let (value, repairs) = schema.normalise(output);
        let mut warnings: Vec<_> = repairs.into_iter().map(|r| Warning::new(r.pointer, r.expected, r.found)).collect();
        for mismatch in self.output_mismatches(&value)? {
            // A place that could not be repaired is known already.
            if warnings.iter().all(|warning| warning.pointer != mismatch.pointer) {
                warnings.push(mismatch);
            }
        }
        Ok((value, warnings))
    }

    /// What of an output does not match its schema.
    pub(crate) fn output_mismatches(&self, output: &Value) -> Result<Vec<Warning>, CallError> {
        let violations = self.output.violations(output)?;
        let found = |pointer: &str| output.pointer(pointer).map_or("absent", kind);
        Ok(violations
            .into_iter()
            .map(|v| {
                let found = found(&v.pointer);
                Warning::new(v.pointer, v.message, found)
            })
            .collect())
    }
}

/// What kind of value it is, as warnings say it.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A value that does not match a schema, and why.
struct Violation {
    pointer: String,
    message: String,
}

/// One schema of an operation.
struct Side {
    schema: Schema,
    /// The keyword of properties that only the other side gives.
    #[cfg_attr(not(feature = "validate"), allow(dead_code))]
    other_side: &'static str,
    definitions: Definitions,
    shared: normalise::CompiledDefinitions,
    compiled: OnceLock<Result<Option<CompiledSchema>, String>>,
    #[cfg(feature = "validate")]
    validator: OnceLock<Option<jsonschema::Validator>>,
}

impl Side {
    fn new(
        schema: Schema,
        other_side: &'static str,
        definitions: Definitions,
        shared: normalise::CompiledDefinitions,
    ) -> Self {
        Self {
            schema,
            other_side,
            definitions,
            shared,
            compiled: OnceLock::new(),
            #[cfg(feature = "validate")]
            validator: OnceLock::new(),
        }
    }

    /// The compiled schema; none if every value is fine.
    fn compiled(&self) -> Result<Option<&CompiledSchema>, CallError> {
        let compiled = self.compiled.get_or_init(|| {
            if self.schema.is_any() {
                return Ok(None);
            }
            let schema = self.schema.to_value().map_err(|error| error.to_string())?;
            Ok(Some(CompiledSchema::with_definitions(&schema, &self.shared)))
        });
        match compiled {
            Ok(schema) => Ok(schema.as_ref()),
            Err(error) => Err(CallError::execution(format!("a schema of the operation is not JSON: {error}"))),
        }
    }

    #[cfg(not(feature = "validate"))]
    fn violations(&self, value: &Value) -> Result<Vec<Violation>, CallError> {
        self.own_violations(value)
    }

    fn own_violations(&self, value: &Value) -> Result<Vec<Violation>, CallError> {
        let Some(schema) = self.compiled()? else { return Ok(Vec::new()) };
        let violations = schema.violations(value).into_iter();
        Ok(violations.map(|v| Violation { pointer: v.pointer, message: v.message }).collect())
    }

    #[cfg(feature = "validate")]
    fn violations(&self, value: &Value) -> Result<Vec<Violation>, CallError> {
        if self.schema.is_any() {
            return Ok(Vec::new());
        }
        let validator = self.validator.get_or_init(|| {
            let schema = self.schema.self_contained(&self.definitions).ok()?;
            let mut schema = canonical::canonical(schema);
            canonical::demand_less(&mut schema, self.other_side);
            jsonschema::options().with_draft(jsonschema::Draft::Draft202012).build(&schema).ok()
        });
        // A schema that the validator refuses, for a pattern of another dialect say, still has our own reading.
        let Some(validator) = validator else { return self.own_violations(value) };
        if validator.is_valid(value) {
            return Ok(Vec::new());
        }
        let violation = |error: jsonschema::ValidationError<'_>| Violation {
            pointer: error.instance_path().to_string(),
            message: error.masked().to_string(),
        };
        Ok(validator.iter_errors(value).map(violation).collect())
    }
}
