//! The compatible reading: the conversion table of the original, with its blind spots.

use serde_json::{Map, Value};

use super::definitions::CompiledDefinitions;
use super::draft::{count, most};
use super::equal::copy;
use super::node::{
    ARRAY, Additional, ArrayRules, INTEGER, Intersect, Kind, NUMBER, Node, OBJECT, ObjectRules, Property, Rest, STRING,
    Target, Typed, Types, Union, Unit,
};
use super::number::{Num, NumberRules};
use super::pattern::Pattern;
use super::pattern::size::Allowance;
use super::text::{Format, Matcher, StringRules, registered};

const MAX_SCHEMA_DEPTH: usize = 100;

/// Compiles a schema; references lead to enclosing `$id`s, and then to the table.
pub(super) fn compile(schema: &Value, definitions: &CompiledDefinitions, patterns: &Allowance) -> Unit {
    let mut conversion = Conversion { definitions, patterns, ids: Vec::new(), locals: Vec::new(), depth: 0 };
    let root = conversion.schema(schema, None);
    let locals = conversion.locals.into_iter().map(|node| node.unwrap_or_else(Node::any)).collect();
    Unit { root, locals }
}

/// The target of a reference to nowhere, whose every use throws in the original.
pub(super) fn missing() -> Unit {
    Unit { root: Node::new(Kind::Ref(Target::Missing), None), locals: Box::default() }
}

/// The keywords of a schema, then those of the schemas that it stands for (a combination of one is that one).
#[derive(Clone, Copy)]
struct Keywords<'k, 's> {
    own: &'s Map<String, Value>,
    outer: Option<&'k Keywords<'k, 's>>,
}

impl<'s> Keywords<'_, 's> {
    fn get(&self, keyword: &str) -> Option<&'s Value> {
        self.own.get(keyword).or_else(|| self.outer?.get(keyword))
    }

    fn number(&self, keyword: &str) -> Option<Num> {
        match self.get(keyword)? {
            Value::Bool(flag) => Some(Num::Bool(*flag)),
            value => Num::from_value(value),
        }
    }

    fn length(&self, keyword: &str) -> Option<i64> {
        self.get(keyword)?.as_number().map(|number| number.as_i64().unwrap_or_else(|| Num::of(number).as_f64() as i64))
    }

    fn count(&self, keyword: &str) -> Option<u64> {
        count(self.own, keyword).or_else(|| self.outer?.count(keyword))
    }

    fn most(&self, keyword: &str) -> Option<u64> {
        most(self.own, keyword).or_else(|| self.outer?.most(keyword))
    }
}

struct Conversion<'s> {
    definitions: &'s CompiledDefinitions,
    patterns: &'s Allowance,
    /// The `$id`s met on the way down.
    ids: Vec<(&'s str, u32)>,
    locals: Vec<Option<Node>>,
    depth: usize,
}

impl<'s> Conversion<'s> {
    fn schema(&mut self, schema: &'s Value, outer: Option<&Keywords<'_, 's>>) -> Node {
        self.depth += 1;
        let node = match schema {
            Value::Object(own) if self.depth <= MAX_SCHEMA_DEPTH => self.identified(own, outer),
            _ => Node::new(Kind::Any, outer.and_then(|outer| outer.get("default")).and_then(copy)),
        };
        self.depth -= 1;
        node
    }

    /// The node, reachable by its `$id` if it has one.
    fn identified(&mut self, own: &'s Map<String, Value>, outer: Option<&Keywords<'_, 's>>) -> Node {
        // The few kinds that lose their annotations are no targets either, but `$id` does not occur there.
        let (Some(id), Ok(local)) = (own.get("$id").and_then(Value::as_str), u32::try_from(self.locals.len())) else {
            return self.convert(own, outer);
        };
        self.locals.push(None);
        self.ids.push((id, local));
        let node = self.convert(own, outer);
        self.ids.pop();
        if let Some(slot) = self.locals.get_mut(local as usize) {
            *slot = Some(node);
        }
        Node::new(Kind::Ref(Target::Local(local)), None)
    }

