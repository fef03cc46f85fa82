//! Contacts that a service keeps: found page by page, added with a photo, changed and removed.

use contacts::{Contact, ContactPatch, CreateContactError, ListContactsInput, Methods, NewContact, NewPhoto};
use futures_util::TryStreamExt;
use ops_runtime::{Body, CallError, HttpClient, HttpConfig, http::Auth};

ops_runtime::include_operations!(pub mod contacts = "contacts");

/// A client of the service.
pub fn connect(url: &str, token: &str) -> Result<HttpClient, CallError> {
    HttpClient::new(HttpConfig::new().with_base_url(url).with_auth(Auth::bearer(token)))
}

/// All contacts with a tag.
pub async fn tagged(client: &HttpClient, tag: &str) -> Result<Vec<Contact>, CallError> {
    let input = ListContactsInput { tag: Some(tag.into()), ..Default::default() };
    let pages = client.list_contacts(input).pages(|input, page| {
        input.cursor = page.data.next.clone();
        input.cursor.is_some()
    });
    pages.map_ok(|page| page.data.items).try_concat().await
}

/// Adds a contact with a photo. If there is one with this e-mail address, it gets the photo.
pub async fn add(client: &HttpClient, name: &str, email: &str, photo: &str) -> Result<Contact, CallError> {
    let new = NewContact { email: Some(email.into()), ..NewContact::new(name) };
    let contact = match client.create_contact(new).await {
        Ok(created) => created.data,
        Err(e) if let Some(CreateContactError::Conflict(old)) = e.declared::<contacts::CreateContact>() => old.existing,
        Err(error) => return Err(error),
    };
    client.upload_photo((contact.id, NewPhoto::new(Body::file(photo)))).await?;
    Ok(contact)
}

/// Clears the phone number of a contact.
pub async fn forget_phone(client: &HttpClient, id: i64) -> Result<Contact, CallError> {
    Ok(client.update_contact((id, ContactPatch { phone: Some(None), ..Default::default() })).await?.data)
}

/// Removes a contact; false if there is none.
pub async fn remove(client: &HttpClient, id: i64) -> Result<bool, CallError> {
    match client.delete_contact(id).await {
        Err(error) if error.status() == Some(404) => Ok(false),
        result => result.map(|_| true),
    }
}
