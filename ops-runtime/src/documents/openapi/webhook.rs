//! Requests that the API sends: webhooks (3.1, section 4.8.1) and callbacks of operations (section 4.8.18).
//!
//! Each is a spec whose output is the JSON that the API sends. Where it is sent is nothing to its receiver.

use std::collections::HashSet;

use serde_json::Map;

use super::document::Node;
use super::media::Side;
use super::name::Found;
use super::operation::size;
use super::reader::{Names, Reader};
use super::short::short;
use crate::model::media::Media;
use crate::{OperationKind, OperationSpec, Schema, Text};

/// How many members there may be in path items that belong to several webhooks, counted for each but the first.
const MAX_REPEATED: usize = 10_000;

/// A request that the API sends, before it has a name.
struct Sent<'a> {
    /// The name that it would have alone, and the one that it has beside another of that name.
    wishes: [String; 2],
    /// The key of its path item: a name, or the expression of an address.
    key: &'a str,
    method: String,
    /// The path item, and what it refers to.
    items: Vec<Node<'a>>,
    operation: Node<'a>,
}

impl<'a> Reader<'a> {
    /// The webhooks of the document, then the callbacks of the operations that were read.
    pub(super) fn webhooks(&mut self, namespace: &str) -> Vec<OperationSpec> {
        let mut names = Names::default();
        let mut specs = Vec::new();
        let mut seen = HashSet::new();
        let mut left_out = 0_usize;
        for sent in self.find_webhooks() {
            if self.copies.specs == 0 {
                left_out += 1;
                continue;
            }
            // If several names share a request, its second copy is shared with the first.
            let is_new = seen.insert(sent.operation.key());
            self.copies.operation = Some(if is_new { sent.operation.key() } else { 0 });
            let Some(payload) = self.payload(&sent) else { continue };
            let [name, other] = sent.wishes;
            let name = if names.take(&name) { name } else { names.allot(&other) };
            let Ok(mut spec) = OperationSpec::new(OperationKind::Mutation, namespace, &name) else {
                let message = format!("`{namespace}.{}` is not the id of a webhook", short(&name));
                self.warn(&sent.operation, message, "it was left out");
                continue;
            };
            let Sent { key, method, items, operation, .. } = sent;
            let made_up = format!("{method} {key}");
            self.describe(&mut spec, &Found { path: key, method, items, operation });
            if spec.description == made_up {
                spec.description = Text::default();
            }
            spec.output = payload;
            let Some(room) = self.copies.specs.checked_sub(size(&spec)) else {
                self.copies.specs = 0;
                left_out += 1;
                continue;
            };
            self.copies.specs = room;
            specs.push(spec);
        }
        self.copies.operation = None;
        if left_out > 0 {
            let message = format!("{left_out} webhooks were left out");
            let help = "what they share makes them too large: give large parts a name in `components/schemas`";
            self.warn(&self.documents.root(), message, help);
        }
        specs
    }

    fn find_webhooks(&mut self) -> Vec<Sent<'a>> {
        let mut found = Vec::new();
        let (mut seen, mut repeated) = (HashSet::new(), 0_usize);
        let root = self.documents.root();
        for (name, item) in self.map(&root, "webhooks").into_iter().filter(|(name, _)| !name.starts_with("x-")) {
            let Some((items, shared)) = self.path_item(&item, "this webhook") else { continue };
            if !seen.insert(shared) {
                repeated = repeated.saturating_add(members(&items));
            }
            if repeated > MAX_REPEATED {
                self.warn_of_repeated();
                break;
            }
            self.add_webhooks(&[name, name], name, &items, &mut found);
        }
        for (of, operation) in std::mem::take(&mut self.callbacks) {
            for (name, callback) in self.map(&operation, "callbacks") {
                // One that several operations share is one request.
                let callback = self.resolve(&callback, "this callback");
                let Some(callback) = callback.filter(|callback| seen.insert(callback.key())) else { continue };
                for (address, item) in callback.members().filter(|(address, _)| !address.starts_with("x-")) {
                    let Some((items, shared)) = self.path_item(&item, "this callback") else { continue };
                    // Members beside a reference make another request of one that several share.
                    let has_own = items.len() > 1;
                    if !seen.insert(shared) {
                        if !has_own {
                            continue;
                        }
                        repeated = repeated.saturating_add(members(&items));
                        if repeated > MAX_REPEATED {
                            self.warn_of_repeated();
                            return found;
                        }
                    }
                    self.add_webhooks(&[name, &format!("{of}_{name}")], address, &items, &mut found);
                }
            }
        }
        found
    }

    fn warn_of_repeated(&mut self) {
        let message = format!("webhooks share more than {MAX_REPEATED} requests");
        self.warn(&self.documents.root(), message, "the others were left out");
    }

    /// Adds the methods of a path item.
    fn add_webhooks(&mut self, wishes: &[&str; 2], key: &'a str, items: &[Node<'a>], found: &mut Vec<Sent<'a>>) {
        for (method, operation) in self.requests(items, key) {
            let wishes = wishes.map(str::to_owned);
            found.push(Sent { wishes, key, method, items: items.to_vec(), operation });
        }
    }

    /// The schema of the JSON in the body of a request; `None` if it has none.
    fn payload(&mut self, sent: &Sent<'a>) -> Option<Schema> {
        let Sent { wishes: [name, _], operation, .. } = sent;
        let body = operation.get("requestBody").and_then(|body| self.resolve(&body, "the request body"));
        let Some(body) = body else {
            self.note(operation, format!("the webhook `{}` sends no content", short(name)), "it was left out");
            return None;
        };
        let contents = self.contents(&body);
        let Some(content) = contents.iter().find(|content| content.media == Media::Json) else {
            self.note(&body, format!("the webhook `{}` does not send JSON", short(name)), "it was left out");
            return None;
        };
        Some(Schema::from(self.content_schema(content, Side::Response)))
    }
}

/// How many members a path item has, with those of what it refers to.
fn members(items: &[Node<'_>]) -> usize {
    items.iter().filter_map(|item| item.value.as_object()).map(Map::len).sum()
}
