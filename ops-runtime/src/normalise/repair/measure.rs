//! What a typed reader accepts though its schema does not: such a value stays unchanged, and is not reported.

use serde_json::{Map, Value};

use super::{Fixer, Mode};
use crate::normalise::node::{ArrayRules, At, Kind, NUMBER, ObjectRules, Rest, Union};
use crate::normalise::tagged::Tagged;

/// What decides if a value is faulty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// The schema: everything that it forbids is a fault.
    Schema,
    /// The type that was generated from the schema. It looks at the kinds of values, and at what is absent. A value of the
    /// right kind is no fault if it breaks another rule, such as an enum, a bound or a length. Neither is `null` for an
    /// optional property, nor an object whose tag no variant has. A required property with a single possible value must have
    /// it. The schema decides which variant of a union a value is, and which default is filled in.
    Type,
}

impl<'a> Fixer<'_, 'a> {
    /// True if the type decides.
    #[inline]
    pub(in crate::normalise) fn is_by_type(&self) -> bool {
        self.measure == Measure::Type
    }

    /// Runs a function for which the schema decides.
    pub(super) fn by_schema<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.measure, Measure::Schema);
        let result = run(self);
        self.measure = outer;
        result
    }

    /// True if a type accepts a scalar that does not conform, because it has the right kind.
    pub(super) fn is_accepted(&self, at: At<'a>, value: &Value) -> bool {
        if !self.is_by_type() || value.is_array() || value.is_object() {
            return false;
        }
        match &at.node.kind {
            // An enum of numbers keeps any other number.
            Kind::Literals(values) if value.is_number() => values.types().has(NUMBER),
            _ => self.checker.types(at, 0).admits(value),
        }
    }

    /// True if a type keeps a whole object, because no variant of the union has its tag. An object without a tag is repaired
    /// unless values are made up, since a repair warns of the absent tag.
    pub(super) fn is_kept_whole(&self, at: At<'a>, union: &'a Union, tagged: &Tagged<'a>, value: &Value) -> bool {
        self.is_by_type()
            && match tagged {
                Tagged::Unknown | Tagged::Undescribed(_) => true,
                Tagged::No => {
                    self.checker.has_foreign_tag(at, union, value)
                        || self.mode == Mode::Normalise && self.checker.wrong_tag(at, union, value).is_some()
                }
                Tagged::Variant(_) | Tagged::Default(_) => false,
            }
    }

    /// True if an object has an allowed number of properties. Types do not count them.
    pub(super) fn is_counted(&self, rules: &ObjectRules, map: &Map<String, Value>) -> bool {
        self.is_by_type() || rules.counts(map)
    }

    /// True if the number of a list's items matters. Among types, only tuples count them. A list that may have more or fewer
    /// items than places is no tuple.
    pub(super) fn counts_items(&self, rules: &ArrayRules) -> bool {
        let places = rules.prefix.len() as u64;
        let is_tuple = places > 0
            && rules.min.is_none_or(|min| min >= places)
            && rules.max.is_none_or(|max| max <= places)
            && !matches!(rules.rest, Rest::Each(_));
        !self.is_by_type() || is_tuple
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::normalise::{CompiledSchema, Reading};

    /// A value, repaired for a type, and the places that are reported. Checks that the value's text is repaired in the same way.
    fn by_type(mode: Mode, schema: &Value, value: &Value) -> (Value, Vec<String>) {
        let schema = CompiledSchema::new(schema, Reading::Default);
        let text = value.to_string();
        let (repaired, text) = match mode {
            Mode::Repair => (schema.shaped(value.clone(), Measure::Type), schema.shaped_text(&text, Measure::Type)),
            _ => (schema.normalised(value.clone(), Measure::Type), schema.normalised_text(&text, Measure::Type)),
        };
        if let Some(text) = text {
            assert_eq!(serde_json::from_str::<Value>(&text.value).unwrap(), repaired.value);
            assert_eq!(text.repairs, repaired.repairs);
        }
        let places = repaired.repairs.into_iter().map(|repair| repair.pointer);
        (repaired.value, places.collect())
    }

    fn within(schema: &Value) -> Value {
        json!({ "type": "object", "properties": { "v": schema } })
    }

    fn variant(properties: Value, required: &str) -> Value {
        json!({ "type": "object", "properties": properties, "required": [required] })
    }

    #[test]
    fn what_a_type_accepts_stays_as_it_came() {
        let tagged = json!({ "oneOf": [
            variant(json!({ "k": { "const": "a" }, "n": { "type": "integer" } }), "k"),
            variant(json!({ "k": { "const": "b" } }), "k"),
        ] });
        let versions = json!({ "oneOf": [
            variant(json!({ "k": { "const": 1 }, "a": { "type": "string" } }), "k"),
            variant(json!({ "k": { "const": 2 }, "b": { "type": "string" } }), "k"),
        ] });
        let untagged = json!({ "oneOf": [
            variant(json!({ "n": { "type": "integer", "maximum": 5 } }), "n"),
            variant(json!({ "n": { "type": "integer", "maximum": 3 }, "m": { "type": "string" } }), "n"),
        ] });
        for (schema, value) in [
            (json!({ "enum": ["a", "b"] }), json!("z")),
            (json!({ "type": "integer", "enum": [1, 2] }), json!(7)),
            (json!({ "const": "a" }), json!("z")),
            (json!({ "type": "integer", "minimum": 1, "maximum": 9 }), json!(99)),
            (json!({ "type": "number", "multipleOf": 2 }), json!(3)),
            (json!({ "type": "string", "maxLength": 2 }), json!("abc")),
            (json!({ "type": "string", "pattern": "^a" }), json!("b")),
            (json!({ "type": "array", "maxItems": 1 }), json!([1, 2])),
            (json!({ "type": "array", "minItems": 3 }), json!([1])),
            (json!({ "type": "array", "uniqueItems": true }), json!([1, 1])),
            (json!({ "type": "object", "maxProperties": 1 }), json!({ "a": 1, "b": 2 })),
            (json!({ "type": "string" }), json!(null)),
            (json!({ "anyOf": [{ "type": "string", "maxLength": 1 }, { "type": "integer" }] }), json!("abc")),
            (json!({ "type": "array", "prefixItems": [{ "type": "string" }], "maxItems": 2 }), json!(["a", 1, 2])),
            (json!({ "type": "object", "required": ["n"] }), json!({ "a": 1 })),
            (tagged.clone(), json!({ "k": "z", "n": "1" })),
            (tagged.clone(), json!({ "k": 5, "n": "1", "x": true })),
            (tagged, json!({ "k": null, "n": "1" })),
            (versions, json!({ "k": 3, "a": 5, "x": true })),
            (untagged, json!({ "n": 9 })),
        ] {
            let value = json!({ "v": value });
            for mode in [Mode::Repair, Mode::Normalise] {
                assert_eq!(by_type(mode, &within(&schema), &value), (value.clone(), vec![]), "{mode:?} {schema}");
            }
        }
    }

    #[test]
    fn what_a_type_does_not_accept_is_repaired() {
        let whole = |n: bool| json!({ "n": n, "k": "z", "x": 1 });
        let both = json!({ "allOf": [
            variant(json!({ "n": { "type": "integer", "maximum": 5 } }), "n"),
            { "oneOf": [
                variant(json!({ "a": { "type": "string" } }), "a"),
                variant(json!({ "b": { "type": "string" } }), "b"),
            ] },
        ] });
        let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        let tagged = json!({ "oneOf": [
            variant(json!({ "k": { "const": "a" } }), "k"),
            variant(json!({ "k": { "const": "b" } }), "k"),
        ] });
        let beside = json!({ "allOf": [variant(json!({ "n": { "type": "boolean" } }), "n"), tagged.clone()] });
        let constant = variant(json!({ "c": { "const": "a" }, "n": { "type": "integer", "maximum": 9 } }), "c");
        let or_else = json!({ "oneOf": [
            { "type": "object", "required": ["c", "n"], "properties": { "c": { "const": "a" }, "n": { "type": "integer" } } },
            variant(json!({ "n": { "type": "integer", "maximum": 3 } }), "n"),
        ] });
        let pair = json!({ "type": "array", "prefixItems": [{ "type": "string" }], "maxItems": 1 });
        let sorted = json!({
            "type": "object",
            "properties": { "n": { "type": "boolean" }, "order": { "type": "string", "default": "ASC" } },
            "patternProperties": { "^ord": { "enum": ["asc", "desc"] } },
        });
        for (schema, value, repaired, made, place) in [
            (json!({ "type": "integer", "maximum": 9 }), json!("99"), json!(99), json!(0), "/v"),
            (json!({ "enum": ["1", "2"] }), json!(3), json!("3"), json!("1"), "/v"),
            (map, json!({ "a": null }), json!({}), json!({}), "/v/a"),
            (both, json!({ "n": 9, "a": 5 }), json!({ "n": 9, "a": "5" }), json!({ "n": 9, "a": "" }), "/v/a"),
            (
                constant,
                json!({ "c": "z", "n": 99 }),
                json!({ "c": "z", "n": 99 }),
                json!({ "c": "a", "n": 99 }),
                "/v/c",
            ),
            (or_else, json!({ "c": "z", "n": 5 }), json!({ "c": "z", "n": 5 }), json!({ "c": "a", "n": 5 }), "/v/c"),
            (beside.clone(), json!({ "n": "true", "k": "z", "x": 1 }), whole(true), whole(false), "/v/n"),
            (sorted, json!({ "n": "true" }), json!({ "n": true }), json!({ "n": false }), "/v/n"),
            (pair, json!(["a", "b"]), json!(["a", "b"]), json!(["a"]), "/v"),
        ] {
            for (mode, left) in [(Mode::Repair, repaired), (Mode::Normalise, made)] {
                let expected = (json!({ "v": left }), vec![place.to_owned()]);
                assert_eq!(by_type(mode, &within(&schema), &json!({ "v": value })), expected, "{mode:?} {schema}");
            }
        }
        // A described property may have any value, but a type requires it.
        let described = within(&variant(json!({ "n": {} }), "n"));
        let value = json!({ "v": {} });
        for mode in [Mode::Repair, Mode::Normalise] {
            assert_eq!(by_type(mode, &described, &value), (value.clone(), vec!["/v/n".to_owned()]), "{mode:?}");
        }
        // A cast makes up no tag beside other schemas, either.
        let (value, made) = (json!({ "v": { "n": 5 } }), json!({ "v": { "n": false } }));
        assert_eq!(by_type(Mode::Normalise, &within(&beside), &value), (made, vec!["/v/n".to_owned()]));
        // A repair warns of a tag that is absent. A cast does not make one up, since the type keeps the object.
        let value = json!({ "v": {} });
        assert_eq!(by_type(Mode::Repair, &within(&tagged), &value), (value.clone(), vec!["/v/k".to_owned()]));
        assert_eq!(by_type(Mode::Normalise, &within(&tagged), &value), (value, vec![]));
    }

    /// An object with a member `v`, whose schema refers to definitions.
    fn referring(schema: &Value, definitions: &Value) -> Value {
        json!({ "type": "object", "properties": { "v": schema }, "$defs": definitions })
    }

    #[test]
    fn a_repair_warns_of_an_absent_tag_that_is_not_described() {
        let tagged = json!({
            "oneOf": [{ "$ref": "#/$defs/A" }, { "$ref": "#/$defs/B" }],
            "discriminator": { "propertyName": "k" },
        });
        let beside = json!({ "allOf": [variant(json!({ "n": { "type": "boolean" } }), "n"), tagged] });
        let definitions = json!({
            "A": variant(json!({ "a": { "type": "string" } }), "k"),
            "B": variant(json!({ "b": { "type": "string" } }), "k"),
        });
        for (schema, value, repaired, told) in [
            (&tagged, json!({}), json!({}), vec!["/v/k"]),
            (&tagged, json!({ "a": 5 }), json!({ "a": "5" }), vec!["/v/a", "/v/k"]),
            (&beside, json!({ "n": true }), json!({ "n": true }), vec!["/v/k"]),
        ] {
            let (schema, value) = (referring(schema, &definitions), json!({ "v": value }));
            let told: Vec<String> = told.into_iter().map(str::to_owned).collect();
            assert_eq!(by_type(Mode::Repair, &schema, &value), (json!({ "v": repaired }), told), "{value}");
            assert_eq!(by_type(Mode::Normalise, &schema, &value), (value, vec![]));
        }
    }

    #[test]
    fn a_definition_with_one_value_is_an_enum_of_a_type() {
        let definitions = json!({ "C": { "type": "string", "enum": ["a"] } });
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let own = json!({ "description": "Of one kind.", (keyword): [{ "$ref": "#/$defs/C" }] });
            let schema = referring(&variant(json!({ "c": own }), "c"), &definitions);
            let value = json!({ "v": { "c": "z" } });
            for mode in [Mode::Repair, Mode::Normalise] {
                assert_eq!(by_type(mode, &schema, &value), (value.clone(), vec![]), "{mode:?} {keyword}");
            }
        }
    }
}
