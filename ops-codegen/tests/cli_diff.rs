//! `ops diff`: what the Rust code of callers depends on, and the lines of their sources.

mod folder;

use folder::Folder;
use serde_json::{Value, json};

/// Compares two versions of a document: the exit status, the lines, and the count.
#[track_caller]
fn diff(folder: &Folder, arguments: &[&str]) -> (i32, Vec<String>, String) {
    let (status, stdout, stderr) = folder.ops(&[&["diff"][..], arguments].concat());
    (status, stdout.lines().map(str::to_owned).collect(), stderr)
}

/// A document with the parameters of an operation, and the properties of a schema that another one sends.
fn moves(parameters: [&str; 2], required: &[&str], properties: &[&str]) -> String {
    let text = json!({ "type": "string" });
    let parameters = parameters.map(|name| json!({ "name": name, "in": "query", "required": true, "schema": text }));
    let properties: serde_json::Map<String, Value> =
        properties.iter().map(|name| ((*name).to_owned(), text.clone())).collect();
    let home = json!({ "$ref": "#/components/schemas/Address" });
    let home = json!({ "type": "object", "required": ["home"], "properties": { "home": home } });
    let home = json!({ "required": true, "content": { "application/json": { "schema": home } } });
    let nothing = json!({ "204": { "description": "x" } });
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Moves", "version": "1.0.0" },
        "paths": {
            "/moves": { "post": { "operationId": "ship", "parameters": parameters, "responses": nothing } },
            "/home": { "put": { "operationId": "setHome", "requestBody": home, "responses": nothing } },
        },
        "components": { "schemas": {
            "Address": { "type": "object", "required": required, "properties": properties },
        } },
    });
    document.to_string()
}

#[test]
fn the_order_in_which_constructors_take_values() {
    let folder = Folder::new("diff-constructors");
    folder.write("moves.json", &moves(["from", "to"], &["street", "city"], &["street", "city", "note"]));
    folder.write("new.json", &moves(["to", "from"], &["street", "city"], &["city", "note", "street"]));
    // `new` has not the order of `required`, and takes nothing that is optional.
    folder.write("same.json", &moves(["from", "to"], &["city", "street"], &["note", "street", "city"]));
    folder.write("more.json", &moves(["from", "to"], &["street", "city", "note"], &["city", "street", "note"]));
    let main = "use moves::{Address, Methods};\nasync fn f(client: Client) {\n    client.ship((\"a\", \"b\")).await;\n    \
                client.set_home(Address::new(\"street\", \"city\")).await;\n}\n";
    folder.write("crate/src/main.rs", main);

    let (status, lines, stderr) = diff(&folder, &["moves.json", "new.json", "--crate", "crate"]);
    let wanted = [
        "breaking: request of `moves.ship`: `ShipInput::new` takes its values in another order now: `to`, `from`",
        "  src/main.rs:3: moves::Methods::ship",
        "breaking: request of `moves.setHome`: `Address::new` takes its values in another order now: `city`, `street`",
        "  src/main.rs:1: moves::Address",
        "  src/main.rs:4: moves::Address",
    ];
    assert_eq!((status, lines), (1, wanted.map(str::to_owned).to_vec()), "{stderr}");
    assert!(stderr.contains("2 changes, of which 2 break callers"), "{stderr}");

    let (status, stdout, _) = folder.ops(&["diff", "moves.json", "new.json", "--json"]);
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((status, &json["breaking"], &json["changes"][0]["pointer"]), (1, &json!(2), &json!("/input")));
    assert_eq!(
        json["changes"][1],
        json!({
            "breaks": true,
            "part": "request",
            "operations": ["moves.setHome"],
            "more": false,
            "subject": "`Address`",
            "pointer": "/$defs/Address",
            "message": "`Address::new` takes its values in another order now: `city`, `street`",
        })
    );

    assert_eq!(diff(&folder, &["moves.json", "same.json"]), (0, Vec::new(), "no operation changed\n".to_owned()));
    // If a constructor takes other values, the change of the schema is listed.
    let (status, lines, stderr) = diff(&folder, &["moves.json", "more.json"]);
    let wanted = "breaking: request of `moves.setHome`: `Address` /properties/note: it is required now";
    assert_eq!((status, lines), (1, vec![wanted.to_owned()]), "{stderr}");
}