    fn convert(&mut self, own: &'s Map<String, Value>, outer: Option<&Keywords<'_, 's>>) -> Node {
        let keywords = Keywords { own, outer };
        let default = || keywords.get("default").and_then(copy);
        let bare = |kind| Node::new(kind, outer.and_then(|outer| outer.get("default")).and_then(copy));
        let list = |keyword| own.get(keyword).and_then(Value::as_array).map(Vec::as_slice);
        let named = own.get("type").and_then(Value::as_str);
        for keyword in ["allOf", "anyOf", "oneOf"] {
            return match list(keyword) {
                None => continue,
                Some([]) => Node::new(Kind::Never, default()),
                Some([one]) => self.schema(one, Some(&keywords)),
                Some(many) => {
                    let nodes = many.iter().map(|member| self.schema(member, None)).collect();
                    let sealed = keywords.get("unevaluatedProperties") == Some(&Value::Bool(false));
                    Node::new(
                        if keyword == "allOf" {
                            Kind::Intersect(Box::new(Intersect { members: nodes, sealed }))
                        } else {
                            Kind::Union(Box::new(Union::new(nodes)))
                        },
                        default(),
                    )
                }
            };
        }
        if let Some(values) = list("enum")
            && !values.iter().any(|value| value.is_array() || value.is_object())
        {
            return bare(if values.is_empty() {
                Kind::Never
            } else {
                Kind::Literals(values.iter().cloned().collect())
            });
        }
        match (named, own.get("properties"), own.get("items")) {
            (Some("object"), Some(Value::Object(properties)), _) if listed(own.get("required")) => {
                let object = self.object(keywords, properties);
                return Node::new(typed(OBJECT, |typed| typed.object = Some(object)), default());
            }
            (Some("array"), _, Some(items @ (Value::Array(_) | Value::Object(_)))) => {
                let array = self.array(keywords, items);
                return Node::new(typed(ARRAY, |typed| typed.array = Some(array)), default());
            }
            _ => {}
        }
        if let Some(value) = own.get("const") {
            return Node::new(Kind::Literals(copy(value).into_iter().collect()), default());
        }
        if let Some(reference) = own.get("$ref").and_then(Value::as_str) {
            return bare(Kind::Ref(self.target(reference)));
        }
        let Some(types) = named.and_then(Types::named) else { return Node::new(Kind::Any, default()) };
        let kind = match named {
            Some("number") => typed(NUMBER, |typed| typed.number = Some(numbers(keywords))),
            Some("integer") => typed(INTEGER, |typed| typed.number = Some(numbers(keywords))),
            Some("string") => typed(STRING, |typed| typed.string = Some(strings(keywords, self.patterns))),
            Some("boolean" | "null") => Kind::Plain(types),
            _ => Kind::Any,
        };
        Node::new(kind, default())
    }

    fn target(&self, reference: &str) -> Target {
        if let Some((_, local)) = self.ids.iter().find(|(id, _)| *id == reference) {
            return Target::Local(*local);
        }
        // The original has its references replaced before it converts.
        let key =
            ["#/$defs/", "#/definitions/", "#/components/schemas/"].iter().find_map(|at| reference.strip_prefix(at));
        match key.filter(|_| !self.definitions.is_empty()).and_then(|key| self.definitions.id(key)) {
            Some(id) => Target::Shared(id),
            None => Target::Missing,
        }
    }

