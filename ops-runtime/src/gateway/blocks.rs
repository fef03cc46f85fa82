//! The content blocks of a result, as far as a model is shown them.

use serde_json::{Value, json};

use super::size::size_of;
use crate::ContentBlock;

/// How many images, sounds and files of one result are shown.
pub(super) const MEDIA: usize = 20;

/// What of a block is text for a model: the text of a block or of a resource, or a link. `None` for images, sounds and
/// files.
pub(super) fn text_of(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text(block) => Some(Value::from(block.text.as_str())),
        ContentBlock::Resource(block) => {
            let text = block.resource.text.as_deref()?;
            Some(json!({ "uri": block.resource.uri, "text": text }))
        }
        ContentBlock::ResourceLink(link) => {
            let mut told = json!({ "uri": link.uri, "name": link.name });
            for (name, text) in [("description", &link.description), ("mimeType", &link.mime_type)] {
                if let (Some(text), Value::Object(told)) = (text, &mut told) {
                    told.insert(name.to_owned(), text.as_str().into());
                }
            }
            Some(told)
        }
        _ => None,
    }
}

/// What a block says beside its text and its data, such as `_meta`.
pub(super) fn beside(block: &ContentBlock) -> Value {
    let mut value = serde_json::to_value(block).unwrap_or_default();
    for place in ["", "/resource"] {
        if let Some(Value::Object(members)) = value.pointer_mut(place) {
            members.retain(|name, _| !["type", "text", "data", "blob"].contains(&name.as_str()));
        }
    }
    value
}

/// The images, sounds and files of a result, as far as they are shown, and the number of those that are not.
///
/// What they say beside has `room`, in bytes. If it is more, what is not needed to show them is left out, such as
/// `_meta`. A URI or a media type is never cut, since it would be another one: a file that still has no room is not
/// shown.
pub(super) fn media(blocks: Vec<ContentBlock>, mut room: usize) -> (Vec<ContentBlock>, usize) {
    let mut shown: Vec<ContentBlock> = blocks.into_iter().filter(|block| text_of(block).is_none()).collect();
    let all = shown.len();
    shown.truncate(MEDIA);
    if size_of(&shown.iter().map(beside).collect::<Value>(), room).is_none() {
        let has_room = |block: &ContentBlock| {
            let size = size_of(&beside(block), room);
            room = room.saturating_sub(size.unwrap_or_default());
            size.is_some()
        };
        shown = shown.into_iter().map(bare).filter(has_room).collect();
    }
    let more = all.saturating_sub(shown.len());
    (shown, more)
}

/// An image, a sound or a file without what is not needed to show it.
fn bare(block: ContentBlock) -> ContentBlock {
    match block {
        ContentBlock::Image(block) => ContentBlock::image(block.data, block.mime_type),
        ContentBlock::Audio(block) => ContentBlock::audio(block.data, block.mime_type),
        ContentBlock::Resource(mut block) => {
            block.annotations = None;
            block.extra.clear();
            block.resource.extra.clear();
            ContentBlock::Resource(block)
        }
        other => other,
    }
}
