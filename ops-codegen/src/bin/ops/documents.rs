//! `ops add` and `ops update`: documents that are fetched, stored beside `ops.toml`, and compared when they are fetched
//! again.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use ops_codegen::write_if_changed;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{Api, Diagnostic};
use ops_runtime::{HttpConfig, mcp};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::arguments::{AddArguments, Credentials, UpdateArguments};
use crate::diff::{Row, rows_of};
use crate::failure::Failure;
use crate::manifest::{Entry, Manifest, NAME};
use crate::modules::{is_list, is_url, runtime, shown};
use crate::progress::Progress;
use crate::report::{clean, print};
use crate::shell::{is_option, quoted};

/// A document that was fetched.
struct Fetched {
    text: String,
    value: Value,
    api: Api,
}

pub(crate) fn add(arguments: &AddArguments) -> Result<(), Failure> {
    if arguments.source == "-" {
        let message =
            "standard input can be read only once, and `ops update` fetches a document again: name a URL or a file";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut manifest = Manifest::open(Path::new(""))?;
    let (source, is_secret) = without_password(&arguments.source);
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => stem(&source),
    };
    if name.is_empty() || is_option(&name) || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    {
        let message = format!(
            "`{name}` is no name of a document: give one of letters, digits, `_` and `-`, which does not begin with `-`, by `--name`"
        );
        return Err(Failure::Usage(message));
    }
    // Names that differ in case only would be those of one file on some systems, and so they are one namespace.
    if let Some(Entry { name, path, .. }) = manifest.entries().iter().find(|one| one.name.eq_ignore_ascii_case(&name)) {
        let message = format!("`{NAME}` has a document `{name}` already, at `{path}`");
        return Err(Failure::Usage(format!("{message}: run `ops update {name}`, or choose another `--name`")));
    }
    let fetched = fetch(&arguments.source, &name, &arguments.credentials)?;
    let is_json = fetched.text.trim_start().starts_with(['{', '[']);
    let path = format!("{name}.{}", if is_json { "json" } else { "yaml" });
    let is_here = !is_url(&source) && is_same_file(Path::new(&source), Path::new(&path));
    let is_foreign = std::fs::read(&path).is_ok_and(|bytes| bytes != fetched.text.as_bytes());
    // The document may be that file.
    if is_foreign && !arguments.force {
        let message =
            format!("there is another file `{path}`: choose another `--name`, or pass `--force` to overwrite it");
        return Err(Failure::Failed(message));
    }
    write(Path::new(&path), &fetched.text)?;
    let has_query = is_url(&source) && url::Url::parse(&source).is_ok_and(|url| url.query().is_some());
    // A document that is here already is kept by hand, and has no source.
    let (source, sha256) = if is_here { (None, None) } else { (Some(source), Some(digest(&fetched.text))) };
    manifest.set(&Entry { name: name.clone(), path: path.clone(), source, sha256 })?;
    manifest.save()?;
    tell(&format!("{path}: {} operations, in `{NAME}` as `{name}`", fetched.api.operations.len()));
    if is_secret {
        tell("the user and password of the URL are not kept: pass credentials by options when you update it");
    }
    if has_query {
        tell(&format!("warning: the query of the URL is kept in `{NAME}`: take it out there if it is a secret"));
    }
    if let Some(told) = without_host(&fetched.api, &arguments.source) {
        tell(&format!("warning: {told}"));
    }
    if let Some(reference) = foreign(&fetched.value).filter(|_| !is_here) {
        tell(&format!("warning: it refers to other documents, which were not fetched, such as `{reference}`"));
    }
    Ok(())
}

