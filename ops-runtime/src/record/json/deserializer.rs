//! The cursor as a deserializer.

use serde_core::de::value::BorrowedStrDeserializer;
use serde_core::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, Expected, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};

use super::name::Name;
use super::string::{Bytes, Text};
use super::{Cursor, Fault};

/// The name by which `serde_json`'s `RawValue` asks for the text of a value.
pub(super) const RAW: &str = "$serde_json::private::RawValue";

impl<'de> Cursor<'de> {
    /// The error for a value of the wrong type.
    #[cold]
    fn invalid_type(&mut self, expected: &dyn Expected) -> Fault {
        match self.kind(expected) {
            Ok(fault) | Err(fault) => fault.or_at(self.at),
        }
    }

    fn kind(&mut self, expected: &dyn Expected) -> Result<Fault, Fault> {
        let found = match self.peek() {
            Some(b'n') => {
                self.literal(b"null")?;
                Unexpected::Unit
            }
            Some(b't') => {
                self.literal(b"true")?;
                Unexpected::Bool(true)
            }
            Some(b'f') => {
                self.literal(b"false")?;
                Unexpected::Bool(false)
            }
            Some(b'-' | b'0'..=b'9') => return Ok(self.number()?.invalid_type(expected)),
            Some(b'"') => {
                self.eat();
                return match self.string()? {
                    Text::Borrowed(text) | Text::Copied(text) => {
                        Ok(Fault::invalid_type(Unexpected::Str(text), expected))
                    }
                };
            }
            Some(b'[') => Unexpected::Seq,
            Some(b'{') => Unexpected::Map,
            _ => return Err(self.peek_fault("expected value")),
        };
        Ok(Fault::invalid_type(found, expected))
    }

    /// Moves to a value; returns its first byte.
    #[inline(always)]
    fn value(&mut self) -> Result<u8, Fault> {
        self.space().ok_or_else(|| self.peek_fault("EOF while parsing a value"))
    }

    /// Gives an error without a position the current one.
    #[inline(always)]
    pub(super) fn placed<T>(&self, result: Result<T, Fault>) -> Result<T, Fault> {
        match result {
            Ok(value) => Ok(value),
            Err(fault) => Err(fault.or_at(self.at)),
        }
    }

    #[inline]
    pub(super) fn visit_text<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        match self.string()? {
            Text::Borrowed(text) => visitor.visit_borrowed_str(text),
            Text::Copied(text) => visitor.visit_str(text),
        }
    }

    #[inline]
    fn visit_list<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        self.open()?;
        let read = visitor.visit_seq(Members { cursor: self, first: true });
        self.leave();
        // As `serde_json` does: a fault without a place gets that behind the end.
        let end = self.end_list();
        let value = read?;
        end.map(|()| value)
    }

    #[inline]
    fn visit_object<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fault> {
        self.open()?;
        let read = visitor.visit_map(Members { cursor: self, first: true });
        self.leave();
        let end = self.end_object();
        let value = read?;
        end.map(|()| value)
    }

    /// Passes over a value and lends its text.
    fn kept(&mut self) -> Result<&'de str, Fault> {
        self.space();
        let start = self.at;
        self.skip()?;
        if let Some(kept) = self.text.and_then(|text| text.get(start..self.at)) {
            return Ok(kept);
        }
        let bytes = self.bytes.get(start..self.at).unwrap_or_default();
        std::str::from_utf8(bytes)
            .map_err(|error| Fault::syntax("invalid unicode code point", start + error.valid_up_to() + 1))
    }

    fn integer_128<V: Visitor<'de>>(&mut self, visitor: V, is_signed: bool) -> Result<V::Value, Fault> {
        let is_negative = self.value()? == b'-';
        if is_negative && !is_signed {
            return Err(self.peek_fault("number out of range"));
        }
        self.at += usize::from(is_negative);
        let digits = self.long_integer()?;
        let read = if is_signed {
            let sign = if is_negative { "-" } else { "" };
            format!("{sign}{digits}").parse().ok().map(|value| visitor.visit_i128(value))
        } else {
            digits.parse().ok().map(|value| visitor.visit_u128(value))
        };
        let read = read.ok_or_else(|| self.fault("number out of range"))?;
        self.placed(read)
    }
}

