//! Names of types and fields that the user has set.
//!
//! They are assigned last, so they change no other name.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::lower::Source;
use crate::module::Module;
use crate::settings::{Faults, Setting, Settings};
use crate::types::{ItemId, Shape, Types};

/// The types of a module, by what a setting may call them: the name of the definition, else the name of the type.
struct Index {
    by_definition: HashMap<String, ItemId>,
    by_name: HashMap<String, ItemId>,
    /// The names of operations and of their errors.
    kept: HashSet<String>,
}

impl Index {
    fn of(module: &Module) -> Self {
        let (mut by_definition, mut by_name) = (HashMap::new(), HashMap::new());
        for (id, item) in module.types.items.iter().enumerate() {
            by_name.entry(item.name.clone()).or_insert(id);
            if let Some(name) = item.definition() {
                by_definition.entry(name.into_owned()).or_insert(id);
            }
        }
        let errors = module.operations.iter().filter_map(|operation| operation.errors.as_ref());
        let kept = module.operations.iter().map(|operation| &operation.name).chain(errors.map(|errors| &errors.name));
        Self { by_definition, by_name, kept: kept.cloned().collect() }
    }

    /// The type that a setting names; if there is none, that is noted.
    fn find(
        &self,
        wanted: &str,
        setting: Setting,
        what: &str,
        settings: &Settings,
        source: &Source,
        faults: &mut Faults,
    ) -> Option<ItemId> {
        if let Some(id) = self.by_definition.get(wanted).or_else(|| self.by_name.get(wanted)) {
            return Some(*id);
        }
        if let Some(path) = settings.types.get(wanted) {
            faults.faults.push(format!("{what}: `{wanted}` is not generated, because `{path}` stands for it"));
        } else if source.get(wanted).is_some() {
            faults.miss(setting, format!("{what}: `{wanted}` is not generated"), "", [], "no operation has the schema");
        } else if self.kept.contains(wanted) {
            let todo = "it is named after an operation, whose name only the document says; an overlay can change that";
            faults.miss(setting, format!("{what}: there is no type `{wanted}`"), "", [], todo);
        } else {
            // Suggests schemas that no operation has, too: if the user takes one, the next message says so.
            let own = self.by_definition.keys().chain(self.by_name.keys()).map(String::as_str);
            let names = own.chain(source.names());
            let todo = "write a schema's name as the document has it, or the name of a generated type";
            faults.miss(setting, format!("{what}: there is no type `{wanted}`"), wanted, names, todo);
        }
        None
    }
}

/// Gives types and fields the names that the user chose.
pub(crate) fn rename(module: &mut Module, settings: &Settings, source: &Source, faults: &mut Faults) {
    if settings.type_names.is_empty() && settings.field_names.is_empty() {
        return;
    }
    let index = Index::of(module);
    let mut fields: BTreeMap<ItemId, Vec<FieldName<'_>>> = BTreeMap::new();
    for ((wanted, property), name) in &settings.field_names {
        let what = format!("the name `{name}` for the property `{property}`");
        if let Some(id) = index.find(wanted, of_field(wanted, property), &what, settings, source, faults) {
            fields.entry(id).or_default().push(FieldName { wanted, property, name });
        }
    }
    for (id, names) in fields {
        rename_fields(&mut module.types, id, &names, faults);
    }
    let mut names: BTreeMap<ItemId, &str> = BTreeMap::new();
    for (wanted, name) in &settings.type_names {
        let (setting, what) = (Setting::TypeName(wanted.clone()), format!("the name `{name}`"));
        let Some(id) = index.find(wanted, setting, &what, settings, source, faults) else { continue };
        if let Some(other) = names.insert(id, name).filter(|other| *other != name) {
            faults.faults.push(format!("`{wanted}` has two names, `{other}` and `{name}`: leave one out"));
        }
    }
    // Types may change their names with each other.
    for id in names.keys() {
        if let Some(item) = module.types.get(*id) {
            module.scope.release(&item.name);
        }
    }
    for (id, name) in names {
        let Some(item) = module.types.items.get_mut(id) else { continue };
        if module.scope.has(name) {
            let message = format!("`{}` can't be called `{name}`: that name is taken", item.name);
            faults.faults.push(format!("{message}; choose another, or rename what has it"));
            module.scope.take(&item.name);
        } else {
            item.name = module.scope.take(name);
        }
    }
}

/// The name that the user chose for a property of a type.
struct FieldName<'s> {
    /// The type, as the setting calls it.
    wanted: &'s str,
    property: &'s str,
    name: &'s str,
}

fn of_field(wanted: &str, property: &str) -> Setting {
    Setting::FieldName(wanted.to_owned(), property.to_owned())
}

fn rename_fields(types: &mut Types, id: ItemId, names: &[FieldName<'_>], faults: &mut Faults) {
    let Some(item) = types.items.get_mut(id) else { return };
    let Shape::Record(record) = &mut item.shape else {
        faults.faults.push(format!("`{}` has no fields to name: it is no struct of properties", item.name));
        return;
    };
    let mut renamed = BTreeSet::new();
    for FieldName { wanted, property, name } in names {
        match record.fields.iter().position(|field| field.json == **property) {
            Some(at) => _ = renamed.insert((at, *name)),
            None => {
                let properties = record.fields.iter().map(|field| field.json.as_str());
                let what = format!("the name `{name}`: `{}` has no property `{property}`", item.name);
                let todo = "write its name as the document has it";
                faults.miss(of_field(wanted, property), what, property, properties, todo);
            }
        }
    }
    let is_renamed = |at: usize| renamed.iter().any(|(renamed, _)| *renamed == at);
    let kept = record.fields.iter().enumerate().filter(|(at, _)| !is_renamed(*at)).map(|(_, field)| &field.ident);
    let mut taken: BTreeSet<String> = kept.chain(record.extra.iter().map(|(ident, _)| ident)).cloned().collect();
    for (at, name) in &renamed {
        let Some(field) = record.fields.get_mut(*at) else { continue };
        if taken.insert((*name).to_owned()) {
            (*name).clone_into(&mut field.ident);
        } else {
            let place = format!("the property `{}` of `{}`", field.json, item.name);
            faults.faults.push(format!("{place} can't be called `{name}`: another field has that name"));
        }
    }
}
