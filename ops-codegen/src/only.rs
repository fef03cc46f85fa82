//! Leaves out what a crate does not name: operations, types, and the types of fields.
//!
//! The whole document is named first, so names do not depend on what else is used.

mod parts;

use std::borrow::Cow;
use std::collections::HashSet;

use ops_runtime::spec::{Diagnostic, OperationSpec};
use serde_json::{Value, json};

use self::parts::{Named, Parts};
use crate::lower::{Source, reached};
use crate::module::{Module, Operation};
use crate::types::{Shape, Type, Types};

/// The function that reads what was left out.
const OTHERS: &str = "other_operations";

/// True if an operation is named: by its type, its method or its errors. A server has all operations: if unnamed ones
/// were left out, the compiler would not report a missing method.
fn is_named(used: &HashSet<String>, module: &Module, operation: &Operation) -> bool {
    module.server.is_some()
        || used.contains(&operation.name)
        || module.methods.is_some() && used.contains(&operation.method)
        || operation.errors.as_ref().is_some_and(|errors| used.contains(&errors.name))
}

/// Every identifier of a module by which a crate can name a part of it.
pub(crate) fn names(module: &Module) -> HashSet<String> {
    let mut names = HashSet::from([OTHERS.to_owned()]);
    for operation in &module.operations {
        names.extend([operation.name.clone(), operation.method.clone()]);
        names.extend(operation.errors.iter().map(|errors| errors.name.clone()));
    }
    names.extend(module.webhooks.iter().map(|webhook| webhook.name.clone()));
    for item in &module.types.items {
        names.insert(item.name.clone());
        match &item.shape {
            Shape::Record(record) => names.extend(record.fields.iter().map(|field| field.ident.clone())),
            Shape::Tagged(tagged) => names.extend(tagged.variants.iter().map(|tagged| tagged.variant.ident.clone())),
            _ => {}
        }
    }
    names
}

/// Leaves out of a module what is not used.
///
/// A field keeps its type if the crate names the field or the type, if it has to be set, if it has a default or is a part
/// of one, or if it tells the variants of a union apart. Any other field holds any JSON, so that its type can be left out.
/// A variant of a tagged union that nothing names is read as the union's last variant, which keeps the object.
pub(crate) fn leave_out(
    module: &mut Module,
    used: &HashSet<String>,
    source: &Source,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let operations = std::mem::take(&mut module.operations);
    let (kept, others): (Vec<_>, Vec<_>) =
        operations.into_iter().partition(|operation| is_named(used, module, operation));
    module.operations = kept;
    module.webhooks.retain(|webhook| used.contains(&webhook.name));
    module.others = Some(others.into_iter().map(|operation| operation.spec).collect());
    let errors: HashSet<String> = module
        .operations
        .iter()
        .filter_map(|operation| operation.errors.as_ref())
        .map(|errors| errors.declared_as().to_owned())
        .collect();
    module.errors.retain(|enumeration| errors.contains(&enumeration.name));
    let named = module.types.items.iter().enumerate().filter(|(_, item)| used.contains(&item.name));
    let named = named.map(|(id, _)| Type::Named(id));
    let roots = module.operations.iter().flat_map(|operation| [&operation.input, &operation.output]);
    let bodies = module.errors.iter().flat_map(|errors| errors.variants.iter().map(|variant| &variant.body));
    let payloads = module.webhooks.iter().map(|webhook| &webhook.payload);
    let roots: Vec<Type> = roots.chain(bodies).chain(payloads).cloned().chain(named).collect();
    cut(&mut module.types, &roots, used);
    let kept = reached(&module.types, &roots);
    for (item, kept) in module.types.items.iter_mut().zip(&kept) {
        if !kept {
            item.shape = Shape::Pending;
        }
    }
    module.extra.retain(|type_| matches!(type_, Type::Named(id) if kept.get(*id) == Some(&true)));
    // A schema that is no JSON has been replaced by now.
    let schemas = module.operations.iter().flat_map(|operation| {
        let OperationSpec { input, output, errors, .. } = &operation.spec;
        [input, output].into_iter().chain(errors.iter().map(|error| &error.schema))
    });
    let payloads = module.webhooks.iter().map(|webhook| &webhook.spec.output);
    let schemas = schemas.chain(payloads);
    let mut schemas: Vec<Value> = schemas.filter_map(|schema| schema.to_value().ok()).map(Cow::into_owned).collect();
    let kept = module.types.items.iter().filter(|item| !matches!(item.shape, Shape::Pending));
    let definitions = kept.filter(|item| item.pointer.starts_with("/$defs/"));
    schemas.extend(definitions.map(|item| json!({ "$ref": format!("#{}", item.pointer) })));
    let reached = source.reached(&schemas);
    module.definitions.retain(|(name, _)| reached.contains(name.as_str()));
    let has_others = module.others.as_ref().is_some_and(|others| !others.is_empty());
    if has_others && is_empty(module) && !used.contains(OTHERS) {
        let message = "the crate's sources name nothing of this document, so that `only_used` leaves out all of it";
        let help = "they are the files of Rust below `src`, `tests`, `examples` and `benches`";
        diagnostics.push(Diagnostic::warning("", message).with_help(help));
    }
}

