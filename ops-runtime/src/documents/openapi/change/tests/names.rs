//! Changes by which no call fails, although code may name what changed, and URLs to which secrets go.

use serde_json::{Value, json};

use super::{LIST, PET, SHOW, changes, check, shop};
use crate::Api;

/// The changes that touch names but do not break.
fn touching(old: &Api, new: &Api) -> Vec<String> {
    let changes = changes(old, new).into_iter().filter(|change| change.touches_names() && !change.breaks);
    changes.map(|change| change.to_string()).collect()
}

#[test]
fn what_code_names_may_be_gone_though_no_call_fails() {
    fn touched(steps: &[(&str, Value)]) -> Vec<String> {
        touching(&shop(&[]), &shop(steps))
    }
    let all = "response of `shop.list`, `shop.add`, `shop.show`: `Pet`";
    let status = format!("{PET}/properties/status");
    assert_eq!(touched(&[(&status, Value::Null)]), [format!("change: {all} /properties/status: the property is gone")]);
    let new = format!("{PET}/properties/nick");
    assert_eq!(touched(&[(&new, json!({ "type": "string" }))]), Vec::<String>::new());

    let (known, other) = (format!("{LIST}/responses/404"), format!("{LIST}/responses/409"));
    let default = format!("{LIST}/responses/default");
    let described = || json!({ "description": "" });
    let gone = "change: response of `shop.list`: status 404: the error is not described any more";
    assert_eq!(touched(&[(&known, Value::Null)]), [gone]);
    // Code that handles all declared errors, or those that are not, handles one more. Without errors, there is none.
    let come = "change: response of `shop.list`: status 409: the error is described now";
    assert_eq!(touched(&[(&other, described())]), [come]);
    let (old, new) = (shop(&[(&default, described())]), shop(&[(&default, described()), (&other, described())]));
    assert_eq!(touching(&old, &new), [come]);
    assert_eq!(touched(&[(&format!("{SHOW}/responses/409"), described())]), Vec::<String>::new());
}

#[test]
fn a_schema_may_have_another_name() {
    let fault = json!({ "type": "object", "required": ["code"], "properties": { "code": { "type": "string" } } });
    let content = format!("{LIST}/responses/404/content/application~1json/schema");
    let problem = json!({ "$ref": "#/components/schemas/Problem" });
    let new = ("/components/schemas/Problem", fault);
    let steps = [("/components/schemas/Fault", Value::Null), new.clone(), (content.as_str(), problem.clone())];
    check(&steps, &["change: response of `shop.list`: `Fault`: it is called `Problem` now"]);
    assert_eq!(touching(&shop(&[]), &shop(&steps)).len(), 1);
    // A reference to another definition renames none.
    check(&[new, (content.as_str(), problem)], &[]);
}

#[test]
fn urls_to_which_secrets_go() {
    let with = |kind: Value| {
        let ways = json!([{ "hub": [] }]);
        shop(&[("/components/securitySchemes/hub", kind), (&format!("{SHOW}/security"), ways)])
    };
    let oauth = |url: &str| {
        let flow = json!({ "tokenUrl": url, "scopes": {} });
        with(json!({ "type": "oauth2", "flows": { "clientCredentials": flow } }))
    };
    let told = |old: &Api, new: &Api| changes(old, new).iter().map(ToString::to_string).collect::<Vec<_>>();
    let message = "breaking: `shop.show`: security: the token URL of `hub` is `https://b.example.com/token` now, and was \
                   `https://a.example.com/token`";
    assert_eq!(told(&oauth("https://a.example.com/token"), &oauth("https://b.example.com/token")), [message]);
    let bearer = with(json!({ "type": "http", "scheme": "bearer" }));
    let message = "breaking: `shop.show`: security: `hub` (bearer) does not suffice any more, but `hub` (OAuth 2)";
    assert_eq!(told(&bearer, &oauth("https://a.example.com/token")), [message]);
}

#[test]
fn reserved_characters_of_a_parameter() {
    let told = |kind: Value| {
        let with = |reserved: bool| {
            let schema = json!({ "type": kind });
            let parameter = json!({ "name": "path", "in": "query", "schema": schema, "allowReserved": reserved });
            shop(&[(&format!("{LIST}/parameters/2"), parameter)])
        };
        changes(&with(true), &with(false)).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let message = "breaking: request of `shop.list`: query parameter `path`: reserved characters are written in another \
                   way now";
    for kind in [json!("string"), json!("number"), json!(["integer", "string"])] {
        assert_eq!(told(kind.clone()), [message], "{kind}");
    }
    // Their texts have no reserved characters.
    for kind in [json!("integer"), json!("boolean"), json!(["integer", "null"])] {
        assert_eq!(told(kind.clone()), Vec::<String>::new(), "{kind}");
    }
}

#[test]
fn security_that_cannot_be_read_is_no_free_access() {
    let with = |ways: Value| shop(&[(&format!("{SHOW}/security"), ways)]);
    let told = |old: &Api, new: &Api| changes(old, new).iter().map(ToString::to_string).collect::<Vec<_>>();
    let (key, misspelt) = (with(json!([{ "key": [] }])), with(json!([{ "Key": [] }])));
    let message =
        "breaking: `shop.show`: security: `key` (the header `X-Key`) does not suffice any more, but `Key` (unknown)";
    assert_eq!(told(&key, &misspelt), [message]);
    let message = "breaking: `shop.show`: security: it needs credentials now: `unknown` (unknown)";
    assert_eq!(told(&with(json!([])), &with(json!(["key"]))), [message]);
}

#[test]
fn variables_of_a_server() {
    let with = |variable: Value| {
        let servers = json!([{ "url": "https://{region}.example.com", "variables": { "region": variable } }]);
        shop(&[("/servers", servers)])
    };
    let told =
        |old: Value, new: Value| changes(&with(old), &with(new)).iter().map(ToString::to_string).collect::<Vec<_>>();
    let all = "change: `shop.list`, `shop.add`, `shop.show`: server: its variable `region`";
    let old = json!({ "default": "eu", "enum": ["eu", "us"] });
    assert_eq!(
        told(old.clone(), json!({ "default": "us", "enum": ["us"] })),
        [format!("{all} is `us` by default now, not `eu`"), format!("{all} may have other values now")]
    );
    assert_eq!(told(old.clone(), old), [""; 0]);
}
