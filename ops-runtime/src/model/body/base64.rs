//! Base64 (RFC 4648, section 4): small, so that the model needs no dependency for it.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes as base64 with padding.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().enumerate().fold(0_u32, |bits, (i, byte)| bits | u32::from(*byte) << (16 - 8 * i));
        for place in 0..4 {
            let digit = ALPHABET.get((bits >> (18 - 6 * place) & 63) as usize).filter(|_| place <= chunk.len());
            text.push(digit.map_or('=', |digit| char::from(*digit)));
        }
    }
    text
}

/// The bytes of a text in base64, with padding or without; `None` if it is not base64.
///
/// Unused bits must be zero, so that two texts for the same bytes differ at most by their padding.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    each(text, |piece| bytes.extend_from_slice(piece))?;
    Some(bytes)
}

/// How many bytes [`decode`] gives.
#[cfg(feature = "registry")]
pub(super) fn length(text: &str) -> Option<usize> {
    let mut length = 0_usize;
    each(text, |piece| length += piece.len())?;
    Some(length)
}

/// Decodes a text piece by piece.
fn each(text: &str, mut put: impl FnMut(&[u8])) -> Option<()> {
    let mut digits = text.as_bytes();
    if digits.len().is_multiple_of(4) {
        digits = digits.strip_suffix(b"==").or_else(|| digits.strip_suffix(b"=")).unwrap_or(digits);
    }
    for chunk in digits.chunks(4) {
        let mut bits = 0_u32;
        for digit in chunk {
            bits = bits << 6 | value(*digit)?;
        }
        let [_, a, b, c] = (bits << (6 * (4 - chunk.len()))).to_be_bytes();
        let (whole, rest): (&[u8], &[u8]) = match chunk.len() {
            4 => (&[a, b, c], &[]),
            3 => (&[a, b], &[c]),
            2 => (&[a], &[b, c]),
            _ => return None,
        };
        if rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        put(whole);
    }
    Some(())
}

fn value(digit: u8) -> Option<u32> {
    Some(match digit {
        b'A'..=b'Z' => u32::from(digit - b'A'),
        b'a'..=b'z' => u32::from(digit - b'a') + 26,
        b'0'..=b'9' => u32::from(digit - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_the_standard() {
        let table =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")];
        for (bytes, text) in table {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
            assert_eq!(decode(text.trim_end_matches('=')).unwrap(), bytes.as_bytes());
            #[cfg(feature = "registry")]
            assert_eq!(length(text), Some(bytes.len()));
        }
        for bad in ["Z", "Zg=", "Zg===", "Zh==", "Zm9=", "Zm9v=", "====", "Z g=", "Zm9vYmFy\n", "Zm-_", "=Zm9", "ü"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        for start in 0..4 {
            assert_eq!(decode(&encode(&all[start..])).unwrap(), &all[start..]);
        }
    }
}
