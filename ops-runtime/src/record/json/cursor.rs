//! A place in a text, and what is read there: punctuation, literals, and values that are passed over.

use super::Fault;

/// How deep values may be nested.
const DEPTH: u8 = 128;
const TOO_DEEP: &str = "recursion limit exceeded";

/// A place in a JSON text.
pub(crate) struct Cursor<'de> {
    pub(super) bytes: &'de [u8],
    /// The same text, unless it has bytes that are not UTF-8: then each string is checked by itself.
    pub(super) text: Option<&'de str>,
    pub(super) at: usize,
    /// How many more values may be open.
    left: u8,
    /// The string that is being put together, or what is open around a value that is passed over.
    pub(super) scratch: Vec<u8>,
}

impl<'de> Cursor<'de> {
    /// The beginning of a text.
    #[inline]
    pub(crate) fn new(bytes: &'de [u8]) -> Self {
        Self { bytes, text: std::str::from_utf8(bytes).ok(), at: 0, left: DEPTH, scratch: Vec::new() }
    }

    /// The beginning of a text that is known to be UTF-8.
    #[inline]
    pub(crate) fn of_str(text: &'de str) -> Self {
        Self { bytes: text.as_bytes(), text: Some(text), at: 0, left: DEPTH, scratch: Vec::new() }
    }

