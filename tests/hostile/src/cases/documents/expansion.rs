//! What aliases and references expand to.

use super::{document, gives, joined, made};
use crate::Outcome;

/// A long text that many aliases repeat.
pub(super) fn aliases_of_text(size: usize) -> Outcome {
    let aliases = (size / 2 / 5).min(1_000);
    aliased(&format!("x-text: &a {}\n", "t".repeat(size / 2)), aliases)
}

/// An object with a long key that many aliases repeat.
pub(super) fn aliases_of_keys(size: usize) -> Outcome {
    let aliases = (size / 2 / 5).min(1_000);
    aliased(&format!("x-text: &a\n  ? '{}'\n  : 1\n", "t".repeat(size / 2)), aliases)
}

fn aliased(anchor: &str, aliases: usize) -> Outcome {
    let head = "openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths: {}\n";
    match made(format!("{head}{anchor}x-all: [{}]\n", vec!["*a"; aliases].join(", "))) {
        Ok(made) => made.bounded(),
        Err(error) if error.contains("aliases") && error.len() < 1_000 => Ok(error),
        Err(error) => Err(error),
    }
}

/// A schema that many operations repeat by an alias.
pub(super) fn aliases_of_schemas(size: usize) -> Outcome {
    let properties = joined(size / 2 / 30, |at| format!("p{at}: {{type: string}}"));
    let head = "openapi: 3.1.0\ninfo: {title: t, version: '1'}\n";
    let anchor = format!("x-schema: &a {{type: object, properties: {{{properties}}}}}\n");
    let operation = |at| {
        let content = "{application/json: {schema: *a}}";
        format!(
            " /p{at}: {{get: {{operationId: o{at}, responses: {{'200': {{description: '', content: {content}}}}}}}}}\n"
        )
    };
    let paths: String = (0..size / 2 / 110).map(operation).collect();
    match made(format!("{head}{anchor}paths:\n{paths}")) {
        Ok(made) => made.bounded(),
        Err(error) if error.contains("aliases") || error.contains("no `paths`") => Ok(error),
        Err(error) => Err(error),
    }
}

/// The inside of an object schema of about so many bytes.
fn large(size: usize) -> String {
    let properties = joined(size / 40, |at| format!(r#""p{at}":{{"type":"string","minLength":{at}}}"#));
    format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)
}

/// A response with a large schema of its own that all operations refer to.
pub(super) fn shared_response(size: usize) -> Outcome {
    let operation = |at| {
        format!(
            r##""/p{at}":{{"get":{{"operationId":"o{at}","responses":{{"200":{{"$ref":"#/components/responses/R"}}}}}}}}"##
        )
    };
    let paths = joined(size / 2 / 100, operation);
    let schema = large(size / 2);
    let components =
        format!(r#""responses":{{"R":{{"description":"","content":{{"application/json":{{"schema":{schema}}}}}}}}}"#);
    once(&document(&paths, &components), size / 2 / 100, schema.len())
}

/// A parameter with a large schema of its own that all operations refer to.
pub(super) fn shared_parameter(size: usize) -> Outcome {
    let operation = |at| {
        format!(
            r##""/p{at}":{{"get":{{"operationId":"o{at}","parameters":[{{"$ref":"#/components/parameters/P"}}],"responses":{{"204":{{"description":""}}}}}}}}"##
        )
    };
    let paths = joined(size / 2 / 130, operation);
    let schema = large(size / 2);
    let components = format!(r#""parameters":{{"P":{{"name":"p","in":"query","schema":{schema}}}}}"#);
    once(&document(&paths, &components), size / 2 / 130, schema.len())
}

/// A shared schema of more bytes is written once; each operation has a copy of a smaller one.
const LARGE: usize = 16 << 10;

/// What the method of an operation takes in the source, beside the operation itself.
const METHOD: usize = 256;

/// Reads a document whose operations share a schema, which should be written no more often than it has to be.
fn once(text: &str, operations: usize, schema: usize) -> Outcome {
    let copies = if schema > LARGE { 0 } else { operations * schema };
    let made = made(text.to_owned())?;
    if made.source.len() > 8 * (text.len() + copies) + METHOD * operations + (64 << 10) {
        return Err(format!("the schema is repeated: {}", made.told()));
    }
    made.bounded()
}

/// A path item with many operations that many paths refer to.
pub(super) fn shared_path_item(size: usize) -> Outcome {
    let operation = |at| format!(r#""M{at}":{{"responses":{{"204":{{"description":"{}"}}}}}}"#, "d".repeat(60));
    let operations = joined(size / 2 / 110, operation);
    let paths = joined(size / 2 / 50, |at| format!(r##""/p{at}":{{"$ref":"#/components/pathItems/I"}}"##));
    let components = format!(r#""pathItems":{{"I":{{"additionalOperations":{{{operations}}}}}}}"#);
    let text = document(&paths, &components).replace("3.1.0", "3.2.0");
    made(text)?.bounded()
}

/// Many schemas that extend a large one by `allOf`.
pub(super) fn heirs(size: usize) -> Outcome {
    let heirs = joined(size / 2 / 100, |at| {
        let own = format!(r#"{{"type":"object","properties":{{"own{at}":{{"type":"string"}}}}}}"#);
        format!(r##""H{at}":{{"allOf":[{{"$ref":"#/components/schemas/Base"}},{own}]}}"##)
    });
    let all = joined(size / 2 / 100, |at| format!(r##""h{at}":{{"$ref":"#/components/schemas/H{at}"}}"##));
    let components = format!(
        r#""schemas":{{"Base":{},{heirs}{}"All":{{"type":"object","properties":{{{all}}}}}}}"#,
        large(size / 4),
        if heirs.is_empty() { "" } else { "," }
    );
    let paths = gives("all", r##"{"$ref":"#/components/schemas/All"}"##);
    made(document(&paths, &components))?.bounded()
}

/// Many references to the end of a long list.
pub(super) fn references_into_a_list(size: usize) -> Outcome {
    let count = size / 2 / 20;
    let items = joined(count, |_| r#"{"type":"string"}"#.to_owned());
    let last = count.saturating_sub(1);
    let places = joined(size / 2 / 40, |_| format!(r##"{{"$ref":"#/x-list/{last}"}}"##));
    let paths = gives("all", &format!(r#"{{"anyOf":[{places}]}}"#));
    let text = document(&paths, "").replacen('{', &format!(r#"{{"x-list":[{items}],"#), 1);
    made(text)?.bounded()
}

/// Objects that hold each other, merged with each other.
pub(super) fn nested_all_of(size: usize) -> Outcome {
    let count = (size / 400).clamp(2, 200);
    let schemas = joined(count, |at| {
        let to = |step: usize| format!(r##"{{"$ref":"#/components/schemas/S{}"}}"##, (at + step) % count);
        let own = |step: usize| {
            format!(
                r#"{{"type":"object","required":["kind","other"],"properties":{{"kind":{},"name":{}}}}}"#,
                to(step),
                to(step + 1)
            )
        };
        format!(r#""S{at}":{{"allOf":[{},{},{}]}}"#, own(1), own(2), own(3))
    });
    let paths = gives("all", r##"{"$ref":"#/components/schemas/S0"}"##);
    made(document(&paths, &format!(r#""schemas":{{{schemas}}}"#)))?.bounded()
}
