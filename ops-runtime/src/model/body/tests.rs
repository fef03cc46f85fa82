//! The JSON of bodies, what they are equal to, and what they show.

use serde_json::{from_value, json, to_value};

use super::Body;

#[test]
fn json_is_base64() {
    let body = Body::from(&[0_u8, 255]);
    assert_eq!(to_value(&body).unwrap(), json!("AP8="));
    assert_eq!(from_value::<Body>(json!("AP8=")).unwrap(), body);
    assert_eq!(from_value::<Body>(json!("AP8")).unwrap(), body);
    assert_eq!(to_value(Body::default()).unwrap(), json!(""));
    assert!(from_value::<Body>(json!(1)).is_err());
    assert!(from_value::<Body>(json!(null)).is_err());
}

#[test]
fn text_that_is_not_base64_is_kept() {
    let body: Body = from_value(json!("no base64!")).unwrap();
    assert_eq!(body.as_bytes(), Some(&b"no base64!"[..]));
    assert_eq!(to_value(&body).unwrap(), json!("no base64!"));
    assert_eq!(body, Body::from("no base64!"));
}

#[test]
fn a_file_has_no_json() {
    let file = Body::file("some/where.txt");
    assert_eq!((file.file_name(), file.as_bytes()), (Some("where.txt"), None));
    let error = to_value(&file).unwrap_err().to_string();
    assert!(error.contains("a binding that streams"), "{error}");
    assert_eq!(file, Body::file("some/where.txt"));
    assert_ne!(file, Body::file("else/where.txt"));
    assert_ne!(file, Body::default());
}

#[test]
fn content_does_not_show() {
    let text = format!("{:?}", Body::from("hush").with_file_name("a.txt"));
    assert!(!text.contains("hush") && text.contains("a.txt"), "{text}");
}

#[cfg(feature = "registry")]
mod streams {
    use super::super::handover;
    use super::*;
    use crate::CallError;
    use futures_util::{FutureExt, StreamExt, stream};

    fn streamed() -> Body {
        Body::stream(stream::iter(["ab", "cd"].map(|piece| Ok(piece.into()))))
    }

    #[test]
    fn a_stream_is_read_once() {
        let body = streamed();
        let clone = body.clone();
        assert_eq!(body, clone);
        assert_ne!(body, streamed());
        assert_eq!(body.bytes(4).now_or_never().unwrap().unwrap(), "abcd");
        let error = clone.bytes(4).now_or_never().unwrap().unwrap_err();
        assert!(error.to_string().contains("read already"), "{error}");
        assert!(streamed().bytes(3).now_or_never().unwrap().unwrap_err().to_string().contains("3 bytes"));
        assert!(to_value(streamed()).unwrap_err().to_string().contains("a stream has no JSON"));
    }

    #[test]
    fn bodies_are_put_aside_in_a_scope_only() {
        let bodies = vec![Body::from("x"), streamed()];
        let (value, aside) = handover::scoped(|| to_value(&bodies).unwrap());
        let placeholders = value.as_array().unwrap();
        assert_ne!(placeholders[0], placeholders[1]);
        assert_eq!(aside.get(&placeholders[0]), Some(&bodies[0]));
        assert_eq!(aside.get(&placeholders[1]), Some(&bodies[1]));
        assert_eq!(aside.get(&json!("eA==")), None);
        let part = json!({ "x": [placeholders[0], "y"] });
        assert_eq!(*aside.to_json(&part).unwrap(), json!({ "x": ["eA==", "y"] }));
        assert!(aside.to_json(&value).unwrap_err().message().contains("a stream has no JSON"));
        assert_eq!(to_value(&bodies[0]).unwrap(), "eA==");
        assert!(to_value(&bodies[1]).is_err());
        let panicked = std::panic::catch_unwind(|| handover::scoped(|| panic!("in a scope")));
        assert!(panicked.is_err());
        assert_eq!(to_value(&bodies[0]).unwrap(), "eA==");
    }

    #[test]
    fn scopes_end_with_what_was_before() {
        let (one, two) = (Body::from("x"), Body::from("y"));
        let ((outer, (inner, within)), aside) = handover::scoped(|| {
            let inner = handover::scoped(|| to_value(&two).unwrap());
            (to_value(&one).unwrap(), inner)
        });
        assert_eq!((within.get(&inner), within.get(&outer)), (Some(&two), None));
        assert_eq!((aside.get(&outer), aside.get(&inner)), (Some(&one), None));

        let is_one = || from_value::<Body>(outer.clone()).unwrap() == one;
        // An input without bodies of its own is read with the bodies of the outer input.
        let none = handover::Bodies::default();
        let read = || (handover::resolving(&within, is_one), handover::resolving(&none, is_one));
        assert_eq!(handover::resolving(&aside, read), (((false, false), (true, true)), true));
        let panics = std::panic::AssertUnwindSafe(|| handover::resolving(&aside, || panic!("while reading")));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(!is_one());
    }