#[test]
fn constructors_are_matched_by_the_names_of_their_types() {
    let folder = Folder::new("diff-constructors-names");
    // Both schemas are the type `Address`.
    let old = moves(["from", "to"], &["street", "city"], &["street", "city"]).replace("Address", "address");
    folder.write("moves.json", &old);
    folder.write("new.json", &moves(["from", "to"], &["street", "city"], &["city", "street"]));
    let (status, lines, stderr) = diff(&folder, &["moves.json", "new.json"]);
    let wanted = [
        "change: request of `moves.setHome`: `address`: it is called `Address` now",
        "breaking: request of `moves.setHome`: `Address::new` takes its values in another order now: `city`, `street`",
    ];
    assert_eq!((status, lines), (1, wanted.map(str::to_owned).to_vec()), "{stderr}");

    let ways = |variants: &[(&str, [&str; 2])]| {
        let variant = |(title, names): &(&str, [&str; 2])| {
            let properties = names.map(|name| (name.to_owned(), json!({ "type": "string" })));
            let properties = serde_json::Map::from_iter(properties);
            json!({ "title": title, "type": "object", "required": names, "properties": properties })
        };
        let variants: Vec<Value> = variants.iter().map(variant).collect();
        let way = json!({ "$ref": "#/components/schemas/Way" });
        let body = json!({ "type": "object", "required": ["way"], "properties": { "way": way } });
        let body = json!({ "required": true, "content": { "application/json": { "schema": body } } });
        let nothing = json!({ "204": { "description": "x" } });
        let document = json!({
            "openapi": "3.1.0",
            "info": { "title": "Ways", "version": "1.0.0" },
            "paths": { "/ways": { "post": { "operationId": "pay", "requestBody": body, "responses": nothing } } },
            "components": { "schemas": { "Way": { "oneOf": variants } } },
        });
        document.to_string()
    };
    let (card, cash) = (("Card", ["number", "owner"]), ("Cash", ["coins", "notes"]));
    folder.write("ways.json", &ways(&[card, cash]));
    folder.write("swapped.json", &ways(&[("Card", ["owner", "number"]), cash]));
    folder.write("moved.json", &ways(&[("Wire", ["owner", "number"]), card, cash]));
    let constructors = |new: &str| -> Vec<String> {
        let (_, lines, _) = diff(&folder, &["ways.json", new]);
        lines.into_iter().filter(|line| line.contains("takes its values")).collect()
    };
    let swapped =
        "breaking: request of `ways.pay`: `WayCard::new` takes its values in another order now: `owner`, `number`";
    assert_eq!(constructors("swapped.json"), [swapped]);
    // Another variant stands in the place of the first one, which is as it was.
    assert_eq!(constructors("moved.json"), Vec::<String>::new());
}

