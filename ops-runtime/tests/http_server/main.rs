//! A registry over HTTP: what is sent to it byte by byte, and by our own client.

mod access;
mod attacks;
mod auth;
mod bound;
mod calls;
#[cfg(feature = "http-server-compression")]
mod compression;
#[cfg(feature = "docs-page")]
mod docs;
mod document;
mod errors;
mod fixture;
mod functions;
mod hostile;
#[cfg(feature = "jwt")]
mod jwt;
mod left_out;
mod made;
mod metrics;
mod nested;
mod pairs;
mod passed_on;
mod readings;
mod round_trip;
mod several;
mod shutdown;
mod streams;
mod traces;
mod uploads;
mod versions;
mod wrapped;
