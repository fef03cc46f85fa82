//! What can be said only when all types are known: cycles, tags, directions, defaults.

use ops_runtime::Diagnostic;
use serde_json::Value;

use super::depth::limit;
use super::order::{order, reached, settle};
use super::recursion::{groups, insert_pointers, on_cycle};
use super::share::{name_unions, share};
use crate::types::{Default, Field, Literal, Shape, Type, Types};

/// The types that the operations name, in the order of the operations.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    pub(crate) operations: Vec<Root>,
}

/// The types that one operation names.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) input: Type,
    pub(crate) output: Type,
    pub(crate) errors: Vec<Type>,
}

impl Roots {
    pub(crate) fn types_mut(&mut self) -> impl Iterator<Item = &mut Type> {
        self.operations.iter_mut().flat_map(|root| {
            let Root { input, output, errors } = root;
            [input, output].into_iter().chain(errors)
        })
    }
}

/// Brings the types to the form that is rendered.
pub(crate) fn finish(types: &mut Types, roots: &mut Roots, diagnostics: &mut Vec<Diagnostic>) {
    settle(types);
    break_aliases(types, diagnostics);
    break_unions(types, diagnostics);
    untag(types);
    loosen(types, roots);
    take_constants(types);
    order(types, roots);
    share(types, roots);
    name_unions(types);
    insert_pointers(types);
    limit(types, roots, diagnostics);
    order(types, roots);
    fit_defaults(types, diagnostics);
}

/// An alias cannot name itself: a list or a map becomes a type of its own, anything else any JSON.
fn break_aliases(types: &mut Types, diagnostics: &mut Vec<Diagnostic>) {
    loop {
        let alias = |id: &usize| matches!(types.get(*id).map(|item| &item.shape), Some(Shape::Alias(_)));
        let mut edges: Vec<Vec<usize>> = Vec::new();
        for item in &types.items {
            let mut named = Vec::new();
            if let Shape::Alias(type_) = &item.shape {
                type_.named(&mut named);
                named.retain(alias);
            }
            edges.push(named);
        }
        let groups = groups(&edges);
        let bad = |id: usize, edges: &[Vec<usize>]| {
            edges.get(id).is_some_and(|targets| targets.iter().any(|to| on_cycle(&groups, edges, id, *to)))
        };
        let is_open = |shape: &Shape| matches!(shape, Shape::Alias(Type::Map(_) | Type::List(_)));
        let cyclic: Vec<usize> = (0..types.items.len()).filter(|id| bad(*id, &edges)).collect();
        if cyclic.is_empty() {
            return;
        }
        let open = cyclic.iter().any(|id| types.get(*id).is_some_and(|item| is_open(&item.shape)));
        for id in cyclic {
            let Some(item) = types.items.get_mut(id) else { continue };
            if !open {
                let message = "the definition refers to nothing but itself";
                diagnostics.push(Diagnostic::warning(&item.pointer, message).with_help("typed as any JSON"));
                item.shape = Shape::Alias(Type::Value);
            } else if let Shape::Alias(type_ @ (Type::Map(_) | Type::List(_))) = &mut item.shape {
                item.shape = Shape::Newtype(std::mem::replace(type_, Type::Value));
            }
        }
    }
}

/// A union that is a variant of itself would be read without end.
fn break_unions(types: &mut Types, diagnostics: &mut Vec<Diagnostic>) {
    let mut edges: Vec<Vec<usize>> = Vec::new();
    for item in &mut types.items {
        let transparent = matches!(item.shape, Shape::Union(_) | Shape::Tagged(_) | Shape::Alias(_));
        let held = item.shape.types_mut().into_iter().filter(|_| transparent).flat_map(direct);
        edges.push(held.collect());
    }
    let groups = groups(&edges);
    for (id, item) in types.items.iter_mut().enumerate() {
        let leads_back = |type_: &mut Type| direct(type_).iter().any(|to| on_cycle(&groups, &edges, id, *to));
        let before = item.shape.types().len();
        match &mut item.shape {
            Shape::Union(variants) => variants.retain_mut(|variant| !leads_back(&mut variant.type_)),
            Shape::Tagged(tagged) => tagged.variants.retain_mut(|v| !leads_back(&mut v.variant.type_)),
            _ => continue,
        }
        if item.shape.types().len() < before {
            let message = "the union is a variant of itself";
            diagnostics.push(Diagnostic::note(&item.pointer, message).with_help("the variant is left out"));
        }
        if item.shape.types().is_empty() {
            item.shape = Shape::Alias(Type::Value);
        }
    }
}

