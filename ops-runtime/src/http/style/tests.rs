//! Styles, types and explode against the tables of the standard, with values of our own.

use serde_json::{Value, json};

use super::{cookie, form_field, header, path, query};
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
