//! Styles, types and explode against the tables of the standard, with values of our own.

use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{cookie, form_field, header, path, query, query_string};
use crate::HttpParameter;
use crate::ParameterStyle::{self, DeepObject, Form, Json, Label, Matrix, PipeDelimited, Simple, SpaceDelimited};

fn values() -> [Value; 4] {
    [json!(""), json!("teal"), json!(["teal", "red", "a,b"]), json!({ "h": 10, "s": 0.5, "k": "a/b" })]
}

#[test]
fn paths() {
    let table: &[(ParameterStyle, bool, [&str; 4])] = &[
        (Matrix, false, [";c", ";c=teal", ";c=teal,red,a%2Cb", ";c=h,10,s,0.5,k,a%2Fb"]),
        (Matrix, true, [";c", ";c=teal", ";c=teal;c=red;c=a%2Cb", ";h=10;s=0.5;k=a%2Fb"]),
        (Label, false, [".", ".teal", ".teal,red,a%2Cb", ".h,10,s,0.5,k,a%2Fb"]),
        (Label, true, [".", ".teal", ".teal.red.a%2Cb", ".h=10.s=0.5.k=a%2Fb"]),
        (Simple, false, ["", "teal", "teal,red,a%2Cb", "h,10,s,0.5,k,a%2Fb"]),
        (Simple, true, ["", "teal", "teal,red,a%2Cb", "h=10,s=0.5,k=a%2Fb"]),
    ];
    for (style, explode, expected) in table {
        let parameter = HttpParameter::path("c").with_style(*style, *explode).with_reserved();
        let found = values().map(|value| path(&parameter, &value).unwrap());
        assert_eq!(&found, expected, "{style:?}, explode {explode}");
    }
    let json = HttpParameter::path("c").with_style(Json, false);
    assert_eq!(path(&json, &json!({ "a": 1 })).unwrap(), "%7B%22a%22%3A1%7D");
    assert_eq!(path(&HttpParameter::path("c"), &Value::Null), None);
    assert_eq!(path(&HttpParameter::path("c"), &json!([])), None);
}

#[test]
fn whole_numbers_have_no_fraction() {
    let text = |value: f64| path(&HttpParameter::path("c"), &json!(value)).unwrap();
    for (value, expected) in [
        (614.0, "614"),
        (-20.0, "-20"),
        (0.0, "0"),
        (-0.0, "0"),
        (1.5, "1.5"),
        (1_594_000_000_000.0, "1594000000000"),
        (1e17, "100000000000000000"),
        (1e300, "1e%2B300"),
    ] {
        assert_eq!(text(value), expected);
    }
    assert_eq!(query(&HttpParameter::query("c"), &json!([1.0, 2.5])), ["c=1", "c=2.5"]);
    assert_eq!(header(&HttpParameter::header("c"), &json!(5.0)).unwrap(), "5");
    // JSON has one kind of number.
    assert_eq!(
        query(&HttpParameter::query("c").with_style(Json, false), &json!({ "a": 1.0 })),
        ["c=%7B%22a%22%3A1.0%7D"]
    );
}