/// The named types that a value of the type is itself.
fn direct(type_: &mut Type) -> Vec<usize> {
    match type_ {
        Type::Named(id) => vec![*id],
        Type::Option(inner) => direct(inner),
        _ => Vec::new(),
    }
}

/// Only objects carry a tag: a union of anything else is told apart by shape.
fn untag(types: &mut Types) {
    loop {
        let record = |type_: &Type| match types.resolve(type_) {
            Type::Map(_) | Type::Value => true,
            Type::Named(id) => {
                matches!(types.get(*id).map(|item| &item.shape), Some(Shape::Record(_) | Shape::Tagged(_)))
            }
            _ => false,
        };
        let wrong = |item: &crate::types::Item| match &item.shape {
            Shape::Tagged(tagged) => !tagged.variants.iter().all(|v| record(&v.variant.type_)),
            _ => false,
        };
        let Some(id) = types.items.iter().position(wrong) else { return };
        if let Some(item) = types.items.get_mut(id) {
            let shape = std::mem::replace(&mut item.shape, Shape::Pending);
            if let Shape::Tagged(tagged) = shape {
                item.shape = Shape::Union(tagged.variants.into_iter().map(|v| v.variant).collect());
            }
        }
    }
}

/// What only answers hold cannot be demanded of a request, nor the other way round.
fn loosen(types: &mut Types, roots: &Roots) {
    let sent = reached(types, roots.operations.iter().map(|root| &root.input));
    let received = reached(types, roots.operations.iter().flat_map(|root| root.errors.iter().chain([&root.output])));
    for (id, item) in types.items.iter_mut().enumerate() {
        if let Shape::Record(record) = &mut item.shape {
            for field in &mut record.fields {
                if field.read_only && sent.get(id) == Some(&true) || field.write_only && received.get(id) == Some(&true)
                {
                    field.required = false;
                }
            }
        }
    }
}

/// A required property that can have one value only is no field: there is nothing to set and nothing to learn.
fn take_constants(types: &mut Types) {
    let only = |types: &Types, field: &Field| -> Option<Value> {
        let Type::Named(id) = &field.type_ else { return None };
        let item = types.get(*id)?;
        // A definition has a name that the document's authors chose to be seen.
        let is_definition = item.pointer.strip_prefix("/$defs/").is_some_and(|name| !name.contains('/'));
        match &item.shape {
            Shape::Names(constants) | Shape::Values(constants) if field.required && !is_definition => {
                match constants.as_slice() {
                    [one] if matches!(&field.default, Default::Raw(other) if *other != one.value) => None,
                    [one] => Some(one.value.clone()),
                    _ => None,
                }
            }
            _ => None,
        }
    };
    for id in 0..types.items.len() {
        let Some(Shape::Record(record)) = types.get(id).map(|item| &item.shape) else { continue };
        let values: Vec<Option<Value>> = record.fields.iter().map(|field| only(types, field)).collect();
        let Some(Shape::Record(record)) = types.items.get_mut(id).map(|item| &mut item.shape) else { continue };
        let fields = std::mem::take(&mut record.fields);
        for (field, value) in fields.into_iter().zip(values) {
            match value {
                Some(value) => record.constants.push((field.json, value)),
                None => record.fields.push(field),
            }
        }
    }
}

