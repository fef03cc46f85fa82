//! Extra derives: finds the types that can have the derives that a user asks for.
//!
//! Derives of the standard library are left out if a type cannot have them. For any other, only the compiler can tell.

use std::borrow::Cow;

use ops_runtime::spec::Diagnostic;

use crate::derive::{Derive, Trait};
use crate::settings::{Faults, Setting};
use crate::types::{Field, Format, Item, ItemId, Shape, Type, Types};
use ops_runtime::glob::glob;

/// Gives the types that the patterns match their derives.
pub(crate) fn derive(
    types: &mut Types,
    wanted: &[(String, Derive)],
    faults: &mut Faults,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut asked: Vec<Vec<Trait>> = vec![Vec::new(); types.items.len()];
    for (pattern, derive) in wanted {
        let mut is_used = false;
        for (item, asked) in types.items.iter_mut().zip(&mut asked) {
            let names = [Some(item.name.clone()), item.definition().map(Cow::into_owned)];
            let matches = names.iter().flatten().any(|name| glob(pattern, name));
            if !matches || !has_derives(&item.shape) {
                continue;
            }
            is_used = true;
            match derive {
                Derive::Std(known) => {
                    for known in known.needs().iter().chain([known]) {
                        if !asked.contains(known) {
                            asked.push(*known);
                        }
                    }
                }
                other if item.derives.contains(other) => {}
                other => item.derives.push(other.clone()),
            }
        }
        if !is_used {
            let names = types.items.iter().filter(|item| has_derives(&item.shape)).map(|item| item.name.as_str());
            let what = format!("the derive `{}`: no type matches `{pattern}`", derive.text());
            let setting = Setting::Derive(pattern.clone(), derive.text().to_owned());
            faults.miss(setting, what, pattern, names, "write a type's name; `*` stands for any text");
        }
    }
    let parents = parents(types);
    let mut given: Vec<Vec<Derive>> = vec![Vec::new(); types.items.len()];
    for (_, known) in Trait::ALL {
        if !asked.iter().any(|asked| asked.contains(&known)) {
            continue;
        }
        let has = holders(types, known, &asked, &parents);
        for (id, item) in types.items.iter().enumerate() {
            if !asked.get(id).is_some_and(|asked| asked.contains(&known)) || is_there(item, known) {
                continue;
            }
            match (has.get(id), given.get_mut(id)) {
                (Some(true), Some(given)) => given.push(Derive::Std(known)),
                _ => diagnostics.push(left_out(item, known, &has)),
            }
        }
    }
    for (item, mut given) in types.items.iter_mut().zip(given) {
        given.append(&mut item.derives);
        item.derives = given;
    }
}

/// Takes derives of the standard library from types whose parts have lost them.
pub(crate) fn derive_less(types: &mut Types, diagnostics: &mut Vec<Diagnostic>) {
    let asked: Vec<Vec<Trait>> =
        types.items.iter().map(|item| item.derives.iter().filter_map(Derive::std).collect()).collect();
    let parents = parents(types);
    for (_, known) in Trait::ALL {
        if !asked.iter().any(|asked| asked.contains(&known)) {
            continue;
        }
        let has = holders(types, known, &asked, &parents);
        for (id, item) in types.items.iter_mut().enumerate() {
            let loses = has.get(id) == Some(&false) && asked.get(id).is_some_and(|asked| asked.contains(&known));
            if loses && !matches!(item.shape, Shape::Pending) {
                diagnostics.push(left_out(item, known, &has));
                item.derives.retain(|derive| *derive != Derive::Std(known));
            }
        }
    }
}

/// True if a type is a struct or an enum of its own.
fn has_derives(shape: &Shape) -> bool {
    !matches!(shape, Shape::Alias(_) | Shape::Pending)
}

/// True if the type has the trait without being asked.
fn is_there(item: &Item, known: Trait) -> bool {
    match known {
        Trait::Debug | Trait::Clone | Trait::PartialEq => true,
        Trait::Eq | Trait::Hash => matches!(item.shape, Shape::Names(_)),
        Trait::Default => match &item.shape {
            Shape::Record(record) => !record.fields.iter().any(Field::is_set),
            Shape::Newtype(_) => true,
            _ => false,
        },
        _ => false,
    }
}

/// The items that name each item.
fn parents(types: &Types) -> Vec<Vec<ItemId>> {
    let mut parents = vec![Vec::new(); types.items.len()];
    for (id, item) in types.items.iter().enumerate() {
        let mut named = Vec::new();
        item.shape.types().into_iter().for_each(|type_| type_.named(&mut named));
        for inner in named {
            if let Some(parents) = parents.get_mut(inner) {
                Vec::push(parents, id);
            }
        }
    }
    parents
}

