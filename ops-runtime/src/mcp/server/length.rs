//! About how many bytes the result of a tool has, without writing it.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// About how long a scalar that is no text is as JSON, with what separates it from others.
const SCALAR: usize = 8;

/// About how many bytes a result has.
pub(super) fn of_result(result: &CallToolResult) -> usize {
    let blocks = result.content.iter().map(of_block).fold(0, usize::saturating_add);
    let noted = result.meta.iter().flat_map(|meta| meta.0.values());
    let values = noted.chain(&result.structured_content).map(of_value).fold(0, usize::saturating_add);
    blocks.saturating_add(values)
}

/// The length of what a block holds.
fn of_block(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text(text) => text.text.len(),
        ContentBlock::Image(image) => image.data.len(),
        ContentBlock::Audio(audio) => audio.data.len(),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => uri.len().saturating_add(text.len()),
            ResourceContents::BlobResourceContents { uri, blob, .. } => uri.len().saturating_add(blob.len()),
            _ => 0,
        },
        ContentBlock::ResourceLink(link) => {
            let texts = [Some(&link.uri), Some(&link.name), link.title.as_ref(), link.description.as_ref()];
            texts.into_iter().flatten().map(String::len).fold(0, usize::saturating_add)
        }
        _ => 0,
    }
}

/// About how long a value is as JSON: what its texts escape is not looked at.
fn of_value(value: &Value) -> usize {
    let mut length = 0_usize;
    // A list, since recursion could go as deep as the value.
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        let own = match value {
            Value::String(text) => text.len().saturating_add(3),
            Value::Array(items) => {
                pending.extend(items);
                2
            }
            Value::Object(members) => {
                pending.extend(members.values());
                members.keys().map(|name| name.len().saturating_add(3)).fold(2, usize::saturating_add)
            }
            _ => SCALAR,
        };
        length = length.saturating_add(own);
    }
    length
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_that_a_block_holds_counts() {
        let data = "A".repeat(1_000);
        let resource = |contents| json!({ "type": "resource", "resource": contents });
        for block in [
            json!({ "type": "text", "text": data }),
            json!({ "type": "image", "data": data, "mimeType": "image/png" }),
            json!({ "type": "audio", "data": data, "mimeType": "audio/wav" }),
            resource(json!({ "uri": "a:b", "text": data })),
            resource(json!({ "uri": "a:b", "blob": data })),
            json!({ "type": "resource_link", "uri": "a:b", "name": "c", "description": data }),
        ] {
            let block: ContentBlock = serde_json::from_value(block).unwrap();
            assert!((1_000..1_010).contains(&of_block(&block)), "{block:?}");
        }
    }

    #[test]
    fn a_value_counts_for_about_its_text() {
        for value in [
            json!({ "name": "x".repeat(500), "tags": ["a", "b"], "others": [1, 2.5, null, true], "more": {} }),
            json!(vec![json!({ "id": 12_345_678, "name": "a name" }); 100]),
            json!("y".repeat(10_000)),
        ] {
            let (about, exact) = (of_value(&value), value.to_string().len());
            assert!(about >= exact * 9 / 10 && about <= exact * 11 / 10 + 40, "{about} for {exact}: {value}");
        }
        let deep = (0..100_000).fold(json!(1), |inner, _| Value::from(vec![inner]));
        assert_eq!(of_value(&deep), 200_008);
        // Dropping it would go as deep as it is.
        std::mem::forget(deep);
    }
}