    fn object(&mut self, keywords: Keywords<'_, 's>, properties: &'s Map<String, Value>) -> ObjectRules {
        let names = |value: Option<&'s Value>| -> Vec<&'s str> {
            value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
        };
        let listed = |required: &[&str]| required.iter().filter(|name| properties.contains_key(**name)).count();
        // `required` is computed from the listed properties; if that gives nothing, it stays as written.
        let mut required = names(keywords.own.get("required"));
        if listed(&required) == 0 {
            required = names(keywords.get("required"));
        }
        let known = listed(&required);
        let ghosts: Vec<Box<str>> =
            if known == 0 { required.iter().map(|name| (*name).into()).collect() } else { Vec::new() };
        let additional = match (keywords.own.get("additionalProperties"), keywords.get("additionalProperties")) {
            (Some(schema @ (Value::Object(_) | Value::Array(_))), _) => Additional::Each(self.schema(schema, None)),
            // Only an object's own schema is converted.
            (None, Some(Value::Object(_) | Value::Array(_))) => Additional::Broken,
            (_, Some(Value::Bool(false))) => Additional::False,
            (_, Some(Value::Bool(true))) => Additional::True,
            _ => Additional::Unspecified,
        };
        let declares = !properties.is_empty();
        let nodes = properties.iter().map(|(name, schema)| Property {
            name: name.as_str().into(),
            node: self.schema(schema, None),
            required: required.contains(&name.as_str()),
            is_conditional: false,
            is_write_only: false,
            is_undescribed: false,
        });
        ObjectRules {
            properties: nodes.collect(),
            declares,
            keeps_undeclared: match additional {
                Additional::True | Additional::Each(_) | Additional::Broken => true,
                Additional::Unspecified => !declares,
                Additional::False => false,
            },
            counts_keys: known.max(ghosts.len()) == properties.len(),
            additional,
            ghosts,
            min: keywords.count("minProperties"),
            max: keywords.most("maxProperties"),
            ..ObjectRules::default()
        }
        .indexed()
    }

    fn array(&mut self, keywords: Keywords<'_, 's>, items: &'s Value) -> ArrayRules {
        match items {
            Value::Array(items) => ArrayRules {
                prefix: items.iter().map(|item| self.schema(item, None)).collect(),
                exact: true,
                ..ArrayRules::default()
            },
            items => ArrayRules {
                rest: Rest::Each(self.schema(items, None)),
                min: keywords.count("minItems"),
                max: keywords.most("maxItems"),
                unique: keywords.get("uniqueItems") == Some(&Value::Bool(true)),
                ..ArrayRules::default()
            },
        }
    }
}

/// True if `required` is absent or a list of names.
fn listed(required: Option<&Value>) -> bool {
    required.is_none_or(|names| names.as_array().is_some_and(|names| names.iter().all(Value::is_string)))
}

fn typed(bits: u8, fill: impl FnOnce(&mut Typed)) -> Kind {
    let mut typed = Typed { types: Types::one(bits), number: None, string: None, array: None, object: None };
    fill(&mut typed);
    Kind::Typed(Box::new(typed))
}

fn numbers(keywords: Keywords<'_, '_>) -> NumberRules {
    NumberRules {
        minimum: keywords.number("minimum"),
        maximum: keywords.number("maximum"),
        above: keywords.number("exclusiveMinimum"),
        below: keywords.number("exclusiveMaximum"),
        multiple_of: keywords.number("multipleOf").into_iter().collect(),
        exact: true,
    }
}

fn strings(keywords: Keywords<'_, '_>, allowance: &Allowance) -> StringRules {
    let pattern = |source| {
        let pattern = Pattern::new(source, true);
        // What the original would make of it is not told.
        _ = pattern.admit(allowance);
        pattern
    };
    let text = |keyword| keywords.get(keyword).and_then(Value::as_str);
    StringRules {
        min: keywords.length("minLength"),
        max: keywords.length("maxLength"),
        patterns: text("pattern").map(pattern).into_iter().collect(),
        format: text("format").map(|name| Format {
            name: name.into(),
            matcher: registered(name).map_or(Matcher::Unknown, Matcher::Known),
        }),
        utf16: true,
        ..StringRules::default()
    }
}
