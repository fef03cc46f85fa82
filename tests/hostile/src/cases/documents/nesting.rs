//! Chains of references, and JSON that is nested deeper than its readers go.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use futures_util::StreamExt as _;
use ops_runtime::openapi::from_openapi;
use ops_runtime::{HttpConfig, Registry};
use serde_json::json;

use super::{document, gives, joined, made, made_of_tools};
use crate::{Outcome, block_on};

/// Runs in a thread with the stack of a thread of a runtime.
fn small(run: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run);
    let thread = thread.map_err(|error| error.to_string())?;
    thread.join().unwrap_or_else(|_| Err("a panic".to_owned()))
}

pub(super) fn chain_of_all_of(count: usize) -> Outcome {
    chain(count, r#"{"allOf":[REF]}"#)?;
    chain(count, r#"{"type":"object","allOf":[REF,{"properties":{"own":{"type":"string"}}}]}"#)
}

pub(super) fn chain_of_nullable(count: usize) -> Outcome {
    chain(count, r#"{"anyOf":[REF,{"type":"null"}]}"#)
}

pub(super) fn chain_of_any_of(count: usize) -> Outcome {
    chain(count, r#"{"anyOf":[REF,{"type":"integer"}]}"#)
}

/// A body whose parts are looked through for the boolean that chooses a stream.
pub(super) fn chain_below_a_switch(count: usize) -> Outcome {
    small(move || {
        let schemas = joined(count, |at| {
            let next = format!(r##"{{"$ref":"#/components/schemas/S{}"}}"##, at + 1);
            format!(r#""S{at}":{{"allOf":[{next},{{"required":["stream"]}}]}}"#)
        });
        let last = format!(r#""S{count}":{{"type":"object","properties":{{"end":{{"type":"string"}}}}}}"#);
        let own = r#"{"type":"object","properties":{"stream":{"type":"boolean"}}}"#;
        let body = format!(
            r##"{{"application/json":{{"schema":{{"allOf":[{own},{{"$ref":"#/components/schemas/S0"}}]}}}}}}"##
        );
        let answers = r#"{"200":{"description":"","content":{"application/json":{},"text/event-stream":{}}}}"#;
        let path = format!(
            r#""/chat":{{"post":{{"operationId":"chat","requestBody":{{"content":{body}}},"responses":{answers}}}}}"#
        );
        made(document(&path, &format!(r#""schemas":{{{schemas},{last}}}"#)))?.bounded()
    })
}

pub(super) fn chain_of_references(count: usize) -> Outcome {
    chain(count, "REF")
}

pub(super) fn chain_of_arrays(count: usize) -> Outcome {
    chain(count, r#"{"type":"array","items":REF}"#)
}

pub(super) fn chain_of_objects(count: usize) -> Outcome {
    chain(count, r#"{"type":"object","required":["a"],"properties":{"a":REF}}"#)
}

/// Schemas of which each refers to the next, read, generated from, and used.
fn chain(count: usize, link: &'static str) -> Outcome {
    small(move || {
        let schemas = joined(count, |at| {
            let next = format!(r##"{{"$ref":"#/components/schemas/S{}"}}"##, at + 1);
            format!(r#""S{at}":{}"#, link.replace("REF", &next))
        });
        let last = format!(r#""S{count}":{{"type":"object","properties":{{"end":{{"type":"string"}}}}}}"#);
        let components = format!(r#""schemas":{{{schemas},{last}}}"#);
        let text = document(&gives("all", r##"{"$ref":"#/components/schemas/S0"}"##), &components);
        let made = made(text)?;
        // Aliases of aliases are followed by rustc one in the other, and no deeper than it allows.
        let longest = longest_chain_of_aliases(&made.source);
        if longest > 128 {
            return Err(format!("a chain of {longest} aliases"));
        }
        made.bounded()
    })
}

fn longest_chain_of_aliases(source: &str) -> usize {
    let aliases: BTreeMap<&str, &str> = source
        .lines()
        .filter_map(|line| line.strip_prefix("pub type ")?.strip_suffix(';')?.split_once(" = "))
        .map(|(name, of)| {
            let last = of.rsplit("::").next().unwrap_or(of);
            (name, last.trim_start_matches("Option<").trim_end_matches('>'))
        })
        .collect();
    // Each is followed as far as what is known already, so that this takes no part worth naming of the case's time.
    let mut lengths: BTreeMap<&str, usize> = BTreeMap::new();
    for first in aliases.keys() {
        let mut followed = vec![*first];
        while let Some(next) = followed.last().and_then(|name| aliases.get(name)) {
            // A circle of aliases is as long as one likes.
            if followed.len() > aliases.len() {
                return usize::MAX;
            }
            followed.push(next);
            if lengths.contains_key(next) {
                break;
            }
        }
        let known = followed.pop().and_then(|last| lengths.get(last).copied()).unwrap_or(0);
        for (from_the_end, name) in followed.iter().rev().enumerate() {
            lengths.insert(name, known + from_the_end + 1);
        }
    }
    lengths.into_values().max().unwrap_or(0)
}

/// So many lists, one in the other.
fn deep(count: usize) -> String {
    format!("{}{}", "[".repeat(count), "]".repeat(count))
}

pub(super) fn deep_schema(count: usize) -> Outcome {
    small(move || {
        let text = deep(count);
        let odd = gives("odd", &format!(r#"{{"type":"string","default":{text},"x-deep":{text}}}"#));
        let made = made(document(&format!("{odd},{}", gives("fine", r#"{"type":"integer"}"#)), ""))?;
        let told = made.diagnostics.iter().any(|d| d.pointer.starts_with("/paths/~1odd") && d.message.contains("deep"));
        if made.api.operations.len() != 2 || !told {
            return Err(format!("{}: {:?}", made.told(), made.diagnostics.first()));
        }
        made.bounded()
    })
}

pub(super) fn deep_tool(count: usize) -> Outcome {
    small(move || {
        let odd = format!(r#"{{"name":"odd","inputSchema":{{"type":"object","default":{}}}}}"#, deep(count));
        let made =
            made_of_tools(format!(r#"{{"tools":[{odd},{{"name":"fine","inputSchema":{{"type":"object"}}}}]}}"#))?;
        if !made.api.operations.iter().any(|spec| spec.name() == "fine") {
            return Err(made.told());
        }
        made.bounded()
    })
}

pub(super) fn deep_event(count: usize) -> Outcome {
    items(format!("data: 1\n\ndata: {}\n\ndata: 3\n\n", deep(count)), "text/event-stream")
}

pub(super) fn deep_line(count: usize) -> Outcome {
    items(format!("1\n{}\n3\n", deep(count)), "application/x-ndjson")
}

/// The items of a stream of which the second is nested too deeply.
fn items(body: String, media_type: &'static str) -> Outcome {
    let registry = served(body, media_type)?;
    block_on(async move {
        let mut items = registry.stream("s.o", json!({})).await.map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        while let Some(item) = items.next().await {
            found.push(item.map(|item| item.data));
        }
        match found.as_slice() {
            [Ok(first), Err(error), Ok(last)] if *first == 1 && *last == 3 => Ok(error.message().to_owned()),
            other => Err(format!("{other:?}").chars().take(300).collect()),
        }
    })
}

pub(super) fn deep_response(count: usize) -> Outcome {
    let registry = served(deep(count), "application/json")?;
    block_on(async move {
        match registry.call("s.o", json!({})).await {
            Ok(envelope) => Ok(format!("{} warnings", envelope.warnings.len())),
            Err(error) => Ok(error.message().chars().take(200).collect()),
        }
    })
}

/// A registry with one operation, and a server that gives one answer to it.
fn served(body: String, media_type: &'static str) -> Result<Registry, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 4096]);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    let content = format!(r#"{{"{media_type}":{{"schema":{{}}}}}}"#);
    let path = format!(
        r#""/o":{{"get":{{"operationId":"o","responses":{{"200":{{"description":"","content":{content}}}}}}}}}"#
    );
    let config = HttpConfig::new().with_namespace("s").with_base_url(format!("http://{address}"));
    let imported = from_openapi(&document(&path, ""), config).map_err(|error| error.to_string())?;
    let registry = Registry::new();
    registry.register_all(imported).map_err(|error| error.to_string())?;
    Ok(registry)
}
