//! A registry as an MCP server, over pipes and over HTTP.

mod asks;
mod calls;
mod changes;
mod client;
mod conformance;
mod document;
mod fixture;
mod http;
mod same;
mod streams;
mod tools;