    /// The byte that is next.
    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline(always)]
    pub(crate) fn eat(&mut self) {
        self.at += 1;
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<u8> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    /// Passes over white space; returns the byte that is next.
    #[inline(always)]
    pub(crate) fn space(&mut self) -> Option<u8> {
        loop {
            match self.peek() {
                Some(byte) if byte > b' ' => return Some(byte),
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                other => return other,
            }
        }
    }

    /// A fault of the byte that was read last.
    #[cold]
    pub(super) fn fault(&self, message: &'static str) -> Fault {
        Fault::syntax(message, self.at)
    }

    /// A fault of the byte that is next.
    #[cold]
    pub(super) fn peek_fault(&self, message: &'static str) -> Fault {
        Fault::syntax(message, (self.at + 1).min(self.bytes.len()))
    }

    /// Opens an array or object, at its bracket.
    #[inline(always)]
    pub(crate) fn open(&mut self) -> Result<(), Fault> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return Err(self.peek_fault(TOO_DEEP));
        }
        self.at += 1;
        Ok(())
    }

    /// Leaves an array or object; it may not have been read to its end.
    #[inline(always)]
    pub(crate) fn leave(&mut self) {
        self.left += 1;
    }

    /// Reads the end of an array.
    #[inline(always)]
    pub(crate) fn end_list(&mut self) -> Result<(), Fault> {
        match self.space() {
            Some(b']') => {
                self.eat();
                Ok(())
            }
            other => Err(self.unended_list(other)),
        }
    }

    #[cold]
    fn unended_list(&mut self, next: Option<u8>) -> Fault {
        match next {
            Some(b',') => {
                self.eat();
                let is_end = self.space() == Some(b']');
                self.peek_fault(if is_end { "trailing comma" } else { "trailing characters" })
            }
            Some(_) => self.peek_fault("trailing characters"),
            None => self.peek_fault("EOF while parsing a list"),
        }
    }

    /// Reads the end of an object.
    #[inline(always)]
    pub(crate) fn end_object(&mut self) -> Result<(), Fault> {
        match self.space() {
            Some(b'}') => {
                self.eat();
                Ok(())
            }
            Some(b',') => Err(self.peek_fault("trailing comma")),
            Some(_) => Err(self.peek_fault("trailing characters")),
            None => Err(self.peek_fault("EOF while parsing an object")),
        }
    }

    /// Moves to the next item of an array; `false` at its end, which is not read.
    #[inline(always)]
    pub(crate) fn next_item(&mut self, first: &mut bool) -> Result<bool, Fault> {
        match self.space() {
            Some(b']') => Ok(false),
            Some(_) if *first => {
                *first = false;
                Ok(true)
            }
            Some(b',') => {
                self.eat();
                match self.space() {
                    Some(b']') => Err(self.peek_fault("trailing comma")),
                    Some(_) => Ok(true),
                    None => Err(self.peek_fault("EOF while parsing a value")),
                }
            }
            Some(_) => Err(self.peek_fault("expected `,` or `]`")),
            None => Err(self.peek_fault("EOF while parsing a list")),
        }
    }

    /// Moves to the quote of the next name of an object; `false` at its end, which is not read.
    #[inline(always)]
    pub(crate) fn next_name(&mut self, first: &mut bool) -> Result<bool, Fault> {
        match self.space() {
            Some(b'}') => Ok(false),
            Some(b'"') if *first => {
                *first = false;
                Ok(true)
            }
            Some(_) if *first => {
                *first = false;
                Err(self.peek_fault("key must be a string"))
            }
            Some(b',') => {
                self.eat();
                match self.space() {
                    Some(b'"') => Ok(true),
                    Some(b'}') => Err(self.peek_fault("trailing comma")),
                    Some(_) => Err(self.peek_fault("key must be a string")),
                    None => Err(self.peek_fault("EOF while parsing a value")),
                }
            }
            Some(_) => Err(self.peek_fault("expected `,` or `}`")),
            None => Err(self.peek_fault("EOF while parsing an object")),
        }
    }

    /// Reads the colon behind a name.
    #[inline(always)]
    pub(crate) fn colon(&mut self) -> Result<(), Fault> {
        match self.space() {
            Some(b':') => {
                self.eat();
                Ok(())
            }
            Some(_) => Err(self.peek_fault("expected `:`")),
            None => Err(self.peek_fault("EOF while parsing an object")),
        }
    }

    /// Reads the rest of `null`, `true` or `false`, at its first letter.
    #[inline(always)]
    pub(crate) fn literal(&mut self, whole: &'static [u8]) -> Result<(), Fault> {
        if self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(whole)) {
            self.at += whole.len();
            return Ok(());
        }
        self.eat();
        self.no_literal(whole.get(1..).unwrap_or_default())
    }

    /// Reads the rest of a literal byte by byte, to find what is wrong.
    #[cold]
    pub(super) fn no_literal(&mut self, rest: &'static [u8]) -> Result<(), Fault> {
        for expected in rest {
            match self.next() {
                None => return Err(self.fault("EOF while parsing a value")),
                Some(found) if found != *expected => return Err(self.fault("expected ident")),
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Checks that nothing follows.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        match self.space() {
            Some(_) => Err(self.peek_fault("trailing characters")),
            None => Ok(()),
        }
    }

    /// Passes over a value, however deep it is.
    pub(crate) fn skip(&mut self) -> Result<(), Fault> {
        self.scratch.clear();
        let Some(mut inner) = self.skip_one()? else { return Ok(()) };
        let mut accept_comma = false;
        loop {
            // Behind an opening bracket or a value in what is open.
            match self.space() {
                Some(b',') if accept_comma => self.eat(),
                Some(b']') if inner == b'[' => {
                    self.eat();
                    match self.scratch.pop() {
                        Some(outer) => inner = outer,
                        None => return Ok(()),
                    }
                    accept_comma = true;
                    continue;
                }
                Some(b'}') if inner == b'{' => {
                    self.eat();
                    match self.scratch.pop() {
                        Some(outer) => inner = outer,
                        None => return Ok(()),
                    }
                    accept_comma = true;
                    continue;
                }
                Some(_) if !accept_comma => {}
                Some(_) if inner == b'[' => return Err(self.peek_fault("expected `,` or `]`")),
                Some(_) => return Err(self.peek_fault("expected `,` or `}`")),
                None if inner == b'[' => return Err(self.peek_fault("EOF while parsing a list")),
                None => return Err(self.peek_fault("EOF while parsing an object")),
            }
            if inner == b'{' {
                match self.space() {
                    Some(b'"') => self.eat(),
                    Some(_) => return Err(self.peek_fault("key must be a string")),
                    None => return Err(self.peek_fault("EOF while parsing an object")),
                }
                self.skip_string::<false>()?;
                self.colon()?;
            }
            accept_comma = match self.skip_one()? {
                None => true,
                Some(opened) => {
                    self.scratch.push(inner);
                    inner = opened;
                    false
                }
            };
        }
    }

    /// Passes over a scalar, or the bracket that opens another value, which is returned.
    #[inline(always)]
    fn skip_one(&mut self) -> Result<Option<u8>, Fault> {
        match self.space() {
            Some(b'"') => {
                self.eat();
                self.skip_string::<false>()?;
            }
            Some(b'-') => {
                self.eat();
                self.skip_number()?;
            }
            Some(b'0'..=b'9') => self.skip_number()?,
            Some(b'n') => self.literal(b"null")?,
            Some(b't') => self.literal(b"true")?,
            Some(b'f') => self.literal(b"false")?,
            Some(bracket @ (b'[' | b'{')) => {
                self.eat();
                return Ok(Some(bracket));
            }
            Some(_) => return Err(self.peek_fault("expected value")),
            None => return Err(self.peek_fault("EOF while parsing a value")),
        }
        Ok(None)
    }
}

/// A place to return to: what is before it, and what is open around it.
#[cfg(feature = "registry")]
#[derive(Clone, Copy)]
pub(crate) struct Place {
    at: usize,
    left: u8,
}

/// What only the normaliser asks for, which reads token by token.
#[cfg(feature = "registry")]
impl Cursor<'_> {
    /// True if all of the text is UTF-8.
    pub(crate) fn is_utf8(&self) -> bool {
        self.text.is_some()
    }

    /// The number of bytes before the place.
    #[inline(always)]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The place, to return to it.
    #[inline(always)]
    pub(crate) fn place(&self) -> Place {
        Place { at: self.at, left: self.left }
    }

    /// Goes back to a place, also out of arrays and objects that were opened since.
    pub(crate) fn return_to(&mut self, place: Place) {
        (self.at, self.left) = (place.at, place.left);
    }

    /// Goes back to a place in the same array or object.
    #[inline(always)]
    pub(crate) fn back_to(&mut self, at: usize) {
        self.at = at;
    }
}