/// Replaces the types of unused fields by any JSON, and removes unused variants of tagged unions.
fn cut(types: &mut Types, roots: &[Type], used: &HashSet<String>) {
    let named = Named { used, type_names: types.items.iter().map(|item| item.name.clone()).collect() };
    let parts = Parts::of(types, roots, &named);
    for (id, item) in types.items.iter_mut().enumerate() {
        match &mut item.shape {
            Shape::Record(record) => {
                for (at, field) in record.fields.iter_mut().enumerate() {
                    if !parts.has_field((id, at), item.sent, field, &named) {
                        field.type_ = Type::Value;
                    }
                }
            }
            Shape::Tagged(tagged) => tagged.variants.retain(|tagged| parts.has_variant(id, tagged, &named)),
            _ => {}
        }
    }
}

/// True if a module has nothing that a crate could name.
fn is_empty(module: &Module) -> bool {
    let has_types = module.types.items.iter().any(|item| !matches!(item.shape, Shape::Pending));
    module.operations.is_empty() && module.webhooks.is_empty() && !has_types
}

#[cfg(test)]
mod tests {

    use ops_runtime::binding::{HttpBinding, HttpBody};
    use ops_runtime::spec::{Api, Definition, Definitions, OperationSpec, Schema};
    use serde_json::{Value, json};

    use crate::Generator;

