//! Many of one kind: names, values, tools, variants, parameters.

use std::collections::BTreeMap;

use ops_runtime::mcp;

use super::{document, gives, joined, made, made_of_tools};
use crate::Outcome;

pub(super) fn enum_values(size: usize) -> Outcome {
    let values = joined(size / 10, |at| format!(r#""v{at}""#));
    all(&format!(r#"{{"type":"string","enum":[{values}]}}"#))
}

/// Values that are different, and of which the names are not.
pub(super) fn enum_values_of_one_name(size: usize) -> Outcome {
    let signs = ["-", "_", ".", "/"];
    let value = |at: usize| {
        let digits =
            (0..10).map(|place| signs.get((at >> (2 * place)) & 3).copied().unwrap_or_default()).collect::<String>();
        format!(r#""a{digits}b""#)
    };
    let values = joined((size / 15).min(1 << 20), value);
    all(&format!(r#"{{"type":"string","enum":[{values}]}}"#))
}

pub(super) fn properties_of_one_name(size: usize) -> Outcome {
    let signs = ["-", "_", ".", " "];
    let property = |at: usize| {
        let digits =
            (0..10).map(|place| signs.get((at >> (2 * place)) & 3).copied().unwrap_or_default()).collect::<String>();
        format!(r#""a{digits}b":{{"type":"string"}}"#)
    };
    let properties = joined((size / 34).min(1 << 20), property);
    let required = joined((size / 136).min(1 << 18), |at| format!(r#""r{at}""#));
    all(&format!(r#"{{"type":"object","required":[{required}],"properties":{{{properties}}}}}"#))
}

pub(super) fn operations_of_one_name(size: usize) -> Outcome {
    let operation = |at| {
        format!(
            r#""/p{at}":{{"get":{{"operationId":"same","tags":["t{at}"],"responses":{{"204":{{"description":""}}}}}}}}"#
        )
    };
    made(document(&joined(size / 95, operation), ""))?.bounded()
}

fn all(schema: &str) -> Outcome {
    made(document(&gives("all", schema), ""))?.bounded()
}

fn list(tools: &str) -> String {
    format!(r#"{{"tools":[{tools}]}}"#)
}

pub(super) fn tools(size: usize) -> Outcome {
    let tool =
        |at| format!(r#"{{"name":"t{at}","inputSchema":{{"type":"object","properties":{{"p":{{"type":"many"}}}}}}}}"#);
    made_of_tools(list(&joined(size / 80, tool)))?.bounded()
}

/// Tools whose schemas each define another thing under one name.
pub(super) fn tools_of_one_definition(size: usize) -> Outcome {
    let tool = |at| {
        format!(
            r##"{{"name":"t{at}","inputSchema":{{"type":"object","properties":{{"p":{{"$ref":"#/$defs/D"}}}},"$defs":{{"D":{{"type":"string","maxLength":{at}}}}}}}}}"##
        )
    };
    made_of_tools(list(&joined(size / 140, tool)))?.bounded()
}

/// Two lists of tools of which everything differs.
pub(super) fn changed_tools(size: usize) -> Outcome {
    let list = |least: usize| {
        let properties = joined(size / 4 / 40, |at| format!(r#""p{at}":{{"type":"string","minLength":{least}}}"#));
        let variants = joined(size / 4 / 60, |at| {
            format!(r#"{{"type":"object","required":["a{at}"],"properties":{{"a{at}":{{"minimum":{least}}}}}}}"#)
        });
        let schema = format!(
            r#"{{"type":"object","properties":{{"v":{{"anyOf":[{variants}]}},"o":{{"properties":{{{properties}}}}}}}}}"#
        );
        let list = list(&format!(r#"{{"name":"t","inputSchema":{schema},"outputSchema":{schema}}}"#));
        let source = BTreeMap::from([("tools.json".to_owned(), list)]);
        mcp::load("tools.json", &source, &mcp::ReadOptions::new()).map_err(|error| error.to_string())
    };
    let changes = mcp::changes(&list(1)?.0, &list(2)?.0);
    let told: usize = changes.iter().map(|change| change.to_string().len()).sum();
    if changes.len() > 10_000 || told > 8 << 20 {
        return Err(format!("{} changes of {told} bytes", changes.len()));
    }
    Ok(format!("{} changes of {told} bytes", changes.len()))
}

fn variants(count: usize) -> (String, String) {
    let schemas = joined(count, |at| {
        format!(
            r#""V{at}":{{"type":"object","required":["kind"],"properties":{{"kind":{{"const":"k{at}"}},"p{at}":{{"type":"string"}}}}}}"#
        )
    });
    let list = joined(count, |at| format!(r##"{{"$ref":"#/components/schemas/V{at}"}}"##));
    (format!(r#""schemas":{{{schemas}}}"#), list)
}

pub(super) fn union_of_references(size: usize) -> Outcome {
    let (schemas, list) = variants(size / 160);
    made(document(&gives("all", &format!(r#"{{"anyOf":[{list}]}}"#)), &schemas))?.bounded()
}

pub(super) fn union_with_a_discriminator(size: usize) -> Outcome {
    let count = size / 210;
    let (schemas, list) = variants(count);
    let mapping = joined(count, |at| format!(r##""k{at}":"#/components/schemas/V{at}""##));
    let discriminator = format!(r#"{{"propertyName":"kind","mapping":{{{mapping}}}}}"#);
    let schema = format!(r#"{{"oneOf":[{list}],"discriminator":{discriminator}}}"#);
    made(document(&gives("all", &schema), &schemas))?.bounded()
}

/// Unions whose variants are unions, each of the next level.
pub(super) fn union_of_unions(size: usize) -> Outcome {
    let width = (size / 9 / 50).max(2);
    let schemas = joined(10, |level| {
        let variants = joined(width, |at| {
            format!(
                r##"{{"title":"v{at}","type":["object","null"],"oneOf":[{{"$ref":"#/components/schemas/L{}"}},{{"title":"x{at}"}}]}}"##,
                level + 1
            )
        });
        format!(r#""L{level}":{{"anyOf":[{variants}]}}"#)
    });
    let components = format!(r#""schemas":{{{schemas},"L10":{{"type":"object","properties":{{"a":{{"const":1}}}}}}}}"#);
    let paths = gives("all", r##"{"$ref":"#/components/schemas/L0"}"##);
    made(document(&paths, &components))?.bounded()
}

/// Many unions that have the same large union as a variant.
pub(super) fn union_in_many_unions(size: usize) -> Outcome {
    let (variants, unions) = (size / 900, size / 450);
    let records = joined(variants, |at| {
        let properties = joined(10, |property| format!(r#""p{at}_{property}":{{"type":"string"}}"#));
        format!(r#""V{at}":{{"type":"object","properties":{{{properties}}}}}"#)
    });
    let large = joined(variants, |at| format!(r##"{{"$ref":"#/components/schemas/V{at}"}}"##));
    let list = r#"{"type":"array","items":{"type":"string"}}"#;
    let others = joined(unions, |at| {
        format!(r##""U{at}":{{"oneOf":[{{"$ref":"#/components/schemas/Large"}},{list}],"description":"{at}"}}"##)
    });
    // Each default is compared with all variants.
    let all = joined(unions, |at| {
        format!(r##""u{at}":{{"allOf":[{{"$ref":"#/components/schemas/U{at}"}}],"default":{{"p1_1":"x"}}}}"##)
    });
    let components = format!(r#""schemas":{{{records},"Large":{{"oneOf":[{large}]}},{others}}}"#);
    let paths = gives("all", &format!(r#"{{"type":"object","properties":{{{all}}}}}"#));
    let made = made(document(&paths, &components))?;
    if made.source.len() > 64 * size {
        return Err(made.told());
    }
    made.bounded()
}

pub(super) fn headers(size: usize) -> Outcome {
    let parameters =
        joined(size / 60, |at| format!(r#"{{"name":"x-h{at}","in":"header","schema":{{"type":"string"}}}}"#));
    let path = format!(
        r#""/p":{{"get":{{"operationId":"o","parameters":[{parameters}],"responses":{{"204":{{"description":""}}}}}}}}"#
    );
    made(document(&path, ""))?.bounded()
}
