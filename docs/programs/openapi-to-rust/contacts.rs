//! Contacts that a service keeps: found page by page, added with a photo, changed and removed.

use std::error::Error;
use std::path::Path;

use contacts::{ApiError, ApiOpError, Contact, CreateContactApiError, HttpClient, MultipartFile};

/// The client of `contacts.yaml`.
pub mod contacts;

/// A client of the service.
pub fn connect(url: &str, token: &str) -> HttpClient {
    HttpClient::new().with_base_url(url).with_api_key(token)
}

/// All contacts with a tag.
pub async fn tagged(client: &HttpClient, tag: &str) -> Result<Vec<Contact>, Box<dyn Error>> {
    let mut page = client.list_contacts_builder().tag(tag).send().await?;
    let mut contacts = page.items;
    while let Some(cursor) = page.next {
        page = client.list_contacts_builder().tag(tag).cursor(cursor).send().await?;
        contacts.append(&mut page.items);
    }
    Ok(contacts)
}

/// Adds a contact with a photo. If there is one with this e-mail address, it gets the photo.
pub async fn add(client: &HttpClient, name: &str, email: &str, photo: &str) -> Result<Contact, Box<dyn Error>> {
    let contact = match client.create_contact_builder(name.into()).email(email.into()).send().await {
        Ok(created) => created,
        Err(ApiOpError::Api(ApiError { typed: Some(CreateContactApiError::Status409(found)), .. })) => found.existing,
        Err(error) => return Err(error.into()),
    };
    // The whole file is held in memory.
    let file_name = Path::new(photo).file_name().ok_or("not a file")?.to_string_lossy();
    let image = MultipartFile::new(tokio::fs::read(photo).await?).with_file_name(file_name);
    client.upload_photo_builder(contact.id, image).send().await?;
    Ok(contact)
}

/// Clears the phone number of a contact.
pub async fn forget_phone(client: &HttpClient, id: i64) -> Result<Contact, Box<dyn Error>> {
    Ok(client.update_contact_builder(id).phone_null().send().await?)
}

/// Removes a contact; false if there is none.
pub async fn remove(client: &HttpClient, id: i64) -> Result<bool, Box<dyn Error>> {
    match client.delete_contact(id).await {
        Err(ApiOpError::Api(error)) if error.status == 404 => Ok(false),
        result => Ok(result.map(|()| true)?),
    }
}