pub(crate) fn update(arguments: &UpdateArguments) -> Result<(), Failure> {
    let mut manifest = Manifest::open(Path::new(""))?;
    let entries = manifest.entries();
    if entries.is_empty() {
        return Err(Failure::Usage(match manifest.is_there() {
            true => format!("`{NAME}` names no documents: `ops add` fetches one"),
            false => format!("there is no `{NAME}` here: `ops add` fetches a document, and begins the file"),
        }));
    }
    if let Some(name) = arguments.name.as_ref().filter(|name| !entries.iter().any(|entry| entry.name == **name)) {
        let names: Vec<String> = entries.iter().map(|entry| format!("`{}`", entry.name)).collect();
        return Err(Failure::Usage(format!("`{NAME}` has no document `{name}`: it has {}", names.join(", "))));
    }
    // A check without documents would always succeed.
    if arguments.name.is_none() && entries.iter().all(|entry| entry.source.is_none()) {
        let message = format!("no document of `{NAME}` has a `source`, so there is nothing to fetch");
        return Err(Failure::Usage(message));
    }
    if arguments.name.is_none() && arguments.credentials.is_given() && entries.len() > 1 {
        let message = "credentials are for one document: name it";
        return Err(Failure::Usage(message.to_owned()));
    }
    let (mut failed, mut unreadable, mut news, mut edited) = (Vec::new(), 0, 0, 0);
    let is_wanted = |entry: &Entry| arguments.name.as_ref().is_none_or(|name| *name == entry.name);
    let wanted: Vec<Entry> = entries.into_iter().filter(is_wanted).collect();
    let is_only = wanted.len() == 1;
    for entry in wanted {
        match update_one(&mut manifest, entry, arguments) {
            Ok(News::None) => {}
            Ok(News::Fetched) => news += 1,
            Ok(News::Edited) => edited += 1,
            // One document that fails does not stop the others.
            Err(Failure::Unreadable(diagnostics)) => {
                crate::report::Reporter::default().print_list(&diagnostics);
                unreadable += 1;
            }
            Err(Failure::Failed(message)) => failed.push(message),
            Err(Failure::Usage(message)) if !is_only => failed.push(message),
            Err(other) => return Err(other),
        }
    }
    if arguments.check && news + edited > 0 {
        let with = if edited > 0 { ", and with `--force` to overwrite what was changed here," } else { "" };
        failed.push(format!("run the command without `--check`{with} to write what is new"));
    }
    Failure::of_unreadable(unreadable, Some(failed.join("\n")).filter(|message| !message.is_empty()))
}

/// True if both lead to one file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(one).is_some_and(|one| real(other) == Some(one))
}

/// The result of fetching a document again.
enum News {
    None,
    Fetched,
    /// Its file here was changed by hand, or may have been.
    Edited,
}

/// Fetches a document again.
fn update_one(manifest: &mut Manifest, mut entry: Entry, arguments: &UpdateArguments) -> Result<News, Failure> {
    let (name, path) = (entry.name.clone(), manifest.path(&entry));
    let Some(source) = entry.source.clone() else {
        // Kept by hand.
        if arguments.name.is_some() {
            return Err(Failure::Failed(format!("`{name}` has no `source` in `{NAME}`, so there is nothing to fetch")));
        }
        return Ok(News::None);
    };
    let old = match std::fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(Failure::Failed(format!("`{}` cannot be read: {error}", path.display()))),
    };
    let fetched = fetch(&source, &name, &arguments.credentials)?;
    if old.as_ref() == Some(&fetched.text) {
        tell(&format!("{name}: as it was"));
        let digest = Some(digest(&fetched.text));
        if entry.sha256 != digest && !arguments.check {
            // Written by hand, or the text came here in another way.
            entry.sha256 = digest;
            manifest.set(&entry)?;
            manifest.save()?;
        }
        return Ok(News::None);
    }
    let edited = match (&old, &entry.sha256) {
        (Some(old), Some(known)) if *known != digest(old) => Some("was changed since it was fetched"),
        (Some(_), None) => Some("may have been changed since it was fetched, for it has no `sha256` in `ops.toml`"),
        _ => None,
    };
    if let Some(what) = edited {
        if !arguments.force && !arguments.check {
            let message = format!("`{}` {what}", path.display());
            return Err(Failure::Failed(format!("{message}: pass `--force` to overwrite it")));
        }
        tell(&format!("{name}: `{}` {what}", entry.path));
    }
    match old.as_deref().map(|old| parsed(old, &name, &entry.path)) {
        Some(Ok((_, old))) => {
            let mut rows = Vec::new();
            rows_of(&name, &old, &fetched.api, &mut rows);
            tell_changes(&name, &rows)?;
        }
        Some(Err(_)) => tell(&format!("{name}: the old document cannot be read, so it is not compared")),
        None => tell(&format!("{name}: there is no `{}`", entry.path)),
    }
    if !arguments.check {
        write(&path, &fetched.text)?;
        entry.sha256 = Some(digest(&fetched.text));
        manifest.set(&entry)?;
        manifest.save()?;
        tell(&format!("{name}: `{}` is written anew", entry.path));
    }
    Ok(if edited.is_some() { News::Edited } else { News::Fetched })
}

