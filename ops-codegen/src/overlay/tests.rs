use std::path::{Path, PathBuf};

use ops_runtime::openapi::FileSource;
use ops_runtime::spec::{Diagnostic, Severity};
use serde_json::{Value, json};

use super::Overlaid;

/// A folder of its own for a test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ops-overlay-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Applies overlays, each the `actions` of one in a version; gives the document and the warnings.
fn overlaid(
    folder: &Path,
    document: &str,
    overlays: &[(&str, &str)],
) -> Result<(Value, Vec<Diagnostic>, Overlaid), Vec<Diagnostic>> {
    let path = |name: String| folder.join(name).display().to_string();
    std::fs::write(path("api.yaml".to_owned()), document).unwrap();
    let mut paths = Vec::new();
    for (index, (version, actions)) in overlays.iter().enumerate() {
        let name = path(format!("{index}.overlay.yaml"));
        std::fs::write(&name, format!("overlay: {version}\ninfo: {{ title: t, version: '1' }}\nactions:\n{actions}"))
            .unwrap();
        paths.push(name);
    }
    let mut told = Vec::new();
    let overlaid = Overlaid::read(&path("api.yaml".to_owned()), &paths, FileSource::new(), &mut told)?;
    Ok((serde_json::from_str(overlaid.text()).unwrap(), told, overlaid))
}

/// A diagnostic in one line: severity, line of the overlay, message.
fn line(told: &Diagnostic) -> String {
    let severity = if told.severity == Severity::Error { "error" } else { "warning" };
    format!("{severity} {} {}: {}", told.position.map_or(0, |(line, _)| line), told.pointer, told.message)
}

