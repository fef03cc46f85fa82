//! A place in a value: a chain on the stack, written out only when it is reported.

use std::hash::{Hash, Hasher};

use crate::model::cut::{MAX_NAME, cut};

/// The longest pointer that is reported, in bytes; deeper tokens are left out.
const MAX_POINTER: usize = 1024;

/// A place in a value.
#[derive(Clone, Copy)]
pub(super) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Key(&'p str),
    Index(usize),
}

impl<'p> Path<'p> {
    pub(super) const ROOT: Path<'static> = Path { parent: None, step: Step::Index(0) };

    pub(super) fn key(&'p self, key: &'p str) -> Path<'p> {
        Path { parent: Some(self), step: Step::Key(key) }
    }

    pub(super) fn index(&'p self, index: usize) -> Path<'p> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    /// True if this is the whole value.
    pub(super) fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// True if it is a property.
    pub(super) fn is_key(&self) -> bool {
        self.parent.is_some() && matches!(self.step, Step::Key(_))
    }

    /// Hashes the keys of the path, so that all items of a list are one place.
    pub(super) fn hash_keys(&self, hasher: &mut impl Hasher) {
        let mut at = self;
        while let Some(parent) = at.parent {
            match at.step {
                Step::Key(key) => key.hash(hasher),
                Step::Index(_) => 0u8.hash(hasher),
            }
            at = parent;
        }
    }

    /// The place as a JSON pointer. Names and pointers that are too long end in `..`.
    pub(super) fn pointer(&self) -> String {
        let mut pointer = String::with_capacity(32);
        self.write(&mut pointer);
        pointer
    }

    /// Adds the place to a pointer; `false` if it got too long.
    fn write(&self, pointer: &mut String) -> bool {
        let Some(parent) = self.parent else { return true };
        if !parent.write(pointer) {
            return false;
        }
        pointer.push('/');
        if pointer.len() > MAX_POINTER {
            pointer.push_str("..");
            return false;
        }
        match self.step {
            Step::Key(key) => {
                let name = cut(key, MAX_NAME);
                if name.contains(['~', '/']) {
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                } else {
                    pointer.push_str(&name);
                }
            }
            Step::Index(index) => pointer.push_str(&index.to_string()),
        }
        true
    }
}