#[test]
fn queries() {
    let table: &[(ParameterStyle, bool, [&str; 4])] = &[
        (Form, false, ["c=", "c=teal", "c=teal,red,a%2Cb", "c=h,10,s,0.5,k,a%2Fb"]),
        (Form, true, ["c=", "c=teal", "c=teal&c=red&c=a%2Cb", "h=10&s=0.5&k=a%2Fb"]),
        (SpaceDelimited, false, ["c=", "c=teal", "c=teal%20red%20a%2Cb", "c=h%2010%20s%200.5%20k%20a%2Fb"]),
        (SpaceDelimited, true, ["c=", "c=teal", "c=teal&c=red&c=a%2Cb", "h=10&s=0.5&k=a%2Fb"]),
        (PipeDelimited, false, ["c=", "c=teal", "c=teal%7Cred%7Ca%2Cb", "c=h%7C10%7Cs%7C0.5%7Ck%7Ca%2Fb"]),
        (PipeDelimited, true, ["c=", "c=teal", "c=teal&c=red&c=a%2Cb", "h=10&s=0.5&k=a%2Fb"]),
        (
            DeepObject,
            true,
            ["c=", "c=teal", "c%5B0%5D=teal&c%5B1%5D=red&c%5B2%5D=a%2Cb", "c%5Bh%5D=10&c%5Bs%5D=0.5&c%5Bk%5D=a%2Fb"],
        ),
        (
            Json,
            false,
            [
                "c=%22%22",
                "c=%22teal%22",
                "c=%5B%22teal%22%2C%22red%22%2C%22a%2Cb%22%5D",
                "c=%7B%22h%22%3A10%2C%22s%22%3A0.5%2C%22k%22%3A%22a%2Fb%22%7D",
            ],
        ),
    ];
    for (style, explode, expected) in table {
        let parameter = HttpParameter::query("c").with_style(*style, *explode);
        let found = values().map(|value| query(&parameter, &value).join("&"));
        assert_eq!(&found, expected, "{style:?}, explode {explode}");
    }
}

#[test]
fn headers_and_cookies() {
    let simple = |explode| HttpParameter::header("c").with_style(Simple, explode);
    assert_eq!(values().map(|v| header(&simple(false), &v).unwrap()), ["", "teal", "teal,red,a,b", "h,10,s,0.5,k,a/b"]);
    assert_eq!(values().map(|v| header(&simple(true), &v).unwrap()), ["", "teal", "teal,red,a,b", "h=10,s=0.5,k=a/b"]);
    assert_eq!(header(&simple(false), &Value::Null), None);

    let form = |explode| HttpParameter::cookie("c").with_style(Form, explode);
    let cookies = |explode| values().map(|v| cookie(&form(explode), &v).join("; "));
    assert_eq!(cookies(false), ["c=", "c=teal", "c=teal,red,a%2Cb", "c=h,10,s,0.5,k,a%2Fb"]);
    assert_eq!(cookies(true), ["c=", "c=teal", "c=teal; c=red; c=a%2Cb", "h=10; s=0.5; k=a%2Fb"]);
}

#[test]
fn cookies_in_their_own_syntax_keep_their_names() {
    for (name, expected) in [
        ("$Version", "$Version=a+b"),
        ("a+b", "a+b=a+b"),
        ("user|id", "user|id=a+b"),
        ("__Host-id", "__Host-id=a+b"),
        // No cookie can have these.
        ("a b", "a%20b=a+b"),
        ("a=b;c", "a%3Db%3Bc=a+b"),
        ("ö", "%C3%B6=a+b"),
    ] {
        assert_eq!(cookie(&HttpParameter::cookie(name).with_reserved(), &json!("a+b")), [expected]);
    }
    // In the style `form`, names are escaped, too.
    assert_eq!(cookie(&HttpParameter::cookie("a+b"), &json!("a+b")), ["a%2Bb=a%2Bb"]);
}

#[test]
fn what_the_standard_leaves_open() {
    let form = HttpParameter::query("c");
    let table = [
        (json!(null), ""),
        (json!([]), ""),
        (json!({}), ""),
        (json!([1, null, true]), "c=1&c=true"),
        (json!({ "a": null, "b": -1.5 }), "b=-1.5"),
        (json!([{ "a": [1] }]), "c=%7B%22a%22%3A%5B1%5D%7D"),
        (json!("ö &=+%41#\u{0}"), "c=%C3%B6%20%26%3D%2B%2541%23%00"),
    ];
    for (value, expected) in table {
        assert_eq!(query(&form, &value).join("&"), expected, "{value}");
    }
    let named = HttpParameter::query("c[]&");
    assert_eq!(query(&named, &json!([1, 2])), ["c%5B%5D%26=1", "c%5B%5D%26=2"]);

    let deep = HttpParameter::query("c").with_style(DeepObject, true);
    let value = json!({ "a": { "b c": [1, { "d": null, "e": "f" }] }, "g": [] });
    assert_eq!(query(&deep, &value), ["c%5Ba%5D%5Bb%20c%5D%5B0%5D=1", "c%5Ba%5D%5Bb%20c%5D%5B1%5D%5Be%5D=f"]);
    let deepest = (0..100).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(query(&deep, &deepest).len(), 1);
}