    #[test]
    fn a_field_whose_type_is_named_has_it() {
        let object = r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/Tag"}}}"##;
        let definitions = Definitions::new(vec![Definition::new("Pet", object), Definition::new("Tag", object)]);
        let input = Schema::text(r##"{"type":"object","properties":{"body":{"$ref":"#/$defs/Pet"}}}"##);
        let http = HttpBinding::new("POST", "/pets").with_bodies(const { &[HttpBody::new("application/json")] });
        let add = OperationSpec::mutation("zoo.add").with_input(input).with_http(http);
        let used = ["Add", "Pet"].map(str::to_owned).into();
        let source = Generator::new().with_only(used).generate(&Api::new(definitions, vec![add])).source;
        assert!(source.contains("pub body: Option<Pet>"), "{source}");
        assert!(source.contains("impl From<super::Pet> for super::AddInput"), "{source}");
        assert!(source.contains("pub a: Option<ops::Value>"), "{source}");
    }

    #[test]
    fn a_server_has_all_operations() {
        let operations = ["zoo.show", "zoo.feed"].map(OperationSpec::query).to_vec();
        let api = Api::new(Definitions::EMPTY, operations);
        let source = |generator: Generator| generator.with_only(["Show".to_owned()].into()).generate(&api).source;
        assert!(!source(Generator::new()).contains("struct Feed;"));
        assert!(source(Generator::new().with_server()).contains("fn feed(&self, context: "));
    }

    #[test]
    fn what_a_default_is_made_of_is_there() {
        let mode = r#"{"type":"string","enum":["fast","slow"]}"#;
        let settings =
            r##"{"type":"object","properties":{"mode":{"$ref":"#/$defs/Mode"},"other":{"$ref":"#/$defs/Mode"}}}"##;
        let shape = |kind: &str, size: &str| {
            let own = json!({ "kind": { "const": kind }, (size): { "type": "integer" } });
            Definition::from_value(
                kind.to_owned(),
                json!({ "type": "object", "required": ["kind"], "properties": own }),
            )
        };
        let any = json!({ "oneOf": [{ "$ref": "#/$defs/Circle" }, { "$ref": "#/$defs/Square" }] });
        let job = json!({ "type": "object", "properties": {
            "settings": { "$ref": "#/$defs/Settings", "default": { "mode": "fast" } },
            "shape": { "$ref": "#/$defs/Shape", "default": { "kind": "Square", "side": 1 } },
        } });
        let definitions = Definitions::new(vec![
            shape("Circle", "radius"),
            Definition::from_value("Job".to_owned(), job),
            Definition::new("Mode", mode),
            Definition::new("Settings", settings),
            Definition::from_value("Shape".to_owned(), any),
            shape("Square", "side"),
        ]);
        let show = OperationSpec::query("zoo.show").with_output(Schema::text(r##"{"$ref":"#/$defs/Job"}"##));
        let api = Api::new(definitions, vec![show]);
        let source = Generator::new().with_only(["Show".to_owned()].into()).generate(&api).source;
        for (wanted, is_there) in [
            ("pub mode: Option<Mode>", true),
            ("pub other: Option<ops::Value>", true),
            ("pub enum Mode {", true),
            ("super::Shape::Square(super::Square {", true),
            ("Circle(Circle)", true),
        ] {
            assert_eq!(source.contains(wanted), is_there, "{wanted}: {source}");
        }
    }

    /// The fields of a module if the crate names only the operation `Show`, which has the output `output`. A second operation,
    /// with the output `other`, is left out.
    fn fields(definitions: &Definitions, output: &Value, other: &Value) -> Vec<String> {
        let show = OperationSpec::query("zoo.show").with_output(Schema::from(output.clone()));
        let list = OperationSpec::query("zoo.list").with_output(Schema::from(other.clone()));
        let api = Api::new(definitions.clone(), vec![show, list]);
        let source = Generator::new().with_only(["Show".to_owned()].into()).generate(&api).source;
        let lines = source.split("mod impls").next().unwrap_or_default().lines();
        let fields = lines.filter_map(|line| line.strip_prefix("    pub ")?.strip_suffix(','));
        let mut fields: Vec<String> = fields.map(str::to_owned).collect();
        fields.sort_unstable();
        fields
    }

    /// Variants are told apart by the properties that both have, and by everything in these properties.
    #[test]
    fn what_tells_variants_apart_is_there() {
        let to = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
        let record = |properties: &[(&str, Value)], required: &[&str]| {
            let properties: serde_json::Map<String, Value> =
                properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
            json!({ "type": "object", "properties": properties, "required": required })
        };
        let list = json!({ "type": "array", "items": to("Point") });
        let any = |names: &[&str]| json!({ "oneOf": names.iter().map(|name| to(name)).collect::<Vec<_>>() });
        let definitions = [
            ("Axis", json!({ "type": "string", "enum": ["x", "y"] })),
            ("Left", record(&[("left", to("Point"))], &["left"])),
            ("Point", record(&[("axis", to("Axis"))], &[])),
            ("Reading", any(&["Single", "Series"])),
            ("Right", record(&[("right", to("Point"))], &["right"])),
            ("Series", record(&[("points", list.clone())], &["points"])),
            ("Side", any(&["Left", "Right"])),
            ("Single", record(&[("points", to("Point")), ("note", to("Axis"))], &["points"])),
            ("Text", json!({ "oneOf": [{ "type": "string" }, to("Single")] })),
            ("Turns", json!({ "oneOf": [to("Left"), { "type": "object", "additionalProperties": list }] })),
        ];
        let definitions = definitions.map(|(name, schema)| Definition::from_value(name.to_owned(), schema));
        let definitions = Definitions::new(definitions.to_vec());
        for (output, expected) in [
            (
                to("Reading"),
                &["points: Point", "points: Vec<Point>", "axis: Option<Axis>", "note: Option<ops::Value>"][..],
            ),
            // Required names, or the kind of the value, tell these variants apart.
            (to("Side"), &["left: ops::Value", "right: ops::Value"]),
            (to("Text"), &["points: ops::Value", "note: Option<ops::Value>"]),
            // A map may have a property of any name, so also `left`.
            (to("Turns"), &["left: Point", "axis: Option<Axis>"]),
            // `Reading` is a union only in the operation that is left out.
            (to("Single"), &["points: ops::Value", "note: Option<ops::Value>"]),
        ] {
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(fields(&definitions, &output, &to("Reading")), expected, "{output}");
        }
    }

    /// A default that has the property of a variant adds only the types in the default.
    #[test]
    fn a_default_leaves_out_nothing_that_tells_variants_apart() {
        let to = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
        let record = |name: &str, schema: Value| json!({ "type": "object", "properties": { name: schema } });
        let base = json!({ "$ref": "#/$defs/Single", "default": { "points": {} } });
        let definitions = [
            ("Config", record("base", base)),
            ("Pair", record("left", json!({ "type": "integer" }))),
            ("Point", record("x", to("Pair"))),
            ("Reading", json!({ "oneOf": [to("Single"), to("Series")] })),
            ("Series", record("points", to("Wide"))),
            ("Single", record("points", to("Point"))),
            ("Wide", record("x", json!({ "type": "array", "items": to("Pair") }))),
        ];
        let definitions = definitions.map(|(name, schema)| Definition::from_value(name.to_owned(), schema));
        let found = fields(&Definitions::new(definitions.to_vec()), &to("Reading"), &to("Config"));
        let points = ["points: Option<Point>", "points: Option<Wide>"];
        assert_eq!(found, ["left: Option<i64>", points[0], points[1], "x: Option<Pair>", "x: Option<Vec<Pair>>"]);
    }

    #[test]
    fn of_many_variants_only_what_tells_them_apart_is_there() {
        let mut definitions = vec![Definition::new("Tag", r#"{"type":"object","properties":{"a":{}}}"#)];
        let names: Vec<String> = (0..120).map(|number| format!("Variant{number}")).collect();
        for name in &names {
            let own = (0..50).map(|at| (format!("{name}_{at}"), json!({ "$ref": "#/$defs/Tag" })));
            let shared = (0..50).map(|at| (format!("shared_{at}"), json!({ "type": "string" })));
            let properties: serde_json::Map<String, Value> = own.chain(shared).collect();
            let schema = json!({ "type": "object", "properties": properties });
            definitions.push(Definition::from_value(name.clone(), schema));
        }
        let unions = names.iter().take(12).map(|left_out| {
            let others = names.iter().filter(|name| *name != left_out);
            json!({ "oneOf": others.map(|name| json!({ "$ref": format!("#/$defs/{name}") })).collect::<Vec<_>>() })
        });
        let output =
            json!({ "type": "array", "prefixItems": unions.collect::<Vec<_>>(), "minItems": 12, "items": false });
        let definitions = Definitions::new(definitions);
        let show = OperationSpec::query("zoo.show").with_output(Schema::from(output.clone()));
        let whole = Generator::new().generate(&Api::new(definitions.clone(), vec![show]));
        let found = fields(&definitions, &output, &json!(true));
        assert!(whole.source.contains("Option<Tag>"), "{}", whole.source);
        // All that the variants share is text, so no other field needs its type.
        let count = |type_: &str| found.iter().filter(|field| field.ends_with(type_)).count();
        assert_eq!((count(": Option<ops::Value>"), count(": Option<String>")), (6_000, 6_000));
    }

    /// Comparing them all would take too long.
    #[test]
    fn of_too_many_variants_everything_is_there() {
        let names: Vec<String> = (0..200).map(|number| format!("Variant{number}")).collect();
        let tag = Definition::new("Tag", r#"{"type":"object","properties":{"a":{}}}"#);
        let variants = names.iter().map(|name| {
            let properties = json!({ "shared": { "type": "string" }, name: { "$ref": "#/$defs/Tag" } });
            Definition::from_value(name.clone(), json!({ "type": "object", "properties": properties }))
        });
        let definitions = Definitions::new([tag].into_iter().chain(variants).collect());
        for (count, type_) in [(2, ": Option<ops::Value>"), (12, ": Option<Tag>")] {
            let unions = names.iter().take(count).map(|left_out| {
                let others = names.iter().filter(|name| *name != left_out);
                json!({ "oneOf": others.map(|name| json!({ "$ref": format!("#/$defs/{name}") })).collect::<Vec<_>>() })
            });
            let unions: Vec<Value> = unions.collect();
            let output = json!({ "type": "array", "prefixItems": unions, "minItems": count, "items": false });
            let found = fields(&definitions, &output, &json!(true));
            let own = found.iter().filter(|field| field.starts_with("variant") && field.ends_with(type_)).count();
            assert_eq!(own, names.len(), "{count}: {found:?}");
        }
    }

    /// Without its variants, a tagged union would declare fewer properties of an object, and accept any object.
    #[test]
    fn a_tagged_union_beside_what_is_like_it_has_its_variants() {
        let kind = |kind: Value| json!({ "type": "object", "required": ["kind"], "properties": { "kind": kind } });
        let to = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
        let pet = json!({ "oneOf": [to("Cat"), to("Dog")], "discriminator": { "propertyName": "kind" } });
        let definitions = [
            ("Cat", kind(json!({ "const": "Cat" }))),
            ("Dog", kind(json!({ "const": "Dog" }))),
            ("Pet", pet),
            ("Rock", kind(json!({ "type": "string" }))),
            ("Text", json!({ "oneOf": [to("Pet"), { "type": "string" }] })),
            ("Thing", json!({ "oneOf": [to("Pet"), to("Rock")] })),
        ];
        let definitions = definitions.map(|(name, schema)| Definition::from_value(name.to_owned(), schema));
        for (output, has_variants) in [("Thing", true), ("Text", false)] {
            let show = OperationSpec::query("zoo.show").with_output(Schema::from(to(output)));
            let api = Api::new(Definitions::new(definitions.to_vec()), vec![show]);
            let source = Generator::new().with_only(["Show".to_owned()].into()).generate(&api).source;
            for variant in ["    Cat(Cat),", "    Dog(Dog),"] {
                assert_eq!(source.contains(variant), has_variants, "{output}: {variant}: {source}");
            }
        }
    }

    #[test]
    fn a_field_of_any_json_takes_a_derive_with_it() {
        let object = r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/Tag"}}}"##;
        let tag = r#"{"type":"string","enum":["x"]}"#;
        let definitions = Definitions::new(vec![Definition::new("Pet", object), Definition::new("Tag", tag)]);
        let show = OperationSpec::query("zoo.show").with_output(Schema::text(r##"{"$ref":"#/$defs/Pet"}"##));
        let api = Api::new(definitions, vec![show]);
        for (used, has) in [(&["Show", "a"][..], true), (&["Show"], false)] {
            let used = used.iter().map(|name| (*name).to_owned()).collect();
            let generator = Generator::new().with_derive("*", "PartialOrd").unwrap();
            let generated = generator.with_only(used).generate(&api);
            assert_eq!(generated.source.contains("PartialOrd"), has, "{}", generated.source);
            let told =
                generated.diagnostics.iter().any(|told| told.message.contains("`Pet` can't derive `PartialOrd`"));
            assert_eq!(told, !has, "{:?}", generated.diagnostics);
        }
    }

    #[test]
    fn the_file_of_others_is_called_like_the_module() {
        let api = Api::new(Definitions::EMPTY, vec![OperationSpec::query("zoo.show")]);
        for (module, file) in [(None, "zoo.others.json"), (Some("pets"), "pets.others.json")] {
            let (generated, _) = Generator::new().with_only(["none".to_owned()].into()).run(&api, None, module);
            assert!(generated.source.contains(file), "{}", generated.source);
        }
    }

    #[test]
    fn schemas_without_operations_are_there_if_they_are_named() {
        let object = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
        let names = ["Event", "Lonely", "Pet"];
        let definitions = Definitions::new(names.map(|name| Definition::new(name, object)).to_vec());
        let show = OperationSpec::query("zoo.show").with_output(Schema::text(r##"{"$ref":"#/$defs/Pet"}"##));
        let api = Api::new(definitions, vec![show]);
        for (used, expected) in
            [(&["Show", "Event"][..], &["Event", "Pet"][..]), (&["Lonely"], &["Lonely"]), (&["none"], &[])]
        {
            let used = used.iter().map(|name| (*name).to_owned()).collect();
            let generated = Generator::new().with_schema("*").with_only(used).generate(&api);
            let found: Vec<&str> =
                names.into_iter().filter(|name| generated.source.contains(&format!("pub struct {name} "))).collect();
            assert_eq!(found, expected, "{}", generated.source);
            // A document of which nothing is used is most likely one whose user is not found.
            let told = generated.diagnostics.iter().filter(|told| told.message.contains("`only_used`")).count();
            assert_eq!(told, usize::from(expected.is_empty()), "{:?}", generated.diagnostics);
            // What is there without its operation has no use for the table of definitions.
            assert_eq!(generated.source.contains("DEFINITIONS"), found.contains(&"Pet"));
        }
    }
}
