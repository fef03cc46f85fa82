//! A document served by our server: what is sent to it, and the document that it gives of itself.
//!
//! Every operation of a document is registered with a stub, and served over loopback. Requests of our client must come in
//! as they were sent ([`exchange`]), and the server's own document must describe the same operations as the original one
//! ([`document`]). A request that cannot come in as it was sent has a [`cause`], and a list says how many of these a document
//! has ([`excused`]).

pub mod cause;
pub mod document;
pub mod exchange;
pub mod excused;
