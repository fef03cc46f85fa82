//! The file of `ops serve --config`: what is behind a gateway, and its rules.
//!
//! ```toml
//! tools = "search"                              # or "all", "code"
//! read-only = false
//! exclude = ["tag:admin"]
//! hosts = ["tools.example.com"]                 # how it is reached over HTTP; requests for other names are refused
//! origins = ["https://app.example.com"]         # whose pages may call, too
//! journal = "programs"                          # a folder: what programs of models have done, for after a restart
//!
//! [apis.github]                                 # the namespace
//! spec = "github.json"                          # a file beside this one, or a URL
//! base-url = "https://api.github.com"
//! token = { env = "GITHUB_TOKEN" }              # or { file = "/run/secrets/github" }; secrets do not stand in the file
//!
//! [apis.shop]
//! spec = "shop.yaml"
//! credentials = { shopKey = { env = "SHOP_KEY" } }
//! caller-token = "pass-on"                      # the caller's own token, in place of `token`
//!
//! [apis.billing]
//! spec = "billing.yaml"
//! # A token that is issued in exchange for the caller's own (RFC 8693).
//! caller-token = { exchange = { token-url = "https://login.example.com/token", audience = "https://billing.example.com" } }
//!
//! [mcp]
//! config = "servers.json"                       # MCP servers, as other programs name them; not what starts this one
//!
//! [policy]                                      # patterns of operations; what changes something is asked about
//! allow = ["github.issues/*"]
//! deny = ["DELETE *"]
//!
//! [limits]                                      # of each caller
//! calls-per-second = 20
//! in-flight = 8
//! result-bytes = 65536
//!
//! [audit]
//! file = "calls.jsonl"
//!
//! [callers.ann]                                 # who may call over HTTP
//! token = { env = "ANN_TOKEN" }
//! scopes = ["pets:read"]
//! ```
//!
//! In place of `callers`, those may call over HTTP who have a JWT of an issuer:
//!
//! ```toml
//! [jwt]
//! issuer = "https://login.example.com"          # its keys are fetched
//! audience = "https://tools.example.com"        # this server, as the issuer calls it
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};

use ops_runtime::http::Secret;
use serde::Deserialize;

use super::doors::{check_hosts, check_origins};
use crate::arguments::{Rules, ToolsChoice};
use crate::credentials::variable;
use crate::failure::Failure;
use crate::modules::is_url;
use crate::report::clean;

/// The content of the file.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Config {
    pub(super) tools: Option<Tools>,
    pub(super) read_only: bool,
    pub(super) include: Vec<String>,
    pub(super) exclude: Vec<String>,
    /// The folder of what programs have done.
    pub(super) journal: Option<PathBuf>,
    pub(super) apis: BTreeMap<String, Api>,
    pub(super) mcp: Mcp,
    pub(super) policy: Rules,
    pub(super) limits: Limits,
    pub(super) audit: Audit,
    pub(super) callers: BTreeMap<String, Caller>,
    pub(super) jwt: Option<Jwt>,
    /// The names by which the server is reached over HTTP.
    pub(super) hosts: Vec<String>,
    /// Pages of these origins may send requests, beside those of the server itself.
    pub(super) origins: Vec<String>,
    /// Where it was read: its paths are relative to the folder.
    #[serde(skip)]
    file: PathBuf,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Tools {
    All,
    Search,
    Code,
}

impl From<Tools> for ToolsChoice {
    fn from(tools: Tools) -> Self {
        match tools {
            Tools::All => Self::All,
            Tools::Search => Self::Search,
            Tools::Code => Self::Code,
        }
    }
}

/// An API by its document.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Api {
    pub(super) spec: String,
    pub(super) base_url: Option<String>,
    pub(super) token: Option<From_>,
    #[serde(default)]
    pub(super) credentials: BTreeMap<String, From_>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, From_>,
    pub(super) caller_token: Option<CallerToken>,
    /// In seconds.
    pub(super) timeout: Option<NonZeroU64>,
}

/// What becomes of the token that a caller came with.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CallerToken {
    PassOn,
    Exchange(Exchange),
}

/// Where a caller's token is exchanged, and by whom.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Exchange {
    pub(super) token_url: String,
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<From_>,
    pub(super) audience: Option<String>,
    pub(super) resource: Option<String>,
    pub(super) scopes: Option<Vec<String>>,
}

/// Where a secret is.
#[derive(Deserialize)]
#[serde(try_from = "toml::Value")]
pub(super) enum From_ {
    Env(String),
    File(PathBuf),
}

impl TryFrom<toml::Value> for From_ {
    type Error = &'static str;

