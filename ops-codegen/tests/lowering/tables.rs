//! The tables of large unions.

use serde_json::json;

use super::generate;
use super::unions::{holder, object, to};

const TOO_LARGE: &str = "the unions of the document, with the properties of their variants, are too large together";

/// The lines of the table of a union.
fn table(source: &str, name: &str) -> Vec<String> {
    let (_, table) = source.split_once(&format!("ops::untagged!(super::{name} {{\n")).unwrap();
    let table = table.split_once("\n    });").unwrap().0;
    table.lines().map(str::trim).map(str::to_owned).collect()
}

/// A large union would have all names of its properties in each union that has it as a variant.
#[test]
fn the_tables_of_unions_grow_with_the_document() {
    const VARIANTS: usize = 60;
    let names: Vec<String> = (0..VARIANTS).map(|at| format!("V{at}")).collect();
    let own: Vec<Vec<String>> =
        names.iter().map(|name| (0..20).map(|at| format!("{}_{at}", name.to_lowercase())).collect()).collect();
    let variants = names
        .iter()
        .zip(&own)
        .map(|(name, own)| (name.as_str(), object(&own.iter().map(String::as_str).collect::<Vec<_>>())));
    let unions: Vec<String> = (0..150).map(|at| format!("U{at}")).collect();
    let union = |at: usize| json!({ "oneOf": [to("Large"), { "type": "array" }], "description": at.to_string() });
    let large = json!({ "oneOf": names.iter().map(|name| to(name)).collect::<Vec<_>>() });
    let made = |count: usize| {
        let unions = &unions[..count];
        let others = unions.iter().enumerate().map(|(at, name)| (name.as_str(), union(at)));
        let definitions = variants.clone().chain([("Large", large.clone())]).chain(others).collect();
        generate(definitions, holder(&unions.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    for (count, last, told) in [(50, None, 0), (150, Some("Any => Large,"), 1)] {
        let made = made(count);
        let precise = table(&made.source, "U0");
        assert_eq!(precise.len(), 2);
        assert_eq!(precise[0].matches("Object[").count(), VARIANTS, "{precise:?}");
        assert_eq!(precise[1], "Array => List,");
        let found = table(&made.source, &unions[count - 1]);
        assert_eq!(found, last.map_or(precise.clone(), |last| vec![last.to_owned(), precise[1].clone()]));
        assert_eq!(made.diagnostics.iter().filter(|told| told.message == TOO_LARGE).count(), told);
    }
}

/// Beside a shape, a variant that has none would not be tried for an object.
#[test]
fn the_union_at_which_the_tables_end_has_no_shapes_of_objects() {
    let many: Vec<String> = (0..1000).map(|at| format!("p{at}")).collect();
    let mut second = object(&many.iter().map(String::as_str).collect::<Vec<_>>());
    second["required"] = json!([]);
    let names: Vec<String> = (0..200).map(|at| format!("K{at}")).collect();
    let union = |at: usize| json!({ "oneOf": [to("A"), to("B"), { "type": "array" }], "description": at.to_string() });
    let unions = names.iter().enumerate().map(|(at, name)| (name.as_str(), union(at)));
    let definitions = [("A", object(&["id"])), ("B", second)].into_iter().chain(unions).collect();
    let made = generate(definitions, holder(&names.iter().map(String::as_str).collect::<Vec<_>>()));
    let all: Vec<Vec<String>> = names.iter().map(|name| table(&made.source, name)).collect();
    let is_coarse = |table: &Vec<String>| table[..2] == ["Any => A,", "Any => B,"];
    let precise = all.iter().position(is_coarse).unwrap();
    assert!(precise > 0);
    assert!(all[..precise].iter().all(|table| *table == all[0]), "{:?}", all[precise - 1]);
    assert_eq!(all[0][0], "Object[\"id\"] => A,");
    assert!(all[0][1].starts_with("Object[; \"p0\", "), "{:?}", all[0][1]);
    assert!(all[precise..].iter().all(is_coarse));
    assert_eq!(made.diagnostics.iter().filter(|told| told.message == TOO_LARGE).count(), 1);
}
