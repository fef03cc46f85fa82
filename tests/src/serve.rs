//! A document served by our server: what is sent to it, and the document that it gives of itself.
//!
//! Every operation of a document is registered with a stub, and served over loopback. Requests of our client must come in
//! as they were sent ([`exchange`]), and the document that the server gives must describe the same operations as the one
//! that they are from ([`document`]).

pub mod document;
pub mod exchange;
