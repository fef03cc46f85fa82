//! Strings.

use super::{Cursor, Fault};
use crate::record::names::same;

/// A string that was read.
pub(crate) enum Text<'de, 's> {
    /// As it stands in the text.
    Borrowed(&'de str),
    /// Put together, because it has escapes.
    Copied(&'s str),
}

/// The same for bytes, which need not be UTF-8.
pub(super) enum Bytes<'de, 's> {
    Borrowed(&'de [u8]),
    Copied(&'s [u8]),
}

const ONES: u64 = u64::MAX / 255;

/// Marks the lowest byte of a word that ends a run of plain characters; marks above it may be wrong.
#[inline(always)]
fn special(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let quote = quote.wrapping_sub(ONES) & !quote;
    let backslash = backslash.wrapping_sub(ONES) & !backslash;
    (control | quote | backslash) & (ONES << 7)
}

#[inline(always)]
fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

impl<'de> Cursor<'de> {
    /// Moves to the next quote, backslash or control character, or the end of the text.
    #[inline(always)]
    fn skip_plain(&mut self) {
        while let Some(word) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
            let marks = special(u64::from_le_bytes(*word));
            if marks != 0 {
                self.at += marks.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
        }
        while self.peek().is_some_and(|byte| !is_special(byte)) {
            self.at += 1;
        }
    }

    /// Where a string ends that is next, at its quote, if it is this one, written without escapes.
    ///
    /// The string may hold no character that would be written with an escape.
    #[inline(always)]
    pub(super) fn end_of_name(&self, name: &[u8]) -> Option<usize> {
        let start = self.at + 1;
        let end = start + name.len();
        let is_this = self.bytes.get(end) == Some(&b'"') && self.bytes.get(start..end).is_some_and(|it| same(it, name));
        is_this.then_some(end + 1)
    }

    /// Reads the rest of a string, behind its quote.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Text<'de, '_>, Fault> {
        let start = self.at;
        self.skip_plain();
        if self.peek() == Some(b'"') {
            let end = self.at;
            self.at += 1;
            if let Some(plain) = self.text.and_then(|text| text.get(start..end)) {
                return Ok(Text::Borrowed(plain));
            }
        } else {
            self.unescape::<true>(start)?;
            return match std::str::from_utf8(&self.scratch) {
                Ok(text) => Ok(Text::Copied(text)),
                Err(error) => Err(self.no_utf8(self.scratch.len() - error.valid_up_to())),
            };
        }
        self.unchecked(start)
    }

    /// A string without escapes in a text that is not UTF-8 everywhere; it was read.
    #[cold]
    fn unchecked(&self, start: usize) -> Result<Text<'de, '_>, Fault> {
        let bytes = self.bytes.get(start..self.at - 1).unwrap_or_default();
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Text::Borrowed(text)),
            Err(error) => Err(self.no_utf8(bytes.len() - error.valid_up_to())),
        }
    }

    /// A fault of bytes that lie before the end of the string that was read.
    #[cold]
    fn no_utf8(&self, before: usize) -> Fault {
        let line = self.bytes.get(..self.at).unwrap_or_default().iter().rposition(|byte| *byte == b'\n');
        let line = line.map_or(0, |newline| newline + 1);
        Fault::syntax("invalid unicode code point", line + (self.at - line).saturating_sub(before))
    }

    /// Reads the rest of a string as bytes: control characters and halves of surrogate pairs are taken.
    pub(super) fn byte_string(&mut self) -> Result<Bytes<'de, '_>, Fault> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte != b'"' && byte != b'\\') {
            self.at += 1;
        }
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(Bytes::Borrowed(self.bytes.get(start..self.at - 1).unwrap_or_default()));
        }
        self.unescape::<false>(start)?;
        Ok(Bytes::Copied(&self.scratch))
    }

    /// Reads a string that began at `start` and has escapes, or a fault, into the scratch.
    #[cold]
    fn unescape<const CHECK: bool>(&mut self, mut start: usize) -> Result<(), Fault> {
        self.scratch.clear();
        loop {
            let plain = self.bytes.get(start..self.at).unwrap_or_default();
            match self.peek() {
                Some(b'"') => {
                    self.scratch.extend_from_slice(plain);
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.scratch.extend_from_slice(plain);
                    self.at += 1;
                    self.escape::<CHECK>()?;
                    start = self.at;
                }
                Some(_) if CHECK => {
                    self.at += 1;
                    return Err(self.fault("control character (\\u0000-\\u001F) found while parsing a string"));
                }
                Some(_) => self.at += 1,
                None => return Err(self.fault("EOF while parsing a string")),
            }
            if CHECK {
                self.skip_plain();
            } else {
                while self.peek().is_some_and(|byte| byte != b'"' && byte != b'\\') {
                    self.at += 1;
                }
            }
        }
    }

    /// Reads an escape, behind its backslash.
    #[inline]
    fn escape<const CHECK: bool>(&mut self) -> Result<(), Fault> {
        let byte = match self.next() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode::<CHECK>(),
            Some(_) => return Err(self.fault("invalid escape")),
            None => return Err(self.fault("EOF while parsing a string")),
        };
        self.scratch.push(byte);
        Ok(())
    }

    /// Reads an escape by number, behind its `u`, and the one behind it if both are one character.
    fn unicode<const CHECK: bool>(&mut self) -> Result<(), Fault> {
        let mut first = self.hex()?;
        if CHECK && (0xDC00..=0xDFFF).contains(&first) {
            return Err(self.fault("lone leading surrogate in hex escape"));
        }
        loop {
            if !(0xD800..=0xDBFF).contains(&first) {
                self.push(first);
                return Ok(());
            }
            for expected in [b'\\', b'u'] {
                let Some(byte) = self.peek() else { return Err(self.fault("EOF while parsing a string")) };
                if byte == expected {
                    self.at += 1;
                } else if CHECK {
                    self.at += 1;
                    return Err(self.fault("unexpected end of hex escape"));
                } else {
                    self.push(first);
                    // Behind a backslash, another escape.
                    return if expected == b'u' { self.escape::<CHECK>() } else { Ok(()) };
                }
            }
            let second = self.hex()?;
            if (0xDC00..=0xDFFF).contains(&second) {
                self.push(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00));
                return Ok(());
            }
            if CHECK {
                return Err(self.fault("lone leading surrogate in hex escape"));
            }
            self.push(first);
            first = second;
        }
    }

    /// Adds a character, or half of a surrogate pair in the same encoding.
    fn push(&mut self, code: u32) {
        match char::from_u32(code) {
            Some(char) => self.scratch.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            None => {
                let six = |shift: u32| 0x80 | u8::try_from(code >> shift & 0x3F).unwrap_or(0);
                self.scratch.extend_from_slice(&[0xED, six(6), six(0)]);
            }
        }
    }

    /// Reads four hexadecimal digits.
    fn hex(&mut self) -> Result<u32, Fault> {
        let Some(digits) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<4>) else {
            self.at = self.bytes.len();
            return Err(self.fault("EOF while parsing a string"));
        };
        self.at += 4;
        let mut code = 0;
        for digit in digits {
            match char::from(*digit).to_digit(16) {
                Some(digit) => code = code << 4 | digit,
                None => return Err(self.fault("invalid escape")),
            }
        }
        Ok(code)
    }

    /// Passes over the rest of a string, behind its quote. Unless it is checked, numbers in escapes may be halves of
    /// characters.
    #[inline]
    pub(crate) fn skip_string<const CHECK: bool>(&mut self) -> Result<(), Fault> {
        self.skip_plain();
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(());
        }
        self.skip_escaped::<CHECK>()
    }

    #[cold]
    fn skip_escaped<const CHECK: bool>(&mut self) -> Result<(), Fault> {
        loop {
            match self.next() {
                Some(b'"') => return Ok(()),
                Some(b'\\') => match self.next() {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {}
                    Some(b'u') if CHECK => {
                        self.scratch.clear();
                        self.unicode::<true>()?;
                    }
                    Some(b'u') => drop(self.hex()?),
                    Some(_) => return Err(self.fault("invalid escape")),
                    None => return Err(self.fault("EOF while parsing a string")),
                },
                Some(_) => {
                    self.at -= 1;
                    return Err(self.fault("control character (\\u0000-\\u001F) found while parsing a string"));
                }
                None => return Err(self.fault("EOF while parsing a string")),
            }
            self.skip_plain();
        }
    }
}