    /// What an input is asked for counts by the bodies that it has, however often it asks for one.
    #[test]
    fn an_input_has_all_bodies_or_not() {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        #[allow(dead_code, reason = "only read")]
        enum Either {
            Numbered { file: Body, number: u8 },
            Named { file: Body, other: Option<String> },
        }
        let mut bodies = handover::Bodies::default();
        let (one, two) = (bodies.put(streamed()), bodies.put(Body::file("b.txt")));
        let has_all = |input| handover::resolving(&bodies, || from_value::<Vec<Either>>(input).unwrap()).1;
        assert!(has_all(json!([{ "file": one }, { "file": two }])));
        assert!(!has_all(json!([{ "file": one }, { "file": one }])));
        assert!(!has_all(json!([{ "file": one, "other": two }])));
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_saved_over_nothing() {
        let folder = std::env::temp_dir().join(format!("ops-body-save-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        let path = folder.join("a.txt");
        std::fs::write(&path, "kept").unwrap();
        let itself = folder.join("sub").join("..").join("a.txt");
        let read = streamed();
        read.clone().bytes(4).await.unwrap();
        for (body, target, told) in [
            (Body::file(&path), &path, "is the body itself"),
            (Body::file(&path), &itself, "is the body itself"),
            (Body::file(folder.join("none")), &path, "none"),
            (Body::file(&folder), &path, ""),
            (read, &path, "read already"),
        ] {
            let error = body.save(target).await.unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept", "{error}");
        }
        // A body that breaks off leaves what is there, and nothing beside it.
        let broken = Body::stream(stream::iter([Ok("ab".into()), Err(std::io::Error::other("reset"))]));
        let told = format!("the file `{}` was not saved: reset", path.display());
        assert_eq!(broken.save(&path).await.unwrap_err().to_string(), told);
        let failure = CallError::new("TIMEOUT", "silent").with_operation("t.get");
        let broken = Body::stream(stream::iter([Ok("ab".into()), Err(std::io::Error::other(failure))]));
        let error = CallError::from(broken.save(&path).await.unwrap_err());
        let told = format!("t.get: TIMEOUT: the file `{}` was not saved: silent", path.display());
        assert_eq!((error.to_string(), error.is_retryable()), (told, true));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        assert_eq!(Body::default().save(&path).await.unwrap(), 0);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_saved_file_takes_the_place_of_another() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let folder = std::env::temp_dir().join(format!("ops-body-place-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (path, link) = (folder.join("a.txt"), folder.join("link"));
        std::fs::write(&path, "longer than before").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&path, &link).unwrap();
        assert_eq!(streamed().save(&link).await.unwrap(), 4);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "abcd");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        // Others can't read what has arrived so far either.
        let files = folder.clone();
        let pieces = stream::iter(0..2).map(move |_| {
            let found = std::fs::read_dir(&files).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
            let mut modes = found.filter(std::fs::Metadata::is_file).map(|found| found.permissions().mode() & 0o777);
            assert!(modes.all(|mode| mode == 0o600));
            Ok("ab".into())
        });
        assert_eq!(Body::stream(pieces).save(&path).await.unwrap(), 4);
        // A device is no file that another could take the place of.
        assert_eq!(streamed().save("/dev/null").await.unwrap(), 4);
        // A link to a file that is not there yet stays one.
        let (later, link) = (folder.join("later.txt"), folder.join("to later"));
        symlink(&later, &link).unwrap();
        assert_eq!(streamed().save(&link).await.unwrap(), 4);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&later).unwrap(), "abcd");
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// Files below `/proc` have a size of 0, whatever they hold.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_file_may_have_more_than_its_size() {
        let path = "/proc/version";
        assert_eq!(std::fs::metadata(path).unwrap().len(), 0);
        let body = Body::file(path);
        assert_eq!((body.length().await.unwrap(), body.known_length()), (None, None));
        assert_eq!(body.bytes(1 << 16).await.unwrap(), std::fs::read(path).unwrap());
        // The first byte of this file cannot be read.
        let body = Body::file("/proc/self/mem");
        assert_eq!((body.length().await.unwrap(), body.known_length()), (None, None));
        let empty = std::env::temp_dir().join(format!("ops-body-empty-{}", std::process::id()));
        std::fs::write(&empty, "").unwrap();
        let body = Body::file(&empty);
        assert_eq!((body.length().await.unwrap(), body.known_length()), (Some(0), Some(0)));
        std::fs::remove_file(empty).unwrap();
    }

    #[tokio::test]
    async fn files() {
        let folder = std::env::temp_dir().join(format!("ops-body-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.bin");
        assert_eq!(streamed().save(&path).await.unwrap(), 4);
        let body = Body::file(&path);
        assert_eq!(body.length().await.unwrap(), Some(4));
        for _ in 0..2 {
            assert_eq!(body.clone().bytes(10).await.unwrap(), "abcd");
        }
        let missing = Body::file(folder.join("none"));
        assert!(missing.length().await.unwrap_err().to_string().contains("none"));
        assert!(missing.into_stream().next().await.unwrap().is_err());
        assert!(Body::file(&folder).length().await.is_err());
        // It can be opened on most systems, but not read.
        let error = Body::file(&folder).bytes(10).await.unwrap_err();
        assert!(error.to_string().starts_with(&format!("the file `{}`: ", folder.display())), "{error}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
