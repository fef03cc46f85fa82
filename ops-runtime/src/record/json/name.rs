//! The names of properties, which are matched, guessed, or looked behind.

use serde_core::de::{DeserializeSeed, Deserializer, Error, MapAccess, Unexpected, Visitor};
use serde_core::forward_to_deserialize_any;

use super::deserializer::{Members, RAW};
use super::string::Text;
use super::{Cursor, Fault};

/// The newtype by which a reader asks if a name is the one that it guessed: it is told so with a unit.
///
/// The guess is the name of a newtype that it asks for first, so that any other deserializer takes both for what is in them.
pub(in crate::record) const GUESSED: &str = "$ops::record::guessed";

/// The newtype by which a reader asks for the rest of an object, from a name on. If it reads a value, that was a look ahead,
/// and the name is the next one again.
pub(in crate::record) const AHEAD: &str = "$ops::record::ahead";

/// The name of a property, at its quote.
pub(super) struct Name<'a, 'de> {
    cursor: &'a mut Cursor<'de>,
    /// Where it ends, if it is the one that was guessed.
    guessed: Option<usize>,
}

impl<'a, 'de> Name<'a, 'de> {
    #[inline(always)]
    pub(super) fn new(cursor: &'a mut Cursor<'de>) -> Self {
        Name { cursor, guessed: None }
    }

    /// Reads a name that is another one; what is done for it is not done at each place where a guess may fail.
    #[inline(never)]
    fn not_guessed<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.cursor.eat();
        self.cursor.visit_text(visitor)
    }
}

/// Keys that are numbers, in quotes.
macro_rules! number_names {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.cursor.eat();
            if !matches!(self.cursor.peek(), Some(b'0'..=b'9' | b'-')) {
                return Err(self.cursor.fault("invalid value: expected key to be a number in quotes"));
            }
            let value = (&mut *self.cursor).$method(visitor)?;
            if self.cursor.peek() != Some(b'"') {
                return Err(self.cursor.peek_fault("expected `\"`"));
            }
            self.cursor.eat();
            Ok(value)
        })*
    };
}

impl<'de> Deserializer<'de> for Name<'_, 'de> {
    type Error = Fault;

    #[inline(always)]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.cursor.eat();
        self.cursor.visit_text(visitor)
    }

    number_names! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8 deserialize_u16
        deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.cursor.eat();
        let read = match self.cursor.next() {
            Some(b't') => {
                self.cursor.no_literal(b"rue\"")?;
                visitor.visit_bool(true)
            }
            Some(b'f') => {
                self.cursor.no_literal(b"alse\"")?;
                visitor.visit_bool(false)
            }
            Some(_) => match self.cursor.string()? {
                Text::Borrowed(text) | Text::Copied(text) => Err(Fault::invalid_type(Unexpected::Str(text), &visitor)),
            },
            None => return Err(self.cursor.peek_fault("EOF while parsing a value")),
        };
        self.cursor.placed(read)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    #[inline(always)]
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Fault> {
        match (name, self.guessed) {
            (GUESSED, Some(end)) => {
                self.cursor.at = end;
                visitor.visit_unit()
            }
            (GUESSED, None) => self.not_guessed(visitor),
            (RAW, _) => self.cursor.deserialize_newtype_struct(name, visitor),
            (AHEAD, _) if self.cursor.text.is_some() => {
                let start = self.cursor.at;
                let mut ahead = Ahead { members: Members { cursor: &mut *self.cursor, first: true }, has_read: false };
                let read = visitor.visit_map(&mut ahead)?;
                if ahead.has_read {
                    self.cursor.at = start;
                }
                Ok(read)
            }
            _ => {
                let guessed = self.cursor.end_of_name(name.as_bytes());
                visitor.visit_newtype_struct(Name { guessed, ..self })
            }
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.cursor.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.cursor.deserialize_bytes(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.cursor.deserialize_bytes(visitor)
    }

    forward_to_deserialize_any! {
        char str string unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// The entries of an object from a name on.
struct Ahead<'a, 'de> {
    members: Members<'a, 'de>,
    has_read: bool,
}

impl<'de> MapAccess<'de> for &mut Ahead<'_, 'de> {
    type Error = Fault;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.members.next_key_seed(seed)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        self.has_read = true;
        self.members.next_value_seed(seed)
    }
}