#[test]
fn reserved_characters_pass_but_none_that_ends_the_value() {
    let reserved = HttpParameter::query("c").with_reserved();
    let table = [
        ("a/b?c=d:e@f,g;h!$'()*[]", "c=a/b?c=d:e@f,g;h!$'()*[]"),
        ("a&b#c+d e\"<", "c=a%26b%23c%2Bd%20e%22%3C"),
        ("50%25 and 50% and %zz%", "c=50%25%20and%2050%25%20and%20%25zz%25"),
        ("ö%c3%B6", "c=%C3%B6%c3%B6"),
    ];
    for (value, expected) in table {
        assert_eq!(query(&reserved, &json!(value)), [expected], "{value}");
    }
    assert_eq!(query(&HttpParameter::query("a/b").with_reserved(), &json!(1)), ["a%2Fb=1"]);
}

#[test]
fn fields_of_forms() {
    let field = |value: Value| query(&form_field("f", &value), &value).join("&");
    assert_eq!(field(json!("a b")), "f=a%20b");
    assert_eq!(field(json!([1, 2])), "f=1&f=2");
    assert_eq!(field(json!({ "a": [1] })), "f%5Ba%5D%5B0%5D=1");
    assert_eq!(field(json!([{ "a": 1 }])), "f%5B0%5D%5Ba%5D=1");
}

/// The values of the standard's table, and those that it leaves out.
fn all_values() -> [Value; 11] {
    [
        json!(""),
        json!("blue"),
        json!(5),
        json!(true),
        json!(null),
        json!(["blue", "black", "brown"]),
        json!([""]),
        json!([]),
        json!({ "R": 100, "G": 200, "B": 150 }),
        json!({ "R": "" }),
        json!({}),
    ]
}