fn tell_changes(name: &str, rows: &[Row]) -> Result<(), Failure> {
    print(&rows.iter().map(|row| format!("{}\n", row.text)).collect::<String>())?;
    let breaking = rows.iter().filter(|row| row.breaks).count();
    tell(&match (rows.len(), breaking) {
        (0, _) => format!("{name}: the text is new, and no operation changed"),
        (all, breaking) => format!("{name}: changes: {all}, of which {breaking} break callers"),
    });
    Ok(())
}

/// Fetches a document from a URL or a file, and reads it.
fn fetch(source: &str, name: &str, credentials: &Credentials) -> Result<Fetched, Failure> {
    if is_list(source) {
        return Err(Failure::Usage(format!("`{source}` names documents, and is none: name one of them")));
    }
    let text = if is_url(source) {
        let mut config = HttpConfig::new().with_timeout(Duration::from_secs(60));
        if credentials.is_given() {
            // Credentials are for the host of the document.
            config = config.with_base_url(source);
            for (name, value) in credentials.headers()? {
                config = config.with_header(name, value);
            }
            if let Some(auth) = credentials.auth()? {
                config = config.with_auth(auth);
            }
        }
        let progress = Progress::start("fetching");
        let text = runtime()?.block_on(openapi::fetch(source, config));
        drop(progress);
        text.map_err(|error| credentials.lack().beside(&error, Failure::importing(&error, &shown(source))))?
    } else {
        credentials.refuse(&format!("`{source}` is a file, which is read without them"))?;
        let read = std::fs::read_to_string(source);
        read.map_err(|error| {
            let message = format!("cannot read `{source}`: {error}");
            Failure::Unreadable(vec![Diagnostic::error("", message).with_document(source)])
        })?
    };
    let (value, api) = parsed(&text, name, &shown(source))?;
    Ok(Fetched { text, value, api })
}

/// A text as the operations that it describes: those of a document, or of a list of tools.
fn parsed(text: &str, name: &str, location: &str) -> Result<(Value, Api), Failure> {
    let unreadable = |error: Diagnostic| Failure::Unreadable(vec![error.with_document(location)]);
    let value = openapi::parse(text).map_err(unreadable)?;
    let read = if mcp::is_tool_list(&value) {
        mcp::read(&value, &mcp::ReadOptions::new().with_namespace(name))
    } else {
        openapi::read(&value, &ReadOptions::new().with_namespace(name))
    };
    let (api, _) = read.map_err(unreadable)?;
    Ok((value, api))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    write_if_changed(path, text).map(drop).map_err(|error| Failure::Failed(error.to_string()))
}

/// The SHA-256 of a text, in hexadecimal digits.
fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The source without the user and password of a URL; true if there were any.
fn without_password(source: &str) -> (String, bool) {
    match url::Url::parse(source) {
        Ok(mut url) if is_url(source) && (!url.username().is_empty() || url.password().is_some()) => {
            // They fail only for URLs without a host.
            let _ = url.set_username("");
            let _ = url.set_password(None);
            (url.into(), true)
        }
        _ => (source.to_owned(), false),
    }
}

