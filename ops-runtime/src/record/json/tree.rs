//! Reading a text into a tree of values.

use serde_json::{Map, Number, Value};

use super::number::Figure;
use super::string::Text;
use super::{Cursor, Fault};

/// How long the last array or object on each level was: its neighbour is often as long.
///
/// That capacity is reserved with the first item, so unused capacity never exceeds what the neighbour holds.
struct Lengths([usize; 129]);

impl Cursor<'_> {
    /// Reads a value as `serde_json::Value` does.
    pub(crate) fn tree(&mut self) -> Result<Value, Fault> {
        self.branch(&mut Lengths([0; 129]), 0)
    }

    fn branch(&mut self, lengths: &mut Lengths, depth: usize) -> Result<Value, Fault> {
        match self.space() {
            Some(b'"') => {
                self.eat();
                Ok(Value::String(self.owned()?))
            }
            Some(b'-' | b'0'..=b'9') => Ok(match self.number()? {
                Figure::U64(value) => Value::Number(value.into()),
                Figure::I64(value) => Value::Number(value.into()),
                Figure::F64(value) => Number::from_f64(value).map_or(Value::Null, Value::Number),
            }),
            Some(b'{') => {
                self.open()?;
                let (mut first, mut map) = (true, Map::new());
                while self.next_name(&mut first)? {
                    if map.is_empty() {
                        map = Map::with_capacity(lengths.0.get(depth).copied().unwrap_or(0));
                    }
                    self.eat();
                    let name = self.owned()?;
                    self.colon()?;
                    let value = self.branch(lengths, depth + 1)?;
                    // Of two with one name, the last.
                    map.insert(name, value);
                }
                if let Some(length) = lengths.0.get_mut(depth) {
                    *length = map.len();
                }
                self.leave();
                self.end_object()?;
                Ok(Value::Object(map))
            }
            Some(b'[') => {
                self.open()?;
                let (mut first, mut items) = (true, Vec::new());
                while self.next_item(&mut first)? {
                    if items.is_empty() {
                        items = Vec::with_capacity(lengths.0.get(depth).copied().unwrap_or(0));
                    }
                    items.push(self.branch(lengths, depth + 1)?);
                }
                if let Some(length) = lengths.0.get_mut(depth) {
                    *length = items.len();
                }
                self.leave();
                self.end_list()?;
                Ok(Value::Array(items))
            }
            Some(b'n') => self.literal(b"null").map(|()| Value::Null),
            Some(b't') => self.literal(b"true").map(|()| Value::Bool(true)),
            Some(b'f') => self.literal(b"false").map(|()| Value::Bool(false)),
            Some(_) => Err(self.peek_fault("expected value")),
            None => Err(self.peek_fault("EOF while parsing a value")),
        }
    }

    /// Reads the rest of a string, behind its quote.
    #[inline(always)]
    fn owned(&mut self) -> Result<String, Fault> {
        let (Text::Borrowed(text) | Text::Copied(text)) = self.string()?;
        Ok(text.to_owned())
    }
}
