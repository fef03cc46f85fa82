//! Reading a configuration file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use jsonc_parser::ParseOptions;
use serde_json::{Map, Value};

use super::interpolate::interpolate;
use super::{Http, McpConfig, McpServerConfig, Stdio, Target, Wrong};
use crate::CallError;
use crate::mcp::invalid;

type LookUp<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The keys whose strings may contain variables; others are not substituted.
const VARIABLE: [&str; 11] =
    ["command", "args", "env", "cwd", "url", "serverUrl", "baseUrl", "headers", "auth", "type", "transport"];

/// The JSON of editors: with comments, and commas after the last item.
const EDITORS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_extended_string_escapes: false,
    allow_non_finite_numbers: false,
};

/// The value of a text, as editors write it.
pub(super) fn parse(text: &str) -> Result<Value, CallError> {
    jsonc_parser::parse_to_serde_value(text.trim_start_matches('\u{feff}'), &EDITORS)
        .map_err(|error| invalid(format!("the configuration is not JSON: {error}")))
}

pub(super) fn read(text: &str, look_up: LookUp<'_>) -> Result<McpConfig, CallError> {
    let value = parse(text)?;
    let servers = ["mcpServers", "servers"].iter().find_map(|key| value.get(key));
    let Some(Value::Object(servers)) = servers else {
        return Err(invalid("the configuration has no object `mcpServers` or `servers`"));
    };
    let servers = servers.iter().map(|(name, server)| {
        let read = Keys::of(server, look_up).and_then(Keys::server);
        let wrong = |message: String| Wrong {
            error: invalid(format!("the MCP server `{name}`: {message}")),
            disabled: is_disabled(server),
        };
        (name.clone(), read.map_err(wrong))
    });
    Ok(McpConfig { servers: servers.collect() })
}

/// True if a server is not to be used.
fn is_disabled(server: &Value) -> bool {
    server.get("disabled") == Some(&Value::Bool(true))
}

/// The keys of one server that are not taken yet, with variables filled in.
struct Keys {
    keys: Map<String, Value>,
    /// The strings with unsubstituted variables, to be shown instead.
    written: BTreeMap<String, String>,
    /// The substituted variables.
    filled: Vec<(String, String)>,
}

impl Keys {
    fn of(server: &Value, look_up: LookUp<'_>) -> Result<Self, String> {
        let is_disabled = is_disabled(server);
        let Value::Object(server) = server else { return Err("it is not an object".to_owned()) };
        let mut server = server.clone();
        let mut written = BTreeMap::new();
        let filled = RefCell::new(Vec::new());
        let look_up = |name: &str| {
            let value = look_up(name)?;
            filled.borrow_mut().push((name.to_owned(), value.clone()));
            Some(value)
        };
        // A server that is not used need not be complete.
        if !is_disabled {
            for (key, value) in server.iter_mut().filter(|(key, _)| VARIABLE.contains(&key.as_str())) {
                let before = value.as_str().map(str::to_owned);
                fill(value, &look_up).map_err(|message| format!("in `{key}`, {message}"))?;
                if let Some(before) = before.filter(|before| value.as_str() != Some(before)) {
                    written.insert(key.clone(), before);
                }
            }
        }
        Ok(Self { keys: server, written, filled: filled.into_inner() })
    }