    // The error does not show the value: it may be a secret, and hosts keep what is printed in logs.
    fn try_from(value: toml::Value) -> Result<Self, Self::Error> {
        let table = if let toml::Value::Table(table) = value { table } else { toml::Table::new() };
        match table.iter().next() {
            Some((key, toml::Value::String(name))) if table.len() == 1 && key == "env" => Ok(Self::Env(name.clone())),
            Some((key, toml::Value::String(path))) if table.len() == 1 && key == "file" => Ok(Self::File(path.into())),
            _ => Err("a secret is not written here: write `{ env = \"NAME\" }` or `{ file = \"PATH\" }`"),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Mcp {
    pub(super) config: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Limits {
    pub(super) calls_per_second: Option<NonZeroU32>,
    pub(super) burst: Option<NonZeroU32>,
    pub(super) in_flight: Option<NonZeroUsize>,
    pub(super) result_bytes: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Audit {
    pub(super) file: Option<PathBuf>,
}

/// A caller that is allowed over HTTP.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Caller {
    pub(super) token: From_,
    #[serde(default)]
    pub(super) scopes: Vec<String>,
}

/// Those who may call over HTTP: who has a token of this issuer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Jwt {
    pub(super) issuer: String,
    pub(super) audience: String,
}

impl Config {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::Usage(format!("`{shown}` cannot be read: {error}")))?;
        let mut config: Self = toml::from_str(&text).map_err(|error| {
            // Without the line itself, which may hold a secret.
            let line =
                error.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
            let place = line.map_or_else(String::new, |line| format!(", line {line}"));
            Failure::Usage(format!("`{shown}`{place}: {}", without_value(error.message())))
        })?;
        let doors = check_hosts(&config.hosts).and_then(|()| check_origins(&config.origins));
        doors.map_err(|told| Failure::Usage(format!("`{shown}`: {}", clean(&told))))?;
        config.file = path.to_owned();
        Ok(config)
    }

    /// A path of the file, as the process finds it.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(path)
    }

    /// A file or URL of the file, as the process finds it.
    pub(super) fn location(&self, location: &str) -> String {
        if is_url(location) {
            return location.to_owned();
        }
        self.path(Path::new(location)).to_string_lossy().into_owned()
    }

    /// The failure of what the file has at `place`.
    pub(super) fn refused(&self, place: &str, what: &str) -> Failure {
        Failure::Usage(format!("`{}`, `{place}`: {what}", self.file.display()))
    }

    /// The secret that the file names at `place`. Errors say where it is missing, never what it is.
    pub(super) fn secret(&self, place: &str, from: &From_) -> Result<Secret, Failure> {
        let refused = |what: String| self.refused(place, &what);
        let (text, source) = match from {
            From_::Env(name) => {
                let source = format!("the environment variable `{name}`");
                let value = variable(name).map_err(&refused)?;
                (value.ok_or_else(|| refused(format!("{source} is not set")))?, source)
            }
            From_::File(path) => {
                let path = self.path(path);
                let source = format!("`{}`", path.display());
                let read = std::fs::read_to_string(&path);
                (read.map_err(|error| refused(format!("{source} cannot be read: {error}")))?, source)
            }
        };
        match text.trim() {
            "" => Err(refused(format!("{source} is empty: it should hold the secret"))),
            text => Ok(Secret::from(text)),
        }
    }
}

