//! The JSON texts that are measured.

use serde_json::{Value, json};

/// One record of 20 properties, about 1 KB.
pub fn account() -> Vec<u8> {
    let text = "Likes long walks, short functions and tables; ".repeat(8);
    let account = json!({
        "login": "ann", "id": 4_821_990, "nodeId": "MDQ6VXNlcjQ4MjE5OTA=",
        "avatarUrl": "https://avatars.example.com/u/4821990?v=4", "htmlUrl": "https://example.com/ann",
        "type": "User", "siteAdmin": false, "name": "Ann Example", "company": "Example & Sons",
        "blog": "https://blog.example.com", "location": "Bern", "email": "ann@example.com", "hireable": true,
        "bio": text, "publicRepos": 31, "publicGists": 4, "followers": 1204, "following": 12,
        "createdAt": "2014-03-03T18:58:10Z", "updatedAt": "2024-01-22T12:13:28Z",
        "plan": {"name": "pro", "space": 976_562_499, "collaborators": 0, "privateRepos": 9999}
    });
    account.to_string().into_bytes()
}

/// Records of 4 properties.
pub fn readings(size: usize) -> Vec<u8> {
    fill(size, |n| {
        let mut reading = json!({"id": n, "sensor": format!("sensor-{}", n % 17), "value": n as f64 * 0.37});
        if n % 3 == 0 {
            reading["valid"] = Value::Bool(n % 2 == 0);
        }
        reading
    })
}

/// Records with records, lists and enums inside.
pub fn orders(size: usize) -> Vec<u8> {
    let status = ["new", "paid", "shipped", "returned", "cancelled"];
    fill(size, |n| {
        let lines: Vec<Value> = (0..n % 5 + 1)
            .map(|line| json!({"sku": format!("SKU-{n}-{line}"), "quantity": line + 1, "price": 9.95 + line as f64}))
            .collect();
        json!({
            "id": n, "lines": lines, "status": status[n % status.len()], "total": 10.5 * n as f64, "currency": "chf",
            "tags": ["web", "gift"], "note": "Leave at the door\nand ring twice.",
            "customer": {
                "id": n % 97, "firstName": "Ann", "lastName": "Example", "email": "ann@example.com",
                "address": {"street": "Example Street 12", "city": "Bern", "zip": "3000"}
            }
        })
    })
}

/// Events of three types, told apart by the property `kind`, which is the first or the last of each.
pub fn events(size: usize, first: bool) -> Vec<u8> {
    let text = fill(size, |n| match n % 3 {
        0 => json!({"a": "push", "id": n, "actor": "ann", "commits": [
            {"sha": format!("{n:040x}"), "message": "Make it work"}, {"sha": format!("{n:040x}"), "message": "Make it fast"}
        ]}),
        1 => {
            json!({"a": "issue", "id": n, "actor": "bob", "title": "It does not work", "body": "At all.", "labels": ["bug"]})
        }
        _ => json!({"a": "star", "id": n, "actor": "eve", "at": "2024-01-22T12:13:28Z"}),
    });
    let text = String::from_utf8(text).unwrap();
    let text = ["push", "issue", "star"].iter().fold(text, |text, kind| {
        let tag = format!("\"a\":\"{kind}\",");
        if first {
            text.replace(&tag, &format!("\"kind\":\"{kind}\","))
        } else {
            text.replace(&tag, &format!("\"z\":\"{kind}\","))
        }
    });
    if first { text.into_bytes() } else { tag_last(&text) }
}

/// Moves the property `z`, which marks the tag, behind the others and names it `kind`.
fn tag_last(text: &str) -> Vec<u8> {
    let events: Vec<std::collections::BTreeMap<String, Value>> = serde_json::from_str(text).unwrap();
    let events: Vec<String> =
        events.into_iter().map(|event| serde_json::to_string(&event).unwrap().replace("\"z\":", "\"kind\":")).collect();
    format!("[{}]", events.join(",")).into_bytes()
}

fn fill(size: usize, item: impl Fn(usize) -> Value) -> Vec<u8> {
    let mut text = String::from("[");
    for n in 0.. {
        text.push_str(&item(n).to_string());
        if text.len() >= size {
            break;
        }
        text.push(',');
    }
    text.push(']');
    text.into_bytes()
}