    fn server(mut self) -> Result<McpServerConfig, String> {
        let (kind_key, kind) = match self.text("type")? {
            Some(kind) => ("type", Some(kind)),
            None => ("transport", self.text("transport")?),
        };
        let command = self.text("command")?;
        let (mut url, mut shown_url) = (None, None);
        for key in ["url", "serverUrl", "baseUrl"] {
            if let (None, Some(text)) = (&url, self.text(key)?) {
                (url, shown_url) = (Some(text), self.written.get(key).cloned());
            }
        }
        let target = match (kind.as_deref(), command, url) {
            (None | Some("stdio"), Some(command), None) => Target::Stdio(self.stdio(command)?),
            // `sse` is the older transport; today, servers with that setting use streamable HTTP.
            (
                None | Some("http" | "streamable-http" | "streamableHttp" | "streamable_http" | "sse"),
                None,
                Some(url),
            ) => Target::Http(self.http(url, shown_url)?),
            (_, Some(_), Some(_)) => return Err("it has both `command` and `url`: one of them must go".to_owned()),
            (_, None, None) => return Err("it has neither `command` nor `url`".to_owned()),
            (Some(kind), ..) => {
                let kind = self.written.get(kind_key).map_or(kind, String::as_str);
                return Err(format!(
                    "the transport `{kind}` does not fit, or is not known: `stdio` goes with `command`, `http` with `url`"
                ));
            }
        };
        let mut server = McpServerConfig::new(target);
        if let Some(timeout) = self.timeout()? {
            server.timeout = Some(timeout);
        }
        server.disabled = match self.keys.shift_remove("disabled") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(disabled)) => disabled,
            Some(_) => return Err("`disabled` is neither true nor false".to_owned()),
        };
        (server.extra, server.filled) = (self.keys, self.filled);
        Ok(server)
    }

    fn stdio(&mut self, command: String) -> Result<Stdio, String> {
        let args = match self.keys.shift_remove("args") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(args)) => args
                .into_iter()
                .map(|arg| scalar(arg).ok_or("`args` is not a list of strings"))
                .collect::<Result<_, _>>()?,
            Some(_) => return Err("`args` is not a list of strings".to_owned()),
        };
        let env = self.texts("env")?;
        let cwd = self.text("cwd")?.map(PathBuf::from);
        let shown = |key: &str| self.written.get(key).cloned();
        let (shown_command, shown_cwd) = (shown("command"), shown("cwd"));
        Ok(Stdio { command, shown_command, shown_cwd, args, env, inherit_env: false, cwd })
    }

    fn http(&mut self, url: String, shown_url: Option<String>) -> Result<Http, String> {
        let headers = self.texts("headers")?;
        let (bearer, oauth) = match self.text("auth")? {
            Some(auth) if auth == "oauth" => (None, true),
            // The variable behind a scheme may be empty.
            Some(auth) => match auth.trim_start().split_once(' ') {
                Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
                    (Some(token.trim().to_owned()), false)
                }
                Some((_, rest)) if !rest.trim().is_empty() => {
                    return Err("`auth` has another scheme than `Bearer`: set it in `headers`".to_owned());
                }
                _ => (Some(auth), false),
            },
            None => (None, false),
        };
        Ok(Http { url, shown_url, headers, bearer, oauth })
    }

    fn timeout(&mut self) -> Result<Option<Duration>, String> {
        match self.keys.shift_remove("timeout") {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let milliseconds =
                    value.as_f64().filter(|ms| *ms > 0.0).map(|ms| Duration::try_from_secs_f64(ms / 1000.0));
                match milliseconds {
                    Some(Ok(timeout)) => Ok(Some(timeout)),
                    _ => Err("`timeout` is not a number of milliseconds above 0".to_owned()),
                }
            }
        }
    }

    fn text(&mut self, key: &str) -> Result<Option<String>, String> {
        match self.keys.shift_remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("`{key}` is not a string")),
        }
    }

    fn texts(&mut self, key: &str) -> Result<BTreeMap<String, String>, String> {
        let wrong = || format!("`{key}` is not an object of strings");
        match self.keys.shift_remove(key) {
            None | Some(Value::Null) => Ok(BTreeMap::new()),
            Some(Value::Object(texts)) => {
                texts.into_iter().map(|(name, value)| Ok((name, scalar(value).ok_or_else(wrong)?))).collect()
            }
            Some(_) => Err(wrong()),
        }
    }
}

/// A text; people write numbers and booleans without quotes.
fn scalar(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// Substitutes variables, in strings at any depth; the JSON parser limits the depth.
fn fill(value: &mut Value, look_up: LookUp<'_>) -> Result<(), String> {
    match value {
        Value::String(text) => *text = interpolate(text, look_up)?,
        Value::Array(items) => items.iter_mut().try_for_each(|item| fill(item, look_up))?,
        Value::Object(members) => members.values_mut().try_for_each(|member| fill(member, look_up))?,
        _ => {}
    }
    Ok(())
}
