use serde_json::{Value, json};

use super::{Malformed, Query, Steps};

const STEPS: usize = 1_000_000;

fn document() -> Value {
    json!({
        "paths": {
            "/pets": {
                "get": { "tags": ["pets", "open"], "deprecated": true, "x-rate": 10 },
                "post": { "tags": ["pets"], "x-rate": 1.0 },
            },
            "/o~1": { "get": { "tags": [], "x-rate": "10" } },
        },
        "servers": [{ "url": "a" }, { "url": "b\nc" }, { "url": "é" }],
        "limit": 1,
    })
}

#[track_caller]
fn select(query: &str) -> Vec<String> {
    let query = Query::parse(query).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    query.select(&document(), &mut Steps::new(STEPS)).unwrap()
}

#[test]
fn queries_select_places() {
    let get = "/paths/~1pets/get";
    let other = "/paths/~1o~01/get";
    for (query, wanted) in [
        ("$", &[""][..]),
        ("$.limit", &["/limit"]),
        ("$ .paths [ '/o~1' , 'x' ]\n['get']", &[other]),
        ("$.none.limit", &[]),
        ("$['paths']['/pets'][\"get\"].tags", &["/paths/~1pets/get/tags"]),
        ("$.servers[0,-1,0,5,-9].url", &["/servers/0/url", "/servers/2/url", "/servers/0/url"]),
        ("$.servers[1:]", &["/servers/1", "/servers/2"]),
        ("$.servers[::-2]", &["/servers/2", "/servers/0"]),
        ("$.servers[0:9007199254740991:9007199254740991]", &["/servers/0"]),
        ("$.servers[::0]", &[]),
        ("$.paths.*.get", &[get, other]),
        ("$..tags[0]", &["/paths/~1pets/get/tags/0", "/paths/~1pets/post/tags/0"]),
        ("$..['deprecated', 'limit']", &["/limit", "/paths/~1pets/get/deprecated"]),
        ("$.paths.*[?@.deprecated]", &[get]),
        ("$.paths.*[?!@.deprecated]", &["/paths/~1pets/post", other]),
        ("$.paths.*[?@['x-rate'] == 10]", &[get]),
        ("$.paths.*[?@['x-rate'] == $.limit]", &["/paths/~1pets/post"]),
        ("$.paths.*[?@['x-rate'] < 10.5 && @['x-rate'] >= 1]", &[get, "/paths/~1pets/post"]),
        ("$.paths.*[?@['x-rate'] >= '1' || !(@.tags[0] != 'pets')]", &[get, "/paths/~1pets/post", other]),
        ("$.paths.*[?@.none == @.nothing && @.tags[?@ == 'open']]", &[get]),
        ("$.paths.*[?length(@.tags) == 0 || count(@.tags[*]) == 2]", &[get, other]),
        ("$.paths.*[?value(@.tags[*]) == 'pets']", &["/paths/~1pets/post"]),
        ("$.servers[?match(@.url, 'b.c')]", &[]),
        ("$.servers[?match(@.url, 'b\\\\nc|[^.a]')]", &["/servers/1", "/servers/2"]),
        ("$.servers[?search(@.url, 'c') || length(@.url) == 1]", &["/servers/0", "/servers/1", "/servers/2"]),
        ("$.servers[?search(@.url, $.servers[0].url)]", &["/servers/0"]),
        ("$.servers[?search(@.url, $.limit) || match(@.none, 'a')]", &[]),
        (r#"$["\u00e9", "\uD83D\ude00", "limi\u0074"]"#, &["/limit"]),
    ] {
        assert_eq!(select(query), wanted, "{query}");
    }
}

#[test]
fn what_is_no_query_says_where() {
    for (query, at, message) in [
        ("", 0, "a query begins with `$`"),
        ("paths", 0, "a query begins with `$`"),
        ("$.", 2, "a name or `*` is expected here: write other names as `['name']`"),
        ("$.é.x-y", 5, "a name with `-` needs brackets: write `['name']`"),
        ("$.a ", 3, "the query should end here, or go on with `.name`, `['name']` or `[?filter]`"),
        ("$[]", 2, "a selector is expected here: `'name'`, `*`, a number, or `?` and a filter"),
        ("$[01]", 2, "this is no integer of a query"),
        ("$[9007199254740992]", 2, "this is no integer of a query"),
        ("$['a\\x']", 4, "this escape is none of JSON"),
        ("$['a", 2, "this text does not end"),
        ("$['\\uD800']", 3, "this escape is none of JSON"),
        ("$[?@.a == b]", 10, "`b` is no value: text has quotes"),
        ("$[?@.* == 1]", 3, "only a path to one node can be compared: use no `*`, `..`, slice or filter in it"),
        ("$[?1]", 3, "a value alone is no filter: compare it, such as `@.name == 'x'`"),
        ("$[?!@.a == 1]", 4, "a comparison is negated in brackets: `!(..)`"),
        ("$[?!@.a == length(@.b)]", 4, "a comparison is negated in brackets: `!(..)`"),
        (
            "$[?size(@) == 1]",
            3,
            "there is no such function: there are `length`, `count`, `match`, `search` and `value`",
        ),
        ("$[?length(@.*) == 1]", 3, "`length` takes one value: a literal, or a path to one node"),
        ("$[?match(@, 'a') == true]", 3, "`match` and `search` are not compared"),
        ("$[?@.a", 6, "`]` is expected here"),
    ] {
        assert_eq!(Query::parse(query).unwrap_err(), Malformed { message: message.to_owned(), at }, "{query}");
    }
    let error = Query::parse("$[?match(@, '(')]").unwrap_err();
    assert!(error.at == 3 && error.message.starts_with("`(` is no regular expression"), "{error:?}");
    for deep in ["$[?(", "$[?@[?", "$[?length("] {
        let query = format!("$[?{}", deep.trim_start_matches("$[?").repeat(100_000));
        assert!(Query::parse(&query).unwrap_err().message.starts_with("the query is nested deeper"), "{deep}");
    }
}

#[test]
fn what_costs_too_much_ends() {
    let deep = (0..500).fold(json!(1), |inner, _| json!([inner, [1, 2, 3]]));
    let long = json!({ "a": "a".repeat(100_000) });
    let pattern = json!({ "p": "(a*)*".repeat(1000), "a": "a".repeat(10_000) });
    for (query, value) in [
        ("$..*..*..*", &deep),
        ("$..[?$..[?$..[?@ == $]]]", &deep),
        ("$[?count($..*..*..*) == 1]", &deep),
        ("$[?search(@, '(a{50}){1,5}b')]", &long),
        ("$[?search(@, $.p)]", &pattern),
    ] {
        let query = Query::parse(query).unwrap_or_else(|error| panic!("{query}: {error:?}"));
        let start = std::time::Instant::now();
        assert_eq!(query.select(value, &mut Steps::new(STEPS)), None, "{query:?}");
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "{query:?}: {:?}", start.elapsed());
    }
    assert_eq!(Query::parse("$..*").unwrap().select(&deep, &mut Steps::new(STEPS)).unwrap().len(), 3000 - 1000 + 500);
}
