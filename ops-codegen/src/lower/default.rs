//! Defaults: which ones fit their properties' types, and how they are printed.

use ops_runtime::spec::{Diagnostic, Severity};
use serde_json::Value;

mod shape;

use super::direction::without_null;
use super::size_of;
use crate::kinds::budget;
use crate::types::{Default, Field, ItemId, Literal, Shape, Type, Types, whole};
use ops_runtime::spec::pointer;
use shape::{of_shape, properties_of};

/// How deep literals are followed.
const DEEPEST: usize = 8;

/// How many properties a default may leave out in all its parts, with the values of their own defaults: so many, and so many for
/// each of its values.
const INNER: (usize, usize) = (5_000, 100);

/// Drops defaults that do not fit their types; the property may then simply be absent.
pub(super) fn drop_misfits(types: &mut Types, diagnostics: &mut Vec<Diagnostic>) {
    types.names.set(budget(types));
    for id in 0..types.items.len() {
        warn_of_told(types, id, diagnostics);
        for (at, literal) in literals(types, id) {
            let Err(why) = literal else { continue };
            let Some((pointer, field)) = field(types, id, at) else { continue };
            if let Default::Raw(value) = std::mem::replace(&mut field.default, Default::None) {
                let mut diagnostic = misfit(pointer, field, &value).with_help("the property has no default");
                let unwritten = |held| format!("holds {held}, which is not written as code");
                let reason = match why {
                    Misfit::Unwritten(held) => Some(unwritten(held)),
                    Misfit::Repeated => Some(unwritten("the default of an object inside")),
                    Misfit::Endless => Some("holds itself, or too many objects or levels".to_owned()),
                    Misfit::Wrong => None,
                };
                if let Some(reason) = reason {
                    diagnostic.severity = Severity::Note;
                    diagnostic.message = format!("the default {} {reason}", shortened(&value));
                }
                diagnostics.push(diagnostic);
            }
            if field.required {
                continue;
            }
            let type_ = std::mem::replace(&mut field.type_, Type::Value);
            let type_ = without_null(types, type_);
            if let Some((_, field)) = self::field(types, id, at) {
                field.type_ = type_;
            }
        }
    }
}

/// The reason why there is no literal for a default; the more serious reason comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Misfit {
    /// It contains a value that is not written as code.
    Unwritten(&'static str),
    /// It leaves out an object whose own default would be repeated.
    Repeated,
    /// It holds itself, by the defaults of what it leaves out, or has too many parts or levels.
    Endless,
    /// It does not match the type.
    Wrong,
}

/// Warns of documented defaults that certainly do not match their scalar types: the type may be wrong instead.
fn warn_of_told(types: &Types, id: ItemId, diagnostics: &mut Vec<Diagnostic>) {
    let Some(item) = types.get(id) else { return };
    let Shape::Record(record) = &item.shape else { return };
    for field in &record.fields {
        let Default::Told(value) = &field.default else { continue };
        let type_ = without_null(types, field.type_.clone());
        let is_scalar = match types.resolve(&type_) {
            Type::Bool | Type::I32 | Type::I64 | Type::U32 | Type::U64 | Type::F64 | Type::String => true,
            Type::Named(id) => {
                matches!(types.get(*id).map(|item| &item.shape), Some(Shape::Names(_) | Shape::Values(_)))
            }
            _ => false,
        };
        if is_scalar && !value.is_null() && literal(types, &type_, value, 0).is_err() {
            diagnostics.push(misfit(&item.pointer, field, value).with_help("it is shown as it is"));
        }
    }
}

fn misfit(pointer: &str, field: &Field, value: &Value) -> Diagnostic {
    let pointer = format!("{pointer}/properties/{}", pointer::escaped(&field.json));
    Diagnostic::warning(pointer, format!("the default {} does not fit the type", shortened(value)))
}

/// Turns the defaults of properties into values of their types.
pub(super) fn fit_defaults(types: &mut Types) {
    // What is left was within the budget.
    types.names.set(usize::MAX);
    for id in 0..types.items.len() {
        for (at, literal) in literals(types, id) {
            if let Some((_, field)) = field(types, id, at) {
                field.default = literal.map_or(Default::None, Default::Fits);
            }
        }
    }
}

/// The properties of an item with a default, by their positions, and the defaults as values of their types.
fn literals(types: &Types, id: ItemId) -> Vec<(usize, Result<Literal, Misfit>)> {
    let Some(Shape::Record(record)) = types.get(id).map(|item| &item.shape) else { return Vec::new() };
    let raw = record.fields.iter().enumerate().filter_map(|(at, field)| match &field.default {
        Default::Raw(value) => {
            types.inner.set(size_of(value).saturating_mul(INNER.1).saturating_add(INNER.0));
            Some((at, literal(types, &field.type_, value, 0)))
        }
        _ => None,
    });
    raw.collect()
}