/// The items that have a trait, if those that are asked get it wherever their parts have it.
fn holders(types: &Types, known: Trait, asked: &[Vec<Trait>], parents: &[Vec<ItemId>]) -> Vec<bool> {
    let mut has: Vec<bool> = types
        .items
        .iter()
        .zip(asked)
        .map(|(item, asked)| !has_derives(&item.shape) || is_there(item, known) || asked.contains(&known))
        .collect();
    let mut queue: Vec<ItemId> = (0..types.items.len()).collect();
    // Whatever loses it takes it from those that hold it.
    while let Some(id) = queue.pop() {
        let Some(item) = types.get(id).filter(|item| !is_there(item, known)) else { continue };
        if has.get(id) == Some(&true) && obstacle(item, known, &has).is_some() {
            if let Some(has) = has.get_mut(id) {
                *has = false;
            }
            queue.extend(parents.get(id).into_iter().flatten());
        }
    }
    has
}

/// The part of a type that lacks a trait, as text for its user.
fn obstacle(item: &Item, known: Trait, has: &[bool]) -> Option<String> {
    let lacks = |type_: &Type| !type_has(type_, known, has);
    let variant = |ident: &str| format!("the variant `{ident}`");
    match &item.shape {
        Shape::Pending => None,
        Shape::Alias(type_) | Shape::Newtype(type_) => lacks(type_).then(|| "what it holds".to_owned()),
        Shape::Record(record) => {
            let field = record.fields.iter().find(|field| match known {
                Trait::Default => field.is_set() && lacks(&field.type_),
                _ => lacks(&field.type_),
            });
            let extra = record
                .extra
                .as_ref()
                .filter(|(_, type_)| known == Trait::Copy || known != Trait::Default && lacks(type_));
            field
                .map(|field| &field.ident)
                .or(extra.map(|(ident, _)| ident))
                .map(|ident| format!("the field `{ident}`"))
        }
        _ if known == Trait::Default => Some("an enum".to_owned()),
        // The variant for any other value holds a text, or any JSON.
        Shape::Names(_) => lacks(&Type::String).then(|| "the text of any other value".to_owned()),
        Shape::Values(_) => lacks(&Type::Value).then(|| "any other value, as JSON,".to_owned()),
        Shape::Tagged(tagged) => {
            let found = tagged.variants.iter().find(|tagged| lacks(&tagged.variant.type_));
            let found = found.map(|tagged| variant(&tagged.variant.ident));
            found.or_else(|| lacks(&Type::Value).then(|| "any other value, as JSON,".to_owned()))
        }
        Shape::Union(variants) => {
            variants.iter().find(|variant| lacks(&variant.type_)).map(|found| variant(&found.ident))
        }
    }
}

fn type_has(type_: &Type, known: Trait, has: &[bool]) -> bool {
    let inner = |type_: &Type| type_has(type_, known, has);
    match type_ {
        Type::Unit | Type::Bool | Type::I32 | Type::I64 | Type::U32 | Type::U64 => true,
        Type::F64 => !matches!(known, Trait::Eq | Trait::Ord | Trait::Hash),
        Type::String => known != Trait::Copy,
        Type::Format(Format::Uri) => !matches!(known, Trait::Copy | Trait::Default),
        Type::Format(_) => true,
        Type::Body => matches!(known, Trait::Debug | Trait::Clone | Trait::PartialEq | Trait::Default),
        Type::Block => matches!(known, Trait::Debug | Trait::Clone | Trait::PartialEq),
        Type::Value => !matches!(known, Trait::Copy | Trait::PartialOrd | Trait::Ord),
        Type::List(_) | Type::Map(_) | Type::Option(_) if known == Trait::Default => true,
        Type::List(_) | Type::Map(_) if known == Trait::Copy => false,
        Type::List(of) | Type::Map(of) | Type::Option(of) => inner(of),
        Type::Tuple(items) => items.iter().all(inner),
        Type::Named(id) => has.get(*id) == Some(&true),
        // A default that holds another of its own kind would never end.
        Type::Boxed(id) => !matches!(known, Trait::Copy | Trait::Default) && has.get(*id) == Some(&true),
        // The user knows it.
        Type::Custom(_) => true,
    }
}

fn left_out(item: &Item, known: Trait, has: &[bool]) -> Diagnostic {
    let name = known.name();
    let reason = obstacle(item, known, has).unwrap_or_else(|| "a part of it".to_owned());
    Diagnostic::note(&item.pointer, format!("`{}` can't derive `{name}`: {reason} has none", item.name))
        .with_help(format!("`{name}` is left out"))
}
