//! The types that operations begin with: all others are reached from them.

use crate::types::{Item, Type, Types};

/// The types that the operations use directly, in the order of the operations, and those that are generated anyway.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    pub(crate) operations: Vec<Root>,
    /// The payloads of webhooks, which are only received.
    pub(crate) webhooks: Vec<Type>,
    pub(crate) others: Vec<Type>,
}

/// The types that one operation uses directly.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) input: Type,
    pub(crate) output: Type,
    pub(crate) errors: Vec<Type>,
    /// True if the operation is an HTTP request: its input is parameters and a body.
    pub(crate) is_http: bool,
    pub(crate) nulls: Nulls,
}

/// The places where a request may need to send `null` for a property that may be absent.
#[derive(Debug, PartialEq)]
pub(crate) enum Nulls {
    Nowhere,
    /// In these properties of the input.
    In(Vec<String>),
    Everywhere,
}

impl Root {
    /// Calls the input of an operation a request if the document calls its body, or another part of it, as the input would
    /// be called: callers mostly make the part, which becomes the input.
    pub(crate) fn leave_name(&self, operation: &str, types: &mut Types) {
        let Type::Named(id) = self.input else { return };
        let Some(item) = types.get(id).filter(|item| self.is_http && item.definition().is_none()) else { return };
        let mut parts = Vec::new();
        item.shape.types().into_iter().for_each(|type_| type_.named(&mut parts));
        let has_name = |part: &Item| part.definition().is_some() && part.name == item.name;
        let is_taken = parts.into_iter().any(|part| types.get(part).is_some_and(has_name));
        if let Some(item) = types.items.get_mut(id).filter(|_| is_taken) {
            item.name = format!("{}Request", operation.trim_end_matches('_'));
        }
    }
}

impl Roots {
    pub(crate) fn types_mut(&mut self) -> impl Iterator<Item = &mut Type> {
        let operations = self.operations.iter_mut().flat_map(|root| {
            let Root { input, output, errors, .. } = root;
            [input, output].into_iter().chain(errors)
        });
        // After the operations, so that these change none of their names.
        operations.chain(&mut self.webhooks).chain(&mut self.others)
    }

    /// The types that responses, webhooks and further schemas begin with.
    pub(crate) fn received(&self) -> impl Iterator<Item = &Type> {
        let responses = self.operations.iter().flat_map(|root| root.errors.iter().chain([&root.output]));
        responses.chain(&self.webhooks).chain(&self.others)
    }
}