/// The message of an error without the value that does not do: it may be a secret that stands in the wrong place.
fn without_value(message: &str) -> Cow<'_, str> {
    let kinds = ["invalid type: ", "invalid value: ", "unknown variant "];
    if !kinds.iter().any(|kind| message.starts_with(kind)) {
        return Cow::Borrowed(message);
    }
    // A value is quoted or between back-ticks; whatever is in it, what was expected comes last.
    match (message.find(['"', '`']), message.rfind(", expected ")) {
        (Some(value), Some(expected)) if value < expected => {
            let (kind, expected) =
                (message.get(..value).unwrap_or_default(), message.get(expected..).unwrap_or_default());
            Cow::Owned(format!("{}{expected}", kind.trim_end()))
        }
        _ => Cow::Borrowed(message),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Config;

    #[test]
    fn a_secret_in_the_place_of_its_source_is_not_told() {
        let folder = std::env::temp_dir().join(format!("ops-config-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("gateway.toml");
        for value in ["\"SECRET-9f3a\"", "SECRET-9f3a", "{ value = \"SECRET-9f3a\" }", "[\"SECRET-9f3a\"]"] {
            std::fs::write(&file, format!("[apis.shop]\nspec = \"shop.yaml\"\ntoken = {value}\n")).unwrap();
            let Err(crate::Failure::Usage(told)) = Config::read(&file) else { panic!("{value} is taken") };
            assert!(told.contains("line 3") && !told.contains("SECRET"), "{told}");
        }
        for (place, expected) in [
            ("[callers]\nann = \"SECRET-9f3a\"", "line 2: invalid type: string, expected struct Caller"),
            (
                "[apis.shop]\nspec = \"shop.yaml\"\ncredentials = \"SECRET-9f3a\"",
                "line 3: invalid type: string, expected a map",
            ),
            (
                "[apis.shop]\nspec = \"shop.yaml\"\nheaders = \"SECRET, expected \\\" `\"",
                "line 3: invalid type: string, expected a map",
            ),
            ("[apis.shop]\nspec = \"shop.yaml\"\ncaller-token = \"SECRET-9f3a\"", "line 3: unknown variant, expected "),
            // No limit is 0: it would be taken for one call.
            ("[limits]\ncalls-per-second = 0", "line 2: invalid value: integer, expected a nonzero u32"),
            ("[limits]\nin-flight = 5\nburst = 0", "line 3: invalid value: integer, expected a nonzero u32"),
            ("[limits]\nin-flight = 0", "line 2: invalid value: integer, expected a nonzero usize"),
            // Nor is a timeout.
            (
                "[apis.shop]\nspec = \"shop.yaml\"\ntimeout = 0",
                "line 3: invalid value: integer, expected a nonzero u64",
            ),
        ] {
            std::fs::write(&file, format!("{place}\n")).unwrap();
            let Err(crate::Failure::Usage(told)) = Config::read(&file) else { panic!("{place} is taken") };
            assert!(told.contains(expected) && !told.contains("SECRET"), "{told}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn names_that_let_nobody_in_are_told() {
        let file = std::env::temp_dir().join(format!("ops-config-doors-{}.toml", std::process::id()));
        for (setting, told) in [
            ("hosts = [\"https://tools.example.com\"]", "`hosts` has `https://tools.example.com`"),
            ("origins = [\"app.example.com\"]", "`origins` has `app.example.com`"),
        ] {
            std::fs::write(&file, setting).unwrap();
            let Err(crate::Failure::Usage(refused)) = Config::read(&file) else { panic!("{setting} is taken") };
            assert!(refused.contains(told), "{refused}");
        }
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn the_reference_has_each_key() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let page = std::fs::read_to_string(root.join("docs/src/reference/gateway.md")).unwrap();
        let (_, example) = page.split_once("```toml\n").unwrap();
        let (example, tables) = example.split_once("```").unwrap();
        let example: Config = toml::from_str(example).unwrap();
        assert_eq!((example.apis.len(), example.callers["ann"].scopes.len()), (2, 2));
        let fields = |source: &'static str, before: &'static str| {
            source.lines().filter_map(move |line| line.strip_prefix(before)?.split_once(": ")).map(|(name, _)| name)
        };
        let own = include_str!("config.rs").split("impl Config").next().unwrap();
        let rules = include_str!("../arguments/rules.rs").split("impl Rules").next().unwrap();
        let mut count = 0;
        for field in fields(own, "    pub(super) ").chain(fields(rules, "    pub(crate) ")) {
            let key = format!("`{}`", field.replace('_', "-"));
            assert!(
                ["apis", "mcp", "policy", "limits", "audit", "callers", "jwt"].contains(&field)
                    || tables.contains(&key),
                "{key}"
            );
            count += 1;
        }
        assert!(count > 35, "{count} keys");
    }

    #[test]
    fn the_file_of_the_documentation_is_one() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let page = std::fs::read_to_string(root.join("docs/src/concepts/agents.md")).unwrap();
        let (_, rest) = page.split_once("```toml\n").unwrap();
        let shown: Config = toml::from_str(rest.split_once("```").unwrap().0).unwrap();
        assert_eq!(shown.apis.keys().collect::<Vec<_>>(), ["github"]);
        assert_eq!((shown.policy.deny.as_slice(), shown.callers.len()), (&["DELETE *".to_owned()][..], 1));
        let own = include_str!("config.rs").lines().filter_map(|line| line.strip_prefix("//! "));
        let own: Vec<&str> =
            own.skip_while(|line| *line != "```toml").skip(1).take_while(|line| *line != "```").collect();
        let own: Config = toml::from_str(&own.join("\n")).unwrap();
        assert_eq!(own.apis.keys().collect::<Vec<_>>(), ["billing", "github", "shop"]);
    }
}
