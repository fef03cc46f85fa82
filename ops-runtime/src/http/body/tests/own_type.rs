//! Bodies that know their own content type.

use super::*;

/// The content type in which a body of text is sent, or the error.
fn kind(binding: &HttpBinding, own: Option<&str>, named: Option<&str>) -> Result<String, CallError> {
    let mut bodies = Bodies::default();
    let body = Body::from("text");
    let placeholder = bodies.put(own.into_iter().fold(body, Body::with_content_type));
    let input = json!({ "body": placeholder, "as": named });
    let spec = OperationSpec::mutation("t.t");
    let encoded =
        encode(binding, Input { spec: &spec, members: input.as_object().unwrap(), bodies: &bodies })?.unwrap();
    assert_eq!(encoded.body.in_memory().unwrap(), "text");
    Ok(encoded.content_type.to_str().unwrap().to_owned())
}

fn any_of(types: &[&'static str]) -> HttpBinding {
    let mut binding = HttpBinding::new("POST", "/").with_content_type("as");
    binding.bodies = types.iter().map(|kind| HttpBody::new(kind)).collect::<Vec<_>>().into();
    binding
}

#[test]
fn a_body_is_sent_with_its_own_type_as_it_is() {
    const LATIN: &str = "text/csv; charset=iso-8859-1";
    for (types, own, named, expected) in [
        (&["text/csv"][..], Some(LATIN), None, LATIN),
        (&["text/csv; charset=utf-8"], Some("Text/CSV"), None, "Text/CSV"),
        (&["text/plain", "text/csv"], Some(LATIN), None, LATIN),
        (&["text/*"], Some(LATIN), None, LATIN),
        (&["*/*"], Some("image/webp"), None, "image/webp"),
        (&[""], Some("image/webp"), None, "image/webp"),
        (&["application/*+json"], Some("application/vnd.a+json; v=1"), None, "application/vnd.a+json; v=1"),
        (&["application/*+json"], Some("application/json"), None, "application/json"),
        (&["application/*+json", "*/*"], Some("application/vnd.a+json"), None, "application/vnd.a+json"),
        (&["application/*+json", OCTETS], Some("application/vnd.a+json"), None, "application/vnd.a+json"),
        (&["multipart/*"], Some("multipart/mixed; boundary=x"), None, "multipart/mixed; boundary=x"),
        (&["application/*+json", OCTETS], Some("image/webp"), None, OCTETS),
        // What the input names wins.
        (&["text/csv"], Some(LATIN), Some("text/csv"), "text/csv"),
        (&["image/png"], Some("image/webp"), Some("image/png"), "image/png"),
        // All bytes are octets, whatever stands before.
        (&[OCTETS], Some("image/webp"), None, OCTETS),
        (&["image/png", OCTETS], Some("image/webp"), None, OCTETS),
        (&["text/csv", "image/png"], None, None, "text/csv"),
        (&["image/*"], None, None, OCTETS),
        // Bytes of a type that nobody has named may be of any.
        (&["image/png"], Some(OCTETS), None, "image/png"),
        (&["image/png"], Some("binary/octet-stream"), None, "image/png"),
        (&["image/png"], Some(""), None, "image/png"),
        (&["text/csv", "image/png"], Some(OCTETS), None, "text/csv"),
        (&["image/png", OCTETS], Some(OCTETS), None, OCTETS),
        (&["image/*"], Some(OCTETS), None, OCTETS),
        (&["*/*"], Some(""), None, OCTETS),
    ] {
        let found = kind(&any_of(types), own, named).unwrap();
        assert_eq!(found, expected, "{own:?} as {named:?} to {types:?}");
    }
}

#[test]
fn a_body_is_not_sent_as_another_type() {
    for types in [&["image/png", "image/jpeg"][..], &["image/png", "image/jpeg", "application/json"], &["text/*"]] {
        let error = kind(&any_of(types), Some("image/webp"), None).unwrap_err();
        let known: Vec<_> = types.iter().map(|kind| format!("`{kind}`")).collect();
        let message = format!("the endpoint takes no body of type `image/webp`, but {}", known.join(", "));
        assert_eq!(error.details()["violations"], json!([{ "pointer": "/body", "message": message }]));
    }
}

#[test]
fn a_part_is_sent_with_its_own_type_or_not_at_all() {
    const FIELDS: &[HttpField] = &[
        HttpField::new("image").with_content_type("image/png, image/jpeg"),
        HttpField::new("any").with_content_type("image/png, application/octet-stream"),
    ];
    let mut binding = HttpBinding::new("POST", "/");
    binding.bodies = vec![HttpBody::new("multipart/form-data").with_fields(FIELDS)].into();
    let part = |name: &str, own: &str| {
        let mut bodies = Bodies::default();
        let body = bodies.put(Body::from("x").with_content_type(own));
        let input = json!({ "body": { name: body } });
        let spec = OperationSpec::mutation("t.t");
        let encoded = encode(&binding, Input { spec: &spec, members: input.as_object().unwrap(), bodies: &bodies });
        let body = encoded.map_err(|error| error.details()["violations"][0].clone())?.unwrap().body;
        let text = String::from_utf8(body.in_memory().unwrap().to_vec()).unwrap();
        Ok::<_, Value>(text.lines().find_map(|line| line.strip_prefix("Content-Type: ")).unwrap().to_owned())
    };
    assert_eq!(part("image", "image/jpeg; q=1"), Ok("image/jpeg; q=1".to_owned()));
    assert_eq!(part("any", "image/webp"), Ok(OCTETS.to_owned()));
    for any in [OCTETS, "binary/octet-stream", ""] {
        assert_eq!(part("image", any), Ok("image/png".to_owned()), "{any}");
        assert_eq!(part("any", any), Ok(if any.is_empty() { "image/png" } else { OCTETS }.to_owned()), "{any}");
    }
    let message = "a part of type `image/webp` is not taken, but `image/png`, `image/jpeg`";
    assert_eq!(part("image", "image/webp"), Err(json!({ "pointer": "/body/image", "message": message })));
}

#[test]
fn a_file_without_a_type_has_that_of_its_name() {
    const FIELDS: &[HttpField] = &[
        HttpField::new("many")
            .with_content_type("application/pdf, image/jpeg, text/plain; charset=utf-8, image/svg+xml"),
        HttpField::new("one").with_content_type("application/pdf"),
        HttpField::new("jpg").with_content_type("image/png, image/jpg"),
        HttpField::new("any").with_content_type("application/pdf, */*"),
        HttpField::new("octets").with_content_type("application/pdf, application/octet-stream"),
        HttpField::new("image").with_content_type("application/pdf, image/*"),
        HttpField::new("data").with_content_type("application/vnd.api+json, text/plain, audio/mp4"),
    ];
    let mut binding = HttpBinding::new("POST", "/");
    binding.bodies = vec![HttpBody::new("multipart/form-data").with_fields(FIELDS)].into();
    let part = |name: &str, body: Body| {
        let mut bodies = Bodies::default();
        let body = bodies.put(body.with_content_type(""));
        let input = json!({ "body": { name: body } });
        let spec = OperationSpec::mutation("t.t");
        let encoded = encode(&binding, Input { spec: &spec, members: input.as_object().unwrap(), bodies: &bodies });
        let body = encoded.map_err(|error| error.details()["violations"][0].clone())?.unwrap().body;
        let text = String::from_utf8(body.in_memory().unwrap().to_vec()).unwrap();
        Ok::<_, Value>(text.lines().find_map(|line| line.strip_prefix("Content-Type: ")).unwrap().to_owned())
    };
    let named = |file: &str| Body::from("x").with_file_name(file);
    for (file, expected) in [
        ("a.pdf", "application/pdf"),
        ("b.JPG", "image/jpeg"),
        ("c.d.txt", "text/plain; charset=utf-8"),
        ("e.svg", "image/svg+xml"),
        ("no extension", "application/pdf"),
    ] {
        assert_eq!(part("many", named(file)), Ok(expected.to_owned()), "{file}");
        assert_eq!(part("one", named(file)), Ok("application/pdf".to_owned()), "{file}");
    }
    assert_eq!(part("many", Body::from("x")), Ok("application/pdf".to_owned()));
    let message = "the part is one of `application/pdf`, `image/jpeg`, `text/plain; charset=utf-8`, `image/svg+xml`, and \
                   `f.zip` says none of them: set its content type";
    assert_eq!(part("many", named("f.zip")), Err(json!({ "pointer": "/body/many", "message": message })));
    assert_eq!(part("one", named("f.zip")), Ok("application/pdf".to_owned()));
    assert_eq!(part("jpg", named("b.jpg")), Ok("image/jpg".to_owned()));
    for (file, expected) in
        [("data.json", "application/vnd.api+json"), ("server.log", "text/plain"), ("a.m4a", "audio/mp4")]
    {
        assert_eq!(part("data", named(file)), Ok(expected.to_owned()), "{file}");
    }
    assert_eq!(part("image", named("photo.PNG")), Ok("image/png".to_owned()));
    let message =
        "the part is one of `application/pdf`, `image/*`, and `g.heic` does not say which: set its content type";
    assert_eq!(part("image", named("g.heic")), Err(json!({ "pointer": "/body/image", "message": message })));
    // All bytes are octets.
    for name in ["any", "octets"] {
        assert_eq!(part(name, named("f.zip")), Ok(OCTETS.to_owned()), "{name}");
    }
    let message =
        "the part is one of `application/pdf`, `image/*`, and `f.zip` says none of them: set its content type";
    assert_eq!(part("image", named("f.zip")), Err(json!({ "pointer": "/body/image", "message": message })));
}