/// The warning for a fetched document that names its server relative to its own URL; `None` if no operation does.
fn without_host(api: &Api, source: &str) -> Option<String> {
    let (source, _) = without_password(source);
    let source = url::Url::parse(&source).ok().filter(|_| is_url(&source))?;
    let servers = api.operations.iter().filter_map(|spec| spec.http()).map(|http| http.server.as_deref());
    let mut relative = servers.filter(|server| server.is_none_or(|own| !own.contains("://") && !own.starts_with('{')));
    let server = relative.next()?;
    let whole = source.join(server.unwrap_or("/")).ok()?;
    let whole = whole.as_str().replace("%7B", "{").replace("%7D", "}");
    let what = server.map_or_else(|| "no server".to_owned(), |server| format!("the server `{server}`, without a host"));
    Some(format!(
        "it names {what}, and its file does not tell where it was fetched: serve and call it with `--base-url {}`",
        quoted(whole.trim_end_matches('/'))
    ))
}

/// The name of a source: its file's, or the host's if that says nothing.
fn stem(source: &str) -> String {
    let plain = |text: &str| -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
        text.chars().map(plain).collect()
    };
    let path = source.split(['?', '#']).next().unwrap_or_default();
    let file = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let host = url::Url::parse(source).ok().filter(|_| is_url(source));
    match host.as_ref().and_then(url::Url::host_str) {
        Some(host) if stem.is_empty() || matches!(stem, "openapi" | "swagger" | "api-docs") => plain(host),
        _ => plain(stem),
    }
}

/// A reference to another document.
fn foreign(document: &Value) -> Option<String> {
    let mut open = vec![document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(node) => {
                let reference = node.get("$ref").and_then(Value::as_str);
                if let Some(reference) = reference.filter(|text| !text.starts_with('#')) {
                    return Some(reference.to_owned());
                }
                open.extend(node.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    None
}

fn tell(text: &str) {
    // If standard error is closed, there is no way to report it.
    let _ = writeln!(std::io::stderr().lock(), "{}", clean(text).replace('\n', " "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_without_a_host() {
        let told = |servers: &str, source: &str| {
            let text = format!(
                "openapi: 3.1.0\ninfo: {{ title: x, version: '1' }}\n{servers}\npaths: {{ /a: {{ get: {{ responses: {{}} }} }} }}"
            );
            without_host(&parsed(&text, "x", "x").ok().unwrap().1, source)
        };
        let source = "https://ann:pw@shop.example.com/v3/openapi.yaml";
        for (servers, base) in [
            ("servers: [{ url: /api/v3/ }]", "https://shop.example.com/api/v3"),
            ("servers: [{ url: . }]", "https://shop.example.com/v3"),
            (
                "servers: [{ url: '/{region}/v3', variables: { region: { default: eu } } }]",
                "'https://shop.example.com/{region}/v3'",
            ),
            // The line is for a shell.
            ("servers: [{ url: '/v3;id' }]", "'https://shop.example.com/v3;id'"),
            ("", "https://shop.example.com"),
        ] {
            let told = told(servers, source).unwrap();
            assert!(told.ends_with(&format!("with `--base-url {base}`")), "{told}");
        }
        assert_eq!(told("servers: [{ url: 'https://api.example.com' }]", source), None);
        assert_eq!(told("", "shop.yaml"), None);
    }

    #[test]
    fn names_and_digests() {
        for (source, name) in [
            ("https://shop.example.com/v1/openapi.json?x=1", "shop_example_com"),
            ("https://example.com/apis/pet%20shop.v2.yaml", "pet_20shop_v2"),
            ("docs/shop.yaml", "shop"),
            ("openapi.json", "openapi"),
        ] {
            assert_eq!(stem(source), name);
        }
        assert_eq!(without_password("https://a:b@c.d/x?y=1"), ("https://c.d/x?y=1".to_owned(), true));
        assert_eq!(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