#[test]
fn a_version_needs_no_patch() {
    let folder = folder("version");
    let document = "{a: 1, b: 0}";
    // YAML reads them as numbers, unless they are in quotes.
    for version in ["1.1", "'1.1'"] {
        let (document, told, _) = overlaid(&folder, document, &[(version, "- {target: $.b, copy: $.a}")]).unwrap();
        assert!(document["b"] == 1 && told.is_empty(), "{version}: {document} {told:?}");
    }
    for version in ["1.0", "'1.0'"] {
        let told = overlaid(&folder, document, &[(version, "- {target: $.b, update: 2}")]).map(|_| ()).unwrap_err();
        assert!(told[0].message.contains("or write `overlay: 1.1.0`"), "{version}: {told:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn actions_change_the_document() {
    let folder = folder("actions");
    let document = "{a: {b: 1, list: [1, {x: 1}], deep: {y: true}}, n: null, list: [{k: 1}, {k: 2}, {k: 3}]}";
    let list = |items: Value| ("/list", items);
    for (name, actions, (place, wanted)) in [
        (
            "an object is merged: new members, values, lists and objects",
            "- {target: $.a, update: {b: two, c: 3, list: [2, [3]], deep: {z: [], y: false}}}",
            ("/a", json!({ "b": "two", "list": [1, { "x": 1 }, 2, [3]], "deep": { "y": false, "z": [] }, "c": 3 })),
        ),
        (
            "an item is appended",
            "- {target: $.a.list, update: {x: 2}}",
            ("/a/list", json!([1, { "x": 1 }, { "x": 2 }])),
        ),
        ("a value is appended", "- {target: $.a.list, update: two}", ("/a/list", json!([1, { "x": 1 }, "two"]))),
        ("a list is concatenated", "- {target: $.a.list, update: [2, 3]}", ("/a/list", json!([1, { "x": 1 }, 2, 3]))),
        ("a value is replaced", "- {target: $.a.b, update: null}\n- {target: $.a.b, update: 7}", ("/a/b", json!(7))),
        (
            "each target is updated once",
            "- {target: \"$.list[0,2,0]\", update: {l: [1]}}",
            list(json!([{ "k": 1, "l": [1] }, { "k": 2 }, { "k": 3, "l": [1] }])),
        ),
        (
            "the root is a target",
            "- {target: $, update: {n: 5, list: [{}]}}",
            list(json!([{ "k": 1 }, { "k": 2 }, { "k": 3 }, {}])),
        ),
        (
            "members and items are removed",
            "- {target: '$..[?@.k > 1]', remove: true}\n- {target: $.a, remove: true}",
            ("", json!({ "n": null, "list": [{ "k": 1 }] })),
        ),
        ("what is inside goes along", "- {target: '$..*', remove: true}", ("", json!({}))),
        (
            "an action sees the result of those before",
            "- {target: $.a.list, remove: true}\n- {target: $.a, update: {list: [0]}}",
            ("/a/list", json!([0])),
        ),
        (
            "a part is copied",
            "- {target: '$.list[?@.k == 2]', copy: $.a.deep}",
            list(json!([{ "k": 1 }, { "k": 2, "y": true }, { "k": 3 }])),
        ),
        ("`remove: false` is nothing", "- {target: $.n, remove: false, update: 1}", ("/n", json!(1))),
    ] {
        let (changed, told, _) = overlaid(&folder, document, &[("1.1.0", actions)]).unwrap();
        assert!(told.is_empty(), "{name}: {told:?}");
        assert_eq!(changed.pointer(place), Some(&wanted), "{name}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn overlays_are_applied_in_their_order() {
    let folder = folder("order");
    let first = ("1.0.0", "- {target: $.info, update: {title: first, x: 1}}");
    let second = ("1.1.3", "- {target: $.info.title, update: second}\n- {target: $.info.x, remove: true}");
    let (changed, _, _) = overlaid(&folder, "info: {title: none}", &[first, second]).unwrap();
    assert_eq!(changed, json!({ "info": { "title": "second" } }));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_cannot_be_applied_says_why() {
    let folder = folder("wrong");
    let document = "{a: {b: 1, list: []}, c: text, objects: [{}, []]}";
    for (version, actions, wanted) in [
        // Two faults at once, and each in its line.
        (
            "1.1.0",
            "- {target: a}\n- {target: $.a, update: {b: {}}}\n- {update: 1, target: '$.x-y'}\n- 7\n",
            &[
                "error 4 /actions/0/target: at `a`: a query begins with `$`",
                "warning 4 /actions/0: the action changes nothing: it has no `update`, `remove` or `copy`",
                "error 6 /actions/2/target: at `-y`: a name with `-` needs brackets: write `['name']`",
                "error 7 /actions/3: an action is an object with a `target`",
            ][..],
        ),
        (
            "1.1.0",
            "- {target: $.a, update: {new: 1, b: {}, list: 1}}\n- {target: $.a.list, update: [1]}\n- {target: $, remove: true}",
            &[
                "error 4 /actions/0/update/b: an object cannot be merged into a number, `/a/b`: remove that first",
                "error 6 /actions/2/remove: the whole document cannot be removed",
            ],
        ),
        (
            "1.1.0",
            "- {target: $.c, update: {}}",
            &["error 4 /actions/0/update: an object cannot be merged into a text, `/c`: remove that first"],
        ),
        (
            "1.1.0",
            "- {target: $, update: 1}",
            &["error 4 /actions/0/update: a number cannot be merged into an object, the document: remove that first"],
        ),
        (
            "1.1.0",
            "- {target: '$.objects[*]', update: {}}",
            &["error 4 /actions/0/target: the target matches lists and objects: all must be of one kind"],
        ),
        (
            "1.0.1",
            "- {target: $.c, update: x}",
            &[
                "error 4 /actions/0/target: the target is neither an object nor a list: update the object around it, or write `overlay: 1.1.0`",
            ],
        ),
        (
            "1.1.0",
            "- {target: $.a, copy: $.objects.*}\n- {target: $.a, copy: $.none}\n- {target: $.none, copy: $.none}",
            &[
                "error 4 /actions/0/copy: `copy` must select one node, and selects 2",
                "error 5 /actions/1/copy: `copy` must select one node, and selects 0",
                "warning 6 /actions/2/target: the target matches nothing, so that the action changes nothing",
            ],
        ),
        (
            "1.1.0",
            "- {target: $.a, copy: 1, remove: 1}\n- {target: [], update: 1, copy: $.a}\n- {remove: true}\n",
            &[
                "error 4 /actions/0/remove: `remove` is `true` or `false`",
                "error 5 /actions/1/target: a target is a text: a JSONPath, such as `$.paths.*.get`",
                "error 5 /actions/1: an action has `update` or `copy`, not both",
                "error 6 /actions/2: the action has no `target`",
            ],
        ),
        ("1.2.0", "- {target: $.a, remove: true}", &["error 1 /overlay: overlays of version `1.2.0` are not known"]),
        ("'1.10'", "- {target: $.a, remove: true}", &["error 1 /overlay: overlays of version `1.10` are not known"]),
        ("1.1.0", " 7", &["error 1 : the overlay has no list of `actions`"]),
    ] {
        let told = overlaid(&folder, document, &[(version, actions)]).map(|_| ()).unwrap_err();
        assert_eq!(told.iter().map(line).collect::<Vec<_>>(), wanted, "{actions}");
        assert!(told.iter().all(|told| told.document.as_ref().is_some_and(|path| path.ends_with("0.overlay.yaml"))));
    }
    let path = folder.join("api.yaml").display().to_string();
    let told = Overlaid::read(&path, std::slice::from_ref(&path), FileSource::new(), &mut Vec::new()).unwrap_err();
    assert!(told[0].message.starts_with("the file is no overlay"), "{told:?}");
    let told = Overlaid::read(&path, &["no/such".to_owned()], FileSource::new(), &mut Vec::new()).unwrap_err();
    assert!(told[0].document.as_deref() == Some("no/such") && told[0].message.contains("cannot read"), "{told:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_has_no_effect_is_a_warning() {
    let folder = folder("warnings");
    let actions = "- {target: $.none, update: {}}\n- {target: $.a, updat: {}, x-mine: 1, copy: $.a}\nextnds: b\nextends: other.yaml\n";
    std::fs::write(folder.join("other.yaml"), "").unwrap();
    let (_, told, _) = overlaid(&folder, "a: {}", &[("1.0.0", actions)]).unwrap();
    let api = folder.join("api.yaml");
    assert_eq!(
        told.iter().map(line).collect::<Vec<_>>(),
        [
            "warning 6 /extnds: `extnds` means nothing here: did you mean `extends`?".to_owned(),
            "warning 5 /actions/1/updat: `updat` means nothing here: did you mean `update`?".to_owned(),
            "warning 5 /actions/1/copy: `copy` means nothing here".to_owned(),
            "warning 5 /actions/1: the action changes nothing: it has no `update` or `remove`".to_owned(),
            format!("warning 7 /extends: the overlay extends `other.yaml`, and is applied to `{}`", api.display()),
            "warning 4 /actions/0/target: the target matches nothing, so that the action changes nothing".to_owned(),
        ]
    );
    let (_, told, _) =
        overlaid(&folder, "a: {}", &[("1.0.0", "- {target: $.a, update: {}}\nextends: ./api.yaml")]).unwrap();
    assert!(told.is_empty(), "{told:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn places_name_the_file_that_a_part_comes_from() {
    let folder = folder("places");
    let document = "a:\n  b: 1\nlist:\n  - x: 0\n  - x: 1\n  - x: 2\n  - x: 3\n";
    let actions = "\
- target: $.list[0, 2]
  remove: true
- target: $.a
  update:
    b: 2
    c:
      d: 4
- target: $.list
  update: { x: 9 }
- target: $.list[2]
  copy: $.a
";
    let (changed, _, overlaid) = overlaid(&folder, document, &[("1.1.0", actions)]).unwrap();
    assert_eq!(changed["list"], json!([{ "x": 1 }, { "x": 3 }, { "x": 9, "b": 2, "c": { "d": 4 } }]));
    let api = folder.join("api.yaml").display().to_string();
    for (pointer, file, origin, position) in [
        ("/a", "api.yaml", "/a", (1, 1)),
        ("/a/b", "0.overlay.yaml", "/actions/1/update/b", (8, 5)),
        ("/a/c/d", "0.overlay.yaml", "/actions/1/update/c/d", (10, 7)),
        ("/a/none", "api.yaml", "/a/none", (1, 1)),
        ("/list/0/x", "api.yaml", "/list/1/x", (5, 5)),
        ("/list/1", "api.yaml", "/list/3", (7, 5)),
        ("/list/2/x", "0.overlay.yaml", "/actions/2/update/x", (12, 13)),
        ("/list/2/c/d", "0.overlay.yaml", "/actions/3/copy", (14, 3)),
    ] {
        let mut told = [Diagnostic::warning(pointer, "odd").with_document(&api).with_position(1, 1)];
        overlaid.place(&mut told);
        let [told] = told;
        assert!(told.document.as_ref().unwrap().ends_with(file), "{pointer}: {told:?}");
        assert_eq!((told.pointer.as_str(), told.position), (origin, Some(position)), "{pointer}");
    }
    // Those of other files, and those without a place, stay as they are.
    let mut told = [Diagnostic::warning("/a/b", "odd").with_document(&api), Diagnostic::note("/a/b", "odd")];
    let before = told.clone();
    overlaid.place(&mut told);
    assert_eq!(format!("{told:?}"), format!("{before:?}"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_the_texts_repeat_is_told() {
    let folder = folder("repeated");
    let actions = "- {target: $.a, update: 2, update: 3}\n";
    let (changed, told, overlaid) = overlaid(&folder, "a: 1\nb: {c: 1, c: 2}\n", &[("1.1.0", actions)]).unwrap();
    assert_eq!(changed, json!({ "a": 3, "b": { "c": 2 } }));
    let places: Vec<_> = told.iter().map(|told| (told.pointer.as_str(), told.position.map(|(line, _)| line))).collect();
    assert_eq!(places, [("/b/c", Some(2)), ("/actions/0/update", Some(4))]);
    assert!(told.iter().all(|told| told.message.contains("more than once")), "{told:?}");
    assert!(told[0].document.as_ref().unwrap().ends_with("api.yaml"), "{told:?}");
    // They are about the text of the document, not about what the overlays made of it.
    let mut placed = told.clone();
    overlaid.place(&mut placed);
    assert_eq!(placed, told);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn hostile_overlays_end() {
    let folder = folder("hostile");
    let deep = (0..250).fold("1".to_owned(), |inner, _| format!("[{inner},[2]]"));
    let double = "- {target: $.b, copy: $.a}\n- {target: $.a, copy: $.b}\n".repeat(60);
    let nest = "- {target: '$..[?length(@) == 0]', copy: $}\n".repeat(600);
    let large = format!("- {{target: '$.many[*]', update: {{x: {}}}}}\n", "x".repeat(100_000));
    for (document, actions, message) in [
        (format!("a: {deep}"), "- {target: '$..*..*..*', remove: true}\n".repeat(2), "take too long to find"),
        (format!("a: {deep}"), "- {target: $, copy: '$..*..*..*'}\n".to_owned(), "takes too long to find"),
        ("{a: [1, 2], b: []}".to_owned(), double, "the overlays add more than 67108864 bytes"),
        ("{a: {}}".to_owned(), nest, "nested deeper than 512 levels"),
        (format!("many: [{}]", "{},".repeat(1_000)), large, "the overlays add more than"),
    ] {
        let start = std::time::Instant::now();
        let told = overlaid(&folder, &document, &[("1.1.0", &actions)]).map(|_| ()).unwrap_err();
        assert!(told.iter().any(|told| told.message.contains(message)), "{message}: {told:?}");
        assert!(start.elapsed() < std::time::Duration::from_secs(60), "{message}: {:?}", start.elapsed());
    }
    std::fs::remove_dir_all(folder).unwrap();
}