/// Deserializes scalars of a known type: the first byte tells if the value has it.
macro_rules! by_kind {
    ($($method:ident($($argument:ident: $type:ty),*) { $($byte:pat => $read:expr),* })*) => {
        $(
            #[inline]
            fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, Fault> {
                $(let _ = $argument;)*
                let read = match self.value()? {
                    $($byte => {
                        let read: fn(&mut Cursor<'de>, V) -> Result<V::Value, Fault> = $read;
                        read(&mut *self, visitor)
                    })*
                    _ => return Err(self.invalid_type(&visitor)),
                };
                self.placed(read)
            }
        )*
    };
}

macro_rules! forward {
    ($to:ident: $($method:ident($($argument:ident: $type:ty),*))*) => {
        $(
            #[inline(always)]
            fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, Fault> {
                $(let _ = $argument;)*
                self.$to(visitor)
            }
        )*
    };
}

impl<'de> Deserializer<'de> for &mut Cursor<'de> {
    type Error = Fault;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let read = match self.value()? {
            b'"' => {
                self.eat();
                self.visit_text(visitor)
            }
            b'-' | b'0'..=b'9' => self.number()?.visit(visitor),
            b'{' => self.visit_object(visitor),
            b'[' => self.visit_list(visitor),
            b'n' => {
                self.literal(b"null")?;
                visitor.visit_unit()
            }
            b't' => {
                self.literal(b"true")?;
                visitor.visit_bool(true)
            }
            b'f' => {
                self.literal(b"false")?;
                visitor.visit_bool(false)
            }
            _ => return Err(self.peek_fault("expected value")),
        };
        self.placed(read)
    }

    by_kind! {
        deserialize_bool() {
            b't' => |this, visitor| {
                this.literal(b"true")?;
                visitor.visit_bool(true)
            },
            b'f' => |this, visitor| {
                this.literal(b"false")?;
                visitor.visit_bool(false)
            }
        }
        deserialize_unit() {
            b'n' => |this, visitor| {
                this.literal(b"null")?;
                visitor.visit_unit()
            }
        }
        deserialize_f64() {
            b'-' | b'0'..=b'9' => |this, visitor| this.number()?.visit(visitor)
        }
        deserialize_str() {
            b'"' => |this, visitor| {
                this.eat();
                this.visit_text(visitor)
            }
        }
        deserialize_bytes() {
            b'"' => |this, visitor| {
                this.eat();
                match this.byte_string()? {
                    Bytes::Borrowed(bytes) => visitor.visit_borrowed_bytes(bytes),
                    Bytes::Copied(bytes) => visitor.visit_bytes(bytes),
                }
            },
            b'[' => |this, visitor| this.deserialize_seq(visitor)
        }
        deserialize_seq() {
            b'[' => |this, visitor| this.visit_list(visitor)
        }
        deserialize_map() {
            b'{' => |this, visitor| this.visit_object(visitor)
        }
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) {
            b'{' => |this, visitor| this.visit_object(visitor),
            b'[' => |this, visitor| this.visit_list(visitor)
        }
    }

    forward! { deserialize_f64:
        deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64() deserialize_u8() deserialize_u16()
        deserialize_u32() deserialize_u64() deserialize_f32()
    }
    forward! { deserialize_str: deserialize_char() deserialize_string() deserialize_identifier() }
    forward! { deserialize_bytes: deserialize_byte_buf() }
    forward! { deserialize_unit: deserialize_unit_struct(name: &'static str) }
    forward! { deserialize_seq:
        deserialize_tuple(length: usize) deserialize_tuple_struct(name: &'static str, length: usize)
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.integer_128(visitor, true)
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.integer_128(visitor, false)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.space() {
            Some(b'n') => {
                self.literal(b"null")?;
                visitor.visit_none()
            }
            _ => visitor.visit_some(self),
        }
    }

    #[inline(always)]
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Fault> {
        match name {
            RAW => visitor.visit_map(Raw(Some(self.kept()?))),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.space() {
            Some(b'{') => {
                self.open()?;
                let read = visitor.visit_enum(Variant(self));
                self.leave();
                let value = read?;
                match self.space() {
                    Some(b'}') => {
                        self.eat();
                        Ok(value)
                    }
                    Some(_) => Err(self.fault("expected value")),
                    None => Err(self.fault("EOF while parsing an object")),
                }
            }
            Some(b'"') => visitor.visit_enum(UnitVariant(self)),
            Some(_) => Err(self.peek_fault("expected value")),
            None => Err(self.peek_fault("EOF while parsing a value")),
        }
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.skip()?;
        visitor.visit_unit()
    }
}

/// The items of an array, or the entries of an object.
pub(super) struct Members<'a, 'de> {
    pub(super) cursor: &'a mut Cursor<'de>,
    pub(super) first: bool,
}

impl<'de> SeqAccess<'de> for Members<'_, 'de> {
    type Error = Fault;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        match self.cursor.next_item(&mut self.first)? {
            true => seed.deserialize(&mut *self.cursor).map(Some),
            false => Ok(None),
        }
    }
}

impl<'de> MapAccess<'de> for Members<'_, 'de> {
    type Error = Fault;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        match self.cursor.next_name(&mut self.first)? {
            true => {
                let start = self.cursor.at;
                let read = seed.deserialize(Name::new(self.cursor))?;
                // A name that was only looked at is the next one again.
                self.first = self.cursor.at == start;
                Ok(Some(read))
            }
            false => Ok(None),
        }
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        self.cursor.colon()?;
        seed.deserialize(&mut *self.cursor)
    }
}

/// A variant with a value: an object with one property.
struct Variant<'a, 'de>(&'a mut Cursor<'de>);

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        match self.0.space() {
            Some(b'"') => {}
            Some(b'}') => return Err(self.0.peek_fault("expected value")),
            Some(_) => return Err(self.0.peek_fault("key must be a string")),
            None => return Err(self.0.peek_fault("EOF while parsing an object")),
        }
        let read = seed.deserialize(Name::new(self.0));
        let name = self.0.placed(read)?;
        self.0.colon()?;
        Ok((name, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Deserialize::deserialize(self.0)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.0.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, names: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        self.0.deserialize_struct("", names, visitor)
    }
}

/// A variant without a value: its name.
struct UnitVariant<'a, 'de>(&'a mut Cursor<'de>);

impl<'de> EnumAccess<'de> for UnitVariant<'_, 'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let name = seed.deserialize(&mut *self.0)?;
        Ok((name, self))
    }
}

impl<'de> VariantAccess<'de> for UnitVariant<'_, 'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Fault> {
        Err(Fault::invalid_type(Unexpected::UnitVariant, &"newtype variant"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Fault> {
        Err(Fault::invalid_type(Unexpected::UnitVariant, &"tuple variant"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Fault> {
        Err(Fault::invalid_type(Unexpected::UnitVariant, &"struct variant"))
    }
}

/// The text of a value, as `RawValue` reads it: a map with one entry.
struct Raw<'de>(Option<&'de str>);

impl<'de> MapAccess<'de> for Raw<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.0.map(|_| seed.deserialize(BorrowedStrDeserializer::new(RAW))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        seed.deserialize(BorrowedStrDeserializer::new(self.0.take().unwrap_or("null")))
    }
}