/// Every style, exploded or not, of every type: OpenAPI 3.1, section 4.8.12.4, and RFC 6570 for what is empty.
///
/// An undefined value (`-`) adds nothing to a query, and cannot stand in a path.
#[test]
fn every_style_of_every_type() {
    let in_path: &[(ParameterStyle, bool, [&str; 11])] = &[
        (
            Matrix,
            false,
            [
                ";color",
                ";color=blue",
                ";color=5",
                ";color=true",
                "-",
                ";color=blue,black,brown",
                ";color",
                "-",
                ";color=R,100,G,200,B,150",
                ";color=R,",
                "-",
            ],
        ),
        (
            Matrix,
            true,
            [
                ";color",
                ";color=blue",
                ";color=5",
                ";color=true",
                "-",
                ";color=blue;color=black;color=brown",
                ";color",
                "-",
                ";R=100;G=200;B=150",
                ";R",
                "-",
            ],
        ),
        (
            Label,
            false,
            [".", ".blue", ".5", ".true", "-", ".blue,black,brown", ".", "-", ".R,100,G,200,B,150", ".R,", "-"],
        ),
        (
            Label,
            true,
            [".", ".blue", ".5", ".true", "-", ".blue.black.brown", ".", "-", ".R=100.G=200.B=150", ".R=", "-"],
        ),
        (Simple, false, ["", "blue", "5", "true", "-", "blue,black,brown", "", "-", "R,100,G,200,B,150", "R,", "-"]),
        (Simple, true, ["", "blue", "5", "true", "-", "blue,black,brown", "", "-", "R=100,G=200,B=150", "R=", "-"]),
    ];
    for (style, explode, expected) in in_path {
        let parameter = HttpParameter::path("color").with_style(*style, *explode);
        let found = all_values().map(|value| path(&parameter, &value).unwrap_or("-".to_owned()));
        assert_eq!(&found, expected, "{style:?}, explode {explode}");
        if *style == Simple {
            let parameter = HttpParameter::header("color").with_style(Simple, *explode);
            let found = all_values().map(|value| header(&parameter, &value).unwrap_or("-".to_owned()));
            assert_eq!(&found, expected, "header, explode {explode}");
        }
    }
    let exploded = [
        "color=",
        "color=blue",
        "color=5",
        "color=true",
        "-",
        "color=blue&color=black&color=brown",
        "color=",
        "-",
        "R=100&G=200&B=150",
        "R=",
        "-",
    ];
    let in_query: &[(ParameterStyle, bool, [&str; 11])] = &[
        (
            Form,
            false,
            [
                "color=",
                "color=blue",
                "color=5",
                "color=true",
                "-",
                "color=blue,black,brown",
                "color=",
                "-",
                "color=R,100,G,200,B,150",
                "color=R,",
                "-",
            ],
        ),
        (Form, true, exploded),
        (
            SpaceDelimited,
            false,
            [
                "color=",
                "color=blue",
                "color=5",
                "color=true",
                "-",
                "color=blue%20black%20brown",
                "color=",
                "-",
                "color=R%20100%20G%20200%20B%20150",
                "color=R%20",
                "-",
            ],
        ),
        // The standard has no rule for these two; they are what the exploded form is.
        (SpaceDelimited, true, exploded),
        (
            PipeDelimited,
            false,
            [
                "color=",
                "color=blue",
                "color=5",
                "color=true",
                "-",
                "color=blue%7Cblack%7Cbrown",
                "color=",
                "-",
                "color=R%7C100%7CG%7C200%7CB%7C150",
                "color=R%7C",
                "-",
            ],
        ),
        (PipeDelimited, true, exploded),
        (
            DeepObject,
            true,
            [
                "color=",
                "color=blue",
                "color=5",
                "color=true",
                "-",
                "color%5B0%5D=blue&color%5B1%5D=black&color%5B2%5D=brown",
                "color%5B0%5D=",
                "-",
                "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150",
                "color%5BR%5D=",
                "-",
            ],
        ),
    ];
    for (style, explode, expected) in in_query {
        let parameter = HttpParameter::query("color").with_style(*style, *explode);
        let found = all_values().map(|value| Some(query(&parameter, &value)).filter(|pairs| !pairs.is_empty()));
        let found = found.map(|pairs| pairs.map_or("-".to_owned(), |pairs| pairs.join("&")));
        assert_eq!(&found, expected, "{style:?}, explode {explode}");
        if *style == DeepObject {
            let flat = HttpParameter::query("color").with_style(DeepObject, false);
            let found = all_values().map(|value| query(&flat, &value).join("&"));
            assert_eq!(
                found,
                expected.map(|text| if text == "-" { "" } else { text }),
                "a deep object is always exploded"
            );
        }
        if *style == Form {
            let parameter = HttpParameter::cookie("color").with_style(Form, *explode);
            let found = all_values().map(|value| cookie(&parameter, &value).join("; "));
            let expected = expected.map(|text| if text == "-" { String::new() } else { text.replace('&', "; ") });
            assert_eq!(found, expected, "cookie, explode {explode}");
        }
    }
}

