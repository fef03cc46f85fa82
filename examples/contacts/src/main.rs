//! Contacts of a service: listed, added with a photo, changed and removed: `cargo run -p contacts`.

use std::error::Error;

pub mod program;
mod server;

use program::contacts::{UpdateContact, UpdateContactError};
use program::{add, connect, forget_phone, remove, tagged};

const JSON: &str = "application/json";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = server::start().await?;
    let client = connect(&server.url, "t-1")?;

    // Page by page, one of which is empty.
    let friends = tagged(&client, "friend").await?;
    let names: Vec<_> = friends.iter().map(|contact| contact.name.as_str()).collect();
    println!("{names:?}");
    assert_eq!(names, ["Ann", "Bob", "Cy"]);
    let pages = ["?tag=friend", "?cursor=p%202&tag=friend", "?cursor=p3&tag=friend"];
    assert_eq!(server.take_requests(), pages.map(|query| plain(&format!("GET /contacts{query}"), JSON)));

    // A new contact, one that is there already, and a photo that is missing.
    let folder = std::env::temp_dir().join(format!("contacts-{}", std::process::id()));
    let photo = folder.join("portrait.png").to_string_lossy().into_owned();
    std::fs::create_dir_all(&folder)?;
    std::fs::write(&photo, "pixels")?;
    let added = add(&client, "Dee", "dee@example.com", &photo).await;
    let found = add(&client, "Ann", "ann@example.com", &photo).await;
    std::fs::remove_dir_all(&folder)?;
    assert_eq!((added?.name.as_str(), found?.name.as_str()), ("Dee", "Ann"));
    println!("{}", add(&client, "Eve", "eve@example.com", &photo).await.unwrap_err());
    let form = "--BOUNDARY\r\nContent-Disposition: form-data; name=\"image\"; filename=\"portrait.png\"\r\n\
                Content-Type: image/png\r\n\r\npixels\r\n--BOUNDARY--\r\n";
    let sent = [
        with_body("POST /contacts", JSON, r#"{"name":"Dee","email":"dee@example.com"}"#),
        with_body("POST /contacts/4/photo", "multipart/form-data; boundary=BOUNDARY", form),
        with_body("POST /contacts", JSON, r#"{"name":"Ann","email":"ann@example.com"}"#),
        with_body("POST /contacts/1/photo", "multipart/form-data; boundary=BOUNDARY", form),
        with_body("POST /contacts", JSON, r#"{"name":"Eve","email":"eve@example.com"}"#),
    ];
    assert_eq!(server.take_requests(), sent);

    // `null` is sent, and nothing that was not said.
    assert_eq!(forget_phone(&client, 1).await?.phone, None);
    let error = forget_phone(&client, 9).await.unwrap_err();
    println!("{error}");
    assert!(matches!(
        error.declared::<UpdateContact>(),
        Some(UpdateContactError::ClientError(problem)) if problem.message == "no such contact"
    ));
    let sent = ["PATCH /contacts/1", "PATCH /contacts/9"].map(|asked| with_body(asked, JSON, r#"{"phone":null}"#));
    assert_eq!(server.take_requests(), sent);

    assert!(remove(&client, 1).await?);
    assert!(!remove(&client, 9).await?);
    assert_eq!(server.take_requests(), ["DELETE /contacts/1", "DELETE /contacts/9"].map(|asked| plain(asked, "*/*")));

    // Another error than those that the program expects is one of the program.
    let stranger = connect(&server.url, "t-2")?;
    assert_eq!(add(&stranger, "Dee", "dee@example.com", &photo).await.unwrap_err().status(), Some(401));
    assert_eq!(remove(&stranger, 1).await.unwrap_err().status(), Some(401));
    assert_eq!(tagged(&stranger, "friend").await.unwrap_err().status(), Some(401));
    Ok(())
}

/// A request without a body, as it arrives.
fn plain(asked: &str, accept: &str) -> String {
    format!("{asked}\naccept: {accept}\nauthorization: Bearer t-1\nuser-agent: {}\n\n", agent())
}

/// A request with a body, as it arrives.
fn with_body(asked: &str, content_type: &str, body: &str) -> String {
    format!(
        "{asked}\naccept: {JSON}\nauthorization: Bearer t-1\ncontent-length: LENGTH\ncontent-type: {content_type}\n\
         user-agent: {}\n\n{body}",
        agent()
    )
}

fn agent() -> String {
    format!("ops-runtime/{}", env!("CARGO_PKG_VERSION"))
}
