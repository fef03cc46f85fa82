use std::path::{Path, PathBuf};

use super::Config;
use crate::Error;

const FULL: &str = r##"
[documents.shop]
source = "https://shop.example.com/openapi.yaml"
overlays = ["shop.overlay.yaml"]
path = "api/shop.yaml"
sha256 = "9f86"
include = ["tag:Billing", "show*"]
exclude = ["*Draft"]
explicit_null = ["edit*"]
schemas = ["Webhook*"]
types = { Money = "crate::Money" }
rename = { "com.example.PetV2" = "Pet" }
rename_fields = { "com.example.PetV2".type = "kind", Owner = { a-b = "ab" } }
derives = { "Pet*" = ["Hash", "PartialOrd"] }
rust_types = true
server = true
formats = ["url"]
methods = true

[documents]
bank.path = "../bank.json"
bank.server = "partial"

[generate]
out = "src/api"
runtime = "crate::ops"
formats = true
methods = false
only_used = true
"##;

#[test]
fn every_setting_is_read() {
    let config = Config::parse("conf/ops.toml", FULL).unwrap();
    assert_eq!((config.out.as_deref(), config.only_used), (Some("src/api"), true));
    assert_eq!(config.resolve("src/api"), Path::new("conf/src/api"));
    let [shop, bank] = &config.documents[..] else { panic!("{config:?}") };
    assert_eq!(
        (shop.name.as_str(), shop.path.as_str(), shop.sha256.as_deref()),
        ("shop", "api/shop.yaml", Some("9f86"))
    );
    assert_eq!(shop.source.as_deref(), Some("https://shop.example.com/openapi.yaml"));
    assert_eq!((bank.name.as_str(), bank.path.as_str(), &bank.source), ("bank", "../bank.json", &None));
    assert_eq!(
        (&shop.include[..], &shop.exclude[..]),
        (&["tag:Billing".to_owned(), "show*".to_owned()][..], &["*Draft".to_owned()][..])
    );
    assert_eq!(shop.overlays, ["shop.overlay.yaml"]);
    // Settings of generators, as their methods set them.
    let base = || crate::Generator::new().with_runtime("crate::ops").unwrap();
    let bank_generator = crate::config::read::all_formats().into_iter().fold(base(), crate::Generator::with_format);
    assert_eq!(
        format!("{:?}", bank.generator),
        format!("{:?}", bank_generator.without_methods().with_partial_server())
    );
    let shop_generator = base()
        .with_explicit_null("edit*")
        .with_schema("Webhook*")
        .with_type("Money", "crate::Money")
        .and_then(|it| it.with_renamed_type("com.example.PetV2", "Pet"))
        .and_then(|it| it.with_renamed_field("com.example.PetV2", "type", "kind"))
        .and_then(|it| it.with_renamed_field("Owner", "a-b", "ab"))
        .and_then(|it| it.with_derive("Pet*", "Hash"))
        .and_then(|it| it.with_derive("Pet*", "PartialOrd"))
        .unwrap()
        .with_rust_types()
        .with_server()
        .with_format(crate::Format::Uri);
    assert_eq!(format!("{:?}", shop.generator), format!("{shop_generator:?}"));
}

#[test]
fn an_empty_file_has_no_documents() {
    let config = Config::parse("ops.toml", "# nothing yet\n[documents]\n").unwrap();
    assert!(config.documents.is_empty() && config.out.is_none());
    assert_eq!((config.path.clone(), config.folder()), (PathBuf::from("ops.toml"), Path::new("")));
    assert_eq!(config.resolve("a/b"), Path::new("a/b"));
}

#[test]
fn every_fault_has_its_line() {
    for (text, wanted) in [
        (
            "[generate]\nouts = 'x'\nformats = ['crono', 1, 'uuid']\nmethods = 'no'\nruntime = 'a b'\n[docments.x]\npath = 'x'\n",
            &[
                (2, "`generate.outs` is no setting: did you mean `out`?"),
                (3, "`generate.formats[0]`: `crono` is no crate of formats: there are `chrono`, `uuid`, `url`"),
                (3, "`generate.formats[1]` is a text, not a number"),
                (4, "`generate.methods` is `true` or `false`, not a text"),
                (5, "`generate.runtime`: `a b` is no path to the runtime"),
                (6, "`docments` is no setting: did you mean `documents`?"),
            ][..],
        ),
        (
            "documents.a = 1\n[documents.b]\n[documents.'c.d']\npath = ''\n[documents.e]\npath = 'https://x/y.yaml'\ninclude = 'x'\n",
            &[
                (1, "`documents.a` is a table, not a number"),
                (2, "`documents.b` has no `path`: that of the document, relative to this file"),
                (3, "`documents.\"c.d\"`: `c.d` is no namespace: use letters, digits, `_` and `-`"),
                (4, "`documents.\"c.d\".path` is empty"),
                (6, "`documents.e.path` is no file: `ops add https://x/y.yaml` fetches it"),
                (7, "`documents.e.include` is a list of texts, not a text"),
            ],
        ),
        (
            "[documents.a]\npath = 'a'\nzzz = 1\nserver = 'part'\n[documents.a.types]\nPet = 'pet type'\nCat = 7\n[documents.a.rename]\nPet = 'pet'\n\
             [documents.a.rename_fields]\nPet = 'x'\nCat.x = 'X'\n[documents.a.derives]\n'*' = ['no derive', 'Hash']\nx = 2\n",
            &[
                (
                    3,
                    "`documents.a.zzz` is no setting: there are `path`, `source`, `sha256`, `overlays`, `include`, `exclude`, `explicit_null`, `schemas`, `types`, `rename`, `rename_fields`, `derives`, `rust_types`, `formats`, `methods`, `server`",
                ),
                (4, "`documents.a.server` is `true`, `false` or \"partial\", not \"part\""),
                (
                    6,
                    "`documents.a.types.Pet`: `pet type` is no path of a type for `Pet`: begin with `crate::` or the name of a crate",
                ),
                (7, "`documents.a.types.Cat` is a text, not a number"),
                (
                    9,
                    "`documents.a.rename.Pet`: `pet` is no name for the type of `Pet`: use letters and digits, and begin with an upper-case letter",
                ),
                (11, "`documents.a.rename_fields.Pet` is a table, not a text"),
                (12, "`documents.a.rename_fields.Cat.x`: `X` is no name for the property `x` of `Cat`"),
                (14, "`documents.a.derives.\"*\"`: `no derive`"),
                (15, "`documents.a.derives.x` is a list of texts, not a number"),
            ],
        ),
        ("[documents.a]\npath = \n", &[(2, "")]),
        ("[documents.a]\npath = 'a'\npath = 'b'\n", &[(3, "duplicate key")]),
    ] {
        let error = Config::parse("conf/ops.toml", text).unwrap_err();
        let Error::Document { diagnostics } = error else { panic!("{error}") };
        let told: Vec<(usize, &str)> =
            diagnostics.iter().map(|told| (told.position.unwrap().0, told.message.as_str())).collect();
        assert_eq!(told.len(), wanted.len(), "{told:#?}");
        for ((line, message), (wanted_line, start)) in told.iter().zip(wanted) {
            assert!(
                line == wanted_line && message.starts_with(start),
                "{line} {message}\nis not\n{wanted_line} {start}"
            );
        }
        assert!(diagnostics.iter().all(|told| told.document.as_deref() == Some("conf/ops.toml")));
    }
    assert!(matches!(Config::read("no/such/ops.toml"), Err(Error::Io { .. })));
}