#[test]
fn whole_query_strings() {
    let form = HttpParameter::query_string("q");
    let json_text = HttpParameter::query_string("q").with_style(Json, false);
    let table = [
        (&form, json!({ "a": "b c", "d": [1, 2], "e": null }), Some("a=b%20c&d=1&d=2")),
        (&form, json!("$.a[?@.b==1]&c"), Some("$.a[?@.b==1]&c")),
        (&form, json!({}), None),
        (&form, json!(null), None),
        (&form, json!(""), None),
        (&json_text, json!({ "a": "&" }), Some("%7B%22a%22%3A%22%26%22%7D")),
    ];
    for (parameter, value, expected) in table {
        assert_eq!(query_string(parameter, &value).as_deref(), expected, "{value}");
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

/// The pairs that a standard form parser reads.
fn parsed(pairs: &[String]) -> Vec<(String, String)> {
    let text = pairs.join("&");
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

fn name() -> impl Strategy<Value = String> {
    any::<String>().prop_filter("a name", |name| !name.is_empty())
}

proptest! {
    #![proptest_config(crate::seeded::config(256))]

    /// Form parsers can read exploded values back: lists as repeated names, objects as their members.
    #[test]
    fn forms_come_back(key in name(), items in prop::collection::vec(any::<String>(), 1..4), reserved in any::<bool>()) {
        let mut parameter = HttpParameter::query("");
        parameter.name = key.clone().into();
        parameter.allow_reserved = reserved;
        // Escapes in a reserved value are the caller's.
        let items: Vec<_> = items.into_iter().map(|item| if reserved { item.replace('%', "") } else { item }).collect();
        for style in [Form, SpaceDelimited, PipeDelimited] {
            let parameter = parameter.clone().with_style(style, true);
            let expected: Vec<_> = items.iter().map(|item| (key.clone(), item.clone())).collect();
            prop_assert_eq!(parsed(&query(&parameter, &json!(items))), expected);
        }
        let object: serde_json::Map<_, _> = items.iter().map(|item| (format!("{key}{item}"), json!(item))).collect();
        let expected: Vec<_> = object.iter().map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned())).collect();
        prop_assert_eq!(parsed(&query(&parameter, &Value::Object(object.clone()))), expected.clone());
        let whole = query_string(&HttpParameter::query_string("q"), &Value::Object(object.clone())).unwrap();
        prop_assert_eq!(parsed(&[whole]), expected.clone());
        let deep = query(&parameter.with_style(DeepObject, true), &Value::Object(object));
        let expected: Vec<_> = expected.into_iter().map(|(k, v)| (format!("{key}[{k}]"), v)).collect();
        prop_assert_eq!(parsed(&deep), expected);
    }

    /// Delimited lists can be read back, if no item contains the delimiter.
    #[test]
    fn joined_values_come_back(items in prop::collection::vec("[^,| ]{1,8}", 1..4)) {
        for (style, delimiter) in [(Form, ","), (SpaceDelimited, "%20"), (PipeDelimited, "%7C")] {
            let pairs = query(&HttpParameter::query("c").with_style(style, false), &json!(items));
            let found: Vec<_> = pairs[0].strip_prefix("c=").unwrap().split(delimiter).map(decoded).collect();
            prop_assert_eq!(&found, &items);
        }
        let simple = path(&HttpParameter::path("c"), &json!(items)).unwrap();
        prop_assert_eq!(&simple.split(',').map(decoded).collect::<Vec<_>>(), &items);
        let matrix = path(&HttpParameter::path("c").with_style(Matrix, true), &json!(items)).unwrap();
        let found: Vec<_> = matrix.split(";c=").skip(1).map(decoded).collect();
        prop_assert_eq!(&found, &items);
        let headers = header(&HttpParameter::header("c"), &json!(items)).unwrap();
        prop_assert_eq!(&headers.split(',').map(str::to_owned).collect::<Vec<_>>(), &items);
    }

    /// A cookie ends where it should, and its value can be read back.
    #[test]
    fn cookies_come_back(key in name(), text in any::<String>(), more in any::<String>()) {
        let mut parameter = HttpParameter::cookie("");
        parameter.name = key.clone().into();
        let text_of = |value: &str| cookie(&parameter, &json!(value)).join("; ");
        let line = format!("{}; {}", text_of(&text), text_of(&more));
        let found: Vec<_> = line.split("; ").map(|pair| pair.split_once('=').unwrap()).collect();
        prop_assert_eq!(found.len(), 2);
        for ((found_key, found), expected) in found.into_iter().zip([&text, &more]) {
            prop_assert_eq!(decoded(found_key), key.clone());
            prop_assert_eq!(&decoded(found), expected);
        }
    }
}