/// A property of an item, with the item's pointer.
fn field(types: &mut Types, id: ItemId, at: usize) -> Option<(&str, &mut Field)> {
    let item = types.items.get_mut(id)?;
    match &mut item.shape {
        Shape::Record(record) => Some((&item.pointer, record.fields.get_mut(at)?)),
        _ => None,
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 { text } else { text.chars().take(60).chain(['…']).collect() }
}

/// The value as one of the type.
fn literal(types: &Types, type_: &Type, value: &Value, depth: usize) -> Result<Literal, Misfit> {
    if depth > DEEPEST {
        return Err(Misfit::Endless);
    }
    let inside = |type_: &Type, value: &Value| literal(types, type_, value, depth + 1);
    Ok(match (types.resolve(type_), value) {
        (Type::Option(_), Value::Null) => Literal::Zero,
        (Type::Option(inner), _) => Literal::Some(Box::new(inside(inner, value)?)),
        (Type::Value, _) => {
            types.note_undeclared(properties_of(value), 0);
            zero_if(value.is_null(), Literal::Json(value.clone()))
        }
        (Type::Bool, Value::Bool(bool)) => zero_if(!bool, Literal::Bool(*bool)),
        (Type::I32, _) => integer::<i32>(value)?,
        (Type::I64, _) => integer::<i64>(value)?,
        (Type::U32, _) => integer::<u32>(value)?,
        (Type::U64, _) => integer::<u64>(value)?,
        (Type::F64, Value::Number(number)) => {
            let float = number.as_f64().filter(|float| float.is_finite()).ok_or(Misfit::Wrong)?;
            zero_if(float == 0.0 && float.is_sign_positive(), Literal::Number(format!("{float:?}")))
        }
        (Type::String, Value::String(text)) => zero_if(text.is_empty(), Literal::Text(text.clone())),
        (Type::List(inner), Value::Array(items)) => {
            let list = all(items.iter().map(|item| inside(inner, item)))?;
            zero_if(list.is_empty(), Literal::List(list))
        }
        (Type::Tuple(places), Value::Array(items)) if places.len() == items.len() => {
            let pairs = places.iter().zip(items);
            Literal::Tuple(all(pairs.map(|(place, item)| inside(place, item)))?)
        }
        (Type::Map(inner), Value::Object(object)) => {
            types.note_undeclared(object.len(), 0);
            let entries = all(object.iter().map(|(key, value)| Ok((key.clone(), inside(inner, value)?))))?;
            zero_if(entries.is_empty(), Literal::Map(entries))
        }
        (Type::Named(id) | Type::Boxed(id), _) => {
            of_shape(types, &types.get(*id).ok_or(Misfit::Wrong)?.shape, *id, value, depth)?
        }
        (Type::Custom(_), _) => return Err(Misfit::Unwritten("a value of your own type")),
        (Type::Format(_) | Type::Body, Value::String(_)) => {
            return Err(Misfit::Unwritten("a value that is read from text"));
        }
        _ => return Err(Misfit::Wrong),
    })
}

/// All parts of a literal, or the gravest reason why one is missing.
fn all<T>(parts: impl Iterator<Item = Result<T, Misfit>>) -> Result<Vec<T>, Misfit> {
    let (mut found, mut gravest) = (Vec::new(), None);
    for part in parts {
        match part {
            Ok(part) => found.push(part),
            Err(misfit) => gravest = gravest.max(Some(misfit)),
        }
    }
    gravest.map_or(Ok(found), Err)
}

/// The literal, or `Default` if that gives the same.
fn zero_if(is_zero: bool, literal: Literal) -> Literal {
    if is_zero { Literal::Zero } else { literal }
}

/// The integer as a literal, if it fits its type.
fn integer<T: TryFrom<i128>>(value: &Value) -> Result<Literal, Misfit> {
    let whole = whole(value).filter(|whole| T::try_from(*whole).is_ok()).ok_or(Misfit::Wrong)?;
    Ok(zero_if(whole == 0, Literal::Number(whole.to_string())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_fit_types() {
        let types = Types::default();
        let list = |inner: Type| Type::List(Box::new(inner));
        let number = |text: &str| Some(Literal::Number(text.to_owned()));
        for (type_, value, expected) in [
            (Type::I64, json!(20.0), number("20")),
            (Type::I64, json!(-0.0), Some(Literal::Zero)),
            (Type::I64, json!(0.5), None),
            (Type::I64, json!(1e300), None),
            (Type::I64, json!("1"), None),
            (Type::I64, json!(u64::MAX), None),
            (Type::I64, json!(i64::MIN), number("-9223372036854775808")),
            (Type::U64, json!(u64::MAX), number("18446744073709551615")),
            (Type::U64, json!(-1), None),
            (Type::U32, json!(5_000_000_000_u64), None),
            (Type::F64, json!(1), number("1.0")),
            (Type::F64, json!(-0.0), number("-0.0")),
            (Type::F64, json!(0), Some(Literal::Zero)),
            (Type::F64, json!(1e300), number("1e300")),
            (Type::F64, json!("NaN"), None),
            (list(list(Type::I64)), json!([[]]), Some(Literal::List(vec![Literal::Zero]))),
            (list(Type::I64), json!([]), Some(Literal::Zero)),
            (list(Type::I64), json!({}), None),
            (Type::Map(Box::new(Type::Bool)), json!({}), Some(Literal::Zero)),
            (
                Type::Map(Box::new(Type::Bool)),
                json!({ "a": true }),
                Some(Literal::Map(vec![("a".to_owned(), Literal::Bool(true))])),
            ),
            (Type::Tuple(vec![Type::Bool]), json!([]), None),
            (Type::Value, json!({}), Some(Literal::Json(json!({})))),
            (Type::Value, json!(null), Some(Literal::Zero)),
        ] {
            assert_eq!(literal(&types, &type_, &value, 0).ok(), expected, "{type_:?} {value}");
        }
    }
}