/// Turns the defaults of properties into values of their types, or drops them.
fn fit_defaults(types: &mut Types, diagnostics: &mut Vec<Diagnostic>) {
    let mut fitted: Vec<(usize, usize, Default)> = Vec::new();
    for (id, item) in types.items.iter().enumerate() {
        let Shape::Record(record) = &item.shape else { continue };
        for (at, field) in record.fields.iter().enumerate() {
            let Default::Raw(value) = &field.default else { continue };
            let nothing = value.is_null() && !field.required;
            let fits = if nothing { None } else { literal(types, &field.type_, value, 0) };
            if fits.is_none() && !nothing {
                let pointer =
                    format!("{}/properties/{}", item.pointer, field.json.replace('~', "~0").replace('/', "~1"));
                let message = format!("the default {} does not fit the type", shortened(value));
                diagnostics.push(Diagnostic::warning(pointer, message).with_help("the property has no default"));
            }
            fitted.push((id, at, fits.map_or(Default::None, Default::Fits)));
        }
    }
    for (id, at, default) in fitted {
        if let Some(Shape::Record(record)) = types.items.get_mut(id).map(|item| &mut item.shape)
            && let Some(field) = record.fields.get_mut(at)
        {
            field.default = default;
        }
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 { text } else { text.chars().take(60).chain(['…']).collect() }
}

/// The value as one of the type, if it is one.
fn literal(types: &Types, type_: &Type, value: &Value, depth: usize) -> Option<Literal> {
    if depth > 8 {
        return None;
    }
    let number = |fits: bool| fits.then(|| Literal::Number(value.to_string()));
    let zero = |literal: Literal, zero: bool| if zero { Literal::Zero } else { literal };
    Some(match (types.resolve(type_), value) {
        (Type::Option(_), Value::Null) => Literal::Zero,
        (Type::Option(inner), _) => Literal::Some(Box::new(literal(types, inner, value, depth + 1)?)),
        (Type::Value, _) => zero(Literal::Json(value.clone()), value.is_null()),
        (Type::Bool, Value::Bool(bool)) => zero(Literal::Bool(*bool), !bool),
        (Type::I32, _) => zero(number(i32::try_from(value.as_i64()?).is_ok())?, value.as_i64() == Some(0)),
        (Type::I64, _) => zero(number(value.is_i64())?, value.as_i64() == Some(0)),
        (Type::U32, _) => zero(number(u32::try_from(value.as_u64()?).is_ok())?, value.as_u64() == Some(0)),
        (Type::U64, _) => zero(number(value.is_u64())?, value.as_u64() == Some(0)),
        (Type::F64, _) => {
            let float = value.as_f64().filter(|float| float.is_finite())?;
            zero(Literal::Number(format!("{float:?}")), value.as_f64() == Some(0.0))
        }
        (Type::String, Value::String(text)) => zero(Literal::Text(text.clone()), text.is_empty()),
        (Type::List(inner), Value::Array(items)) => {
            let items = items.iter().map(|item| literal(types, inner, item, depth + 1)).collect::<Option<Vec<_>>>()?;
            if items.is_empty() { Literal::Zero } else { Literal::List(items) }
        }
        (Type::Tuple(places), Value::Array(items)) if places.len() == items.len() => {
            let pairs = places.iter().zip(items);
            Literal::Tuple(pairs.map(|(place, item)| literal(types, place, item, depth + 1)).collect::<Option<_>>()?)
        }
        (Type::Map(_), Value::Object(object)) if object.is_empty() => Literal::Zero,
        (Type::Named(id), _) => {
            let constant = |constants: &[crate::types::Constant]| {
                let at = constants.iter().position(|constant| constant.value == *value)?;
                Some(Literal::Variant(*id, at))
            };
            match &types.get(*id)?.shape {
                Shape::Names(constants) | Shape::Values(constants) => constant(constants)?,
                Shape::Record(record) if value.as_object().is_some_and(serde_json::Map::is_empty) => {
                    if !record.fields.iter().all(|field| !field.required && field.default == Default::None) {
                        return None;
                    }
                    Literal::Zero
                }
                _ => return None,
            }
        }
        _ => return None,
    })
}
