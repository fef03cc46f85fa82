//! Contacts that a service keeps: found page by page, added with a photo, changed and removed.

use std::error::Error;

use contacts::types::{Contact, NewContact};
use contacts::{Client, ClientInfo};
use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::multipart::{Form, Part};
use serde_json::json;

/// The client of `contacts.yaml`.
pub mod contacts {
    progenitor::generate_api!(spec = "contacts.yaml", interface = Builder);
}

/// A client of the service.
pub fn connect(url: &str, token: &str) -> Result<Client, Box<dyn Error>> {
    let headers = HeaderMap::from_iter([(AUTHORIZATION, format!("Bearer {token}").try_into()?)]);
    Ok(Client::new_with_client(url, reqwest::Client::builder().default_headers(headers).build()?))
}

/// All contacts with a tag.
pub async fn tagged(client: &Client, tag: &str) -> Result<Vec<Contact>, Box<dyn Error>> {
    let mut page = client.list_contacts().tag(tag).send().await?.into_inner();
    let mut contacts = page.items;
    while let Some(cursor) = page.next {
        page = client.list_contacts().tag(tag).cursor(cursor).send().await?.into_inner();
        contacts.append(&mut page.items);
    }
    Ok(contacts)
}

/// Adds a contact with a photo. If there is one with this e-mail address, it gets the photo.
pub async fn add(client: &Client, name: &str, email: &str, photo: &str) -> Result<Contact, Box<dyn Error>> {
    let new = NewContact::builder().name(name).email(email.to_owned());
    let contact = match client.create_contact().body(new).send().await {
        Ok(created) => created.into_inner(),
        Err(contacts::Error::ErrorResponse(conflict)) => conflict.into_inner().existing,
        Err(error) => return Err(error.into()),
    };
    // A document with a form is refused.
    let form = Form::new().part("image", Part::file(photo).await?.mime_str("image/png")?);
    let url = format!("{}/contacts/{}/photo", client.baseurl(), contact.id);
    client.client().post(url).multipart(form).send().await?.error_for_status()?;
    Ok(contact)
}

/// Clears the phone number of a contact.
pub async fn forget_phone(client: &Client, id: i64) -> Result<Contact, Box<dyn Error>> {
    // `ContactPatch` leaves out what is `None`, so that nothing can be cleared.
    let url = format!("{}/contacts/{id}", client.baseurl());
    let response = client.client().patch(url).json(&json!({ "phone": null })).send().await?;
    Ok(response.error_for_status()?.json().await?)
}

/// Removes a contact; false if there is none.
pub async fn remove(client: &Client, id: i64) -> Result<bool, Box<dyn Error>> {
    match client.delete_contact().id(id).send().await {
        Err(contacts::Error::ErrorResponse(problem)) if problem.status() == 404 => Ok(false),
        result => Ok(result.map(|_| true)?),
    }
}
