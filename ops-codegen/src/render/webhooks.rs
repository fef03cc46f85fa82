//! Webhooks: a module of structs, whose impls have the types of their payloads.

use super::operation::expression;
use super::{Renderer, docs};

impl Renderer<'_> {
    pub(super) fn webhooks(&mut self) {
        if self.module.webhooks.is_empty() {
            return;
        }
        let bare = self.module.definitions.is_empty();
        let mut names = String::new();
        for webhook in &self.module.webhooks {
            let deprecated = if webhook.spec.deprecated { "#[deprecated]\n" } else { "" };
            let docs = docs::of_webhook(&webhook.spec);
            names.push_str(&format!("\n{docs}{deprecated}pub struct {};\n", webhook.name));
            let (name, constant, payload) = (&webhook.name, &webhook.constant, self.inner_type(&webhook.payload));
            self.impls(&format!(
                "impl ops::Webhook for super::webhooks::{name} {{\n    type Payload = {payload};\n    \
                 const SPEC: &'static ops::OperationSpec = &super::{constant};\n}}"
            ));
            let expression = expression(&webhook.spec, bare, &mut self.tables);
            self.push(&format!("static {constant}: ops::OperationSpec = {expression};"));
        }
        // The including code need not use all of them.
        self.push("/// The requests that the API sends, for `ops_runtime::webhooks::decode`.\n#[allow(dead_code, clippy::module_inception)]");
        let inside = names.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { docs::inner(line) });
        self.lines(&format!("pub mod webhooks {{{}}}", inside.collect::<String>()));
    }
}