#[test]
fn the_lines_of_what_is_gone_though_no_call_fails() {
    let shop = |owner: &str, pet: Value, failures: Value| {
        let text =
            |content: Value| json!({ "description": "x", "content": { "application/json": { "schema": content } } });
        let mut responses = json!({ "200": text(json!({ "$ref": "#/components/schemas/Pet" })) });
        for (status, schema) in failures.as_object().unwrap() {
            responses[status] = text(schema.clone());
        }
        let mut properties =
            json!({ "id": { "type": "integer" }, "owner": { "$ref": format!("#/components/schemas/{owner}") } });
        properties.as_object_mut().unwrap().extend(pet.as_object().unwrap().clone());
        let id = json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } });
        let document = json!({
            "openapi": "3.1.0",
            "info": { "title": "Shop", "version": "1.0.0" },
            "paths": { "/pets/{id}": { "get": { "operationId": "showPet", "parameters": [id], "responses": responses } } },
            "components": { "schemas": {
                "Pet": { "type": "object", "required": ["id"], "properties": properties },
                owner: { "type": "object", "properties": { "name": { "type": "string" } } },
            } },
        });
        document.to_string()
    };
    let folder = Folder::new("diff-gone");
    let fault = json!({ "type": "object", "properties": { "code": { "type": "string" } } });
    folder.write("shop.json", &shop("Owner", json!({ "nick": { "type": "string" } }), json!({ "404": fault })));
    folder.write("new.json", &shop("Person", json!({}), json!({})));
    let main = "use shop::{Methods, Owner, ShowPetError};\nasync fn f(client: Client, owner: Owner) {\n    \
                let pet = client.show_pet(7).await;\n    print(pet.data.nick);\n    \
                matches!(error, ShowPetError::NotFound(_));\n}\n";
    folder.write("crate/src/main.rs", main);
    let (status, lines, stderr) = diff(&folder, &["shop.json", "new.json", "--crate", "crate"]);
    let wanted = [
        "change: response of `shop.showPet`: status 404: the error is not described any more",
        "  src/main.rs:1: shop::ShowPetError",
        "  src/main.rs:5: shop::ShowPetError",
        "change: response of `shop.showPet`: `Owner`: it is called `Person` now",
        "  src/main.rs:1: shop::Owner",
        "  src/main.rs:2: shop::Owner",
        "change: response of `shop.showPet`: `Pet` /properties/nick: the property is gone",
        "  src/main.rs:4: shop::Pet.nick",
    ];
    assert_eq!((status, lines), (0, wanted.map(str::to_owned).to_vec()), "{stderr}");
    assert!(stderr.contains("3 changes, none of which breaks callers"), "{stderr}");
    // The help says so.
    let (_, help, _) = folder.ops(&["diff", "--help"]);
    let said = "No call fails if a declared error, an optional property of a response or the name of a schema is gone";
    assert!(help.contains(said), "{help}");
}

#[test]
fn folders_of_specs() {
    let spec = |name: &str, required: Value, binding: Value| {
        let properties = json!({ "a": { "type": "integer" }, "b": { "type": "integer" } });
        let mut spec = json!({
            "name": name,
            "namespace": "m",
            "version": "1",
            "type": "mutation",
            "description": "",
            "inputSchema": { "type": "object", "properties": properties, "required": required },
            "outputSchema": {},
            "accessControl": { "requiredScopes": [] },
        });
        if !binding.is_null() {
            spec["binding"] = binding;
        }
        spec.to_string()
    };
    let request = |path: &str| json!({ "type": "http", "method": "POST", "path": path });
    let tool = || json!({ "type": "mcp", "tool": "tool", "output": "content" });
    let folder = Folder::new("diff-specs");
    for (version, path, required) in [("old", "/pets", json!([])), ("new", "/toys", json!(["b"]))] {
        folder.write(&format!("{version}/add.json"), &spec("add", required.clone(), Value::Null));
        folder.write(&format!("{version}/send.json"), &spec("send", json!([]), request(path)));
        folder.write(&format!("{version}/tool.json"), &spec("tool", required, tool()));
    }
    assert_eq!(diff(&folder, &["old", "old"]), (0, Vec::new(), "no operation changed\n".to_owned()));
    let (status, lines, stderr) = diff(&folder, &["old", "new"]);
    let wanted = [
        "breaking: `tool` /inputSchema/properties/b: it is required now",
        "breaking: request of `m.add`: /properties/b: it is required now",
        "breaking: `m.send`: it is `POST /toys` now, not `POST /pets`",
    ];
    assert_eq!((status, lines), (1, wanted.map(str::to_owned).to_vec()), "{stderr}");
}
