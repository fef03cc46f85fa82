//! Whether a record writes a property: of a union, only its variant tells.

use std::fmt::{self, Display, Formatter, Write};

use serde_core::Serialize;
use serde_core::ser::SerializeMap;

use super::Record;

/// Tells whether `value` writes the property `name`, by having it write its names.
pub fn writes<T: Record>(value: &T, name: &str) -> bool {
    let mut names = Names { name, is_found: false };
    // It fails where the name is found, or where it will fail again when it is written.
    let _ = value.write(&mut names);
    names.is_found
}

/// An object of which only the names are looked at.
struct Names<'a> {
    name: &'a str,
    is_found: bool,
}

impl SerializeMap for Names<'_> {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_key<K: Serialize + ?Sized>(&mut self, key: &K) -> fmt::Result {
        let mut left = Left(Some(self.name));
        write!(left, "{}", Shown(key))?;
        self.is_found = left.0 == Some("");
        // Nothing else is asked.
        if self.is_found { Err(fmt::Error) } else { Ok(()) }
    }

    fn serialize_value<V: Serialize + ?Sized>(&mut self, _: &V) -> fmt::Result {
        Ok(())
    }

    fn end(self) -> fmt::Result {
        Ok(())
    }
}

/// A key as the text that it is in JSON.
struct Shown<'a, K: ?Sized>(&'a K);

impl<K: Serialize + ?Sized> Display for Shown<'_, K> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.serialize(f)
    }
}

/// What is left of a name once what is written was taken from its beginning; `None` if it begins with something else.
struct Left<'a>(Option<&'a str>);

impl Write for Left<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.and_then(|left| left.strip_prefix(text));
        Ok(())
    }
}
