//! What texts mean, as vectors: texts that say the same in other words have vectors that lie near each other.
//!
//! `meaning/words.bin` has a vector for each piece of an English word, made from a sentence model (`meaning/build`). The
//! meaning of a text is the sum of the vectors of its pieces, and how near two texts are is the cosine between their sums.
//! A sum knows no order: a phrase that means something else than its words (`call off`) is for the tables of synonyms.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::words::words;

/// Three numbers of four bytes (pieces, numbers in a vector, bytes of the names), the names with line breaks between them, a
/// scale of four bytes for each piece, and its vector, two numbers a byte, each 8 more than it is.
const WORDS: &[u8] = include_bytes!("meaning/words.bin");

/// Begins the name of a piece that does not begin a word.
const INNER: &str = "##";

/// The longest word that is looked up, in bytes.
const LONGEST: usize = 40;

/// The vectors of pieces of words.
pub(super) struct Pieces {
    /// The numbers of pieces that begin words, and of those within words.
    first: HashMap<&'static str, usize>,
    inner: HashMap<&'static str, usize>,
    scales: &'static [u8],
    vectors: &'static [u8],
    /// How many numbers a vector has.
    size: usize,
}

/// The vectors of the table, read once.
pub(super) fn pieces() -> &'static Pieces {
    static PIECES: OnceLock<Pieces> = OnceLock::new();
    PIECES.get_or_init(|| Pieces::read(WORDS).unwrap_or_else(Pieces::none))
}

impl Pieces {
    fn none() -> Self {
        Self { first: HashMap::new(), inner: HashMap::new(), scales: &[], vectors: &[], size: 0 }
    }

    fn read(bytes: &'static [u8]) -> Option<Self> {
        let (count, rest) = number(bytes)?;
        let (size, rest) = number(rest)?;
        let (length, rest) = number(rest)?;
        let (names, rest) = rest.split_at_checked(length)?;
        let (scales, vectors) = rest.split_at_checked(count.checked_mul(4)?)?;
        let mut pieces = Self { scales, vectors, size, ..Self::none() };
        for (at, name) in std::str::from_utf8(names).ok()?.split('\n').enumerate() {
            match name.strip_prefix(INNER) {
                Some(name) => pieces.inner.insert(name, at),
                None => pieces.first.insert(name, at),
            };
        }
        let is_whole =
            vectors.len() == count.checked_mul(size)? / 2 && pieces.first.len() + pieces.inner.len() == count;
        is_whole.then_some(pieces)
    }

    /// A text without meaning, to which words are added.
    pub(super) fn empty(&self) -> Vec<f32> {
        vec![0.0; self.size]
    }

    /// Adds the meaning of a word in lower case: that of the longest piece that it begins with, and so on.
    pub(super) fn add(&self, word: &str, sum: &mut [f32]) {
        if word.len() > LONGEST {
            return;
        }
        let mut rest = word;
        while !rest.is_empty() {
            let known = if rest.len() == word.len() { &self.first } else { &self.inner };
            let ends = (1..=rest.len()).rev();
            let found = ends.filter_map(|end| rest.split_at_checked(end)).find_map(|(piece, rest)| {
                let at = known.get(piece)?;
                Some((*at, rest))
            });
            let Some((at, left)) = found else { return };
            self.add_piece(at, sum);
            rest = left;
        }
    }

    fn add_piece(&self, at: usize, sum: &mut [f32]) {
        let scale =
            self.scales.get(at * 4..).and_then(|scales| scales.first_chunk()).map(|scale| f32::from_le_bytes(*scale));
        let bytes = self.size / 2;
        let vector = self.vectors.get(at * bytes..(at + 1) * bytes);
        let (Some(scale), Some(vector)) = (scale, vector) else { return };
        for (pair, byte) in sum.chunks_exact_mut(2).zip(vector) {
            if let [low, high] = pair {
                *low += scale * (f32::from(byte & 15) - 8.0);
                *high += scale * (f32::from(byte >> 4) - 8.0);
            }
        }
    }

    /// The meaning of a text, as a vector of length 1.
    pub(super) fn meaning(&self, text: &str) -> Vec<f32> {
        let mut sum = self.empty();
        words(text, |word, is_whole| {
            if !is_whole {
                self.add(word, &mut sum);
            }
        });
        let length = length(&sum);
        sum.iter_mut().for_each(|number| *number /= length);
        sum
    }
}

/// A number of four bytes, and what follows it.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number) as usize, rest))
}

/// The length of a vector, which is not 0.
fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|number| number * number).sum::<f32>().sqrt().max(f32::EPSILON)
}

/// The meanings of many texts, in a byte a number.
#[derive(Debug, Default)]
pub(super) struct Meanings {
    numbers: Vec<i8>,
    /// What each text's numbers are to be multiplied by, so that its vector has length 1.
    scales: Vec<f32>,
}

impl Meanings {
    /// Adds a text with this sum of the vectors of its words.
    pub(super) fn push(&mut self, sum: &[f32]) {
        let most = sum.iter().fold(0.0_f32, |most, number| most.max(number.abs())).max(f32::EPSILON);
        let start = self.numbers.len();
        self.numbers.extend(sum.iter().map(|number| (number / most * 127.0).round() as i8));
        let kept = self.numbers.get(start..).unwrap_or_default();
        let square: f32 = kept.iter().map(|number| f32::from(*number) * f32::from(*number)).sum();
        self.scales.push(1.0 / square.sqrt().max(1.0));
    }

    /// Adds the vector of a text to a sum.
    pub(super) fn add_to(&self, text: usize, sum: &mut [f32]) {
        let size = sum.len();
        let numbers = self.numbers.get(text * size..(text + 1) * size).unwrap_or_default();
        let scale = self.scales.get(text).copied().unwrap_or_default();
        sum.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += scale * f32::from(*number));
    }

    /// How near a text is to a meaning, from -1 to 1.
    pub(super) fn nearness(&self, text: usize, meaning: &[f32]) -> f32 {
        let size = meaning.len();
        let numbers = self.numbers.get(text * size..(text + 1) * size).unwrap_or_default();
        let sum: f32 = numbers.iter().zip(meaning).map(|(number, other)| f32::from(*number) * other).sum();
        sum * self.scales.get(text).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearness(a: &str, b: &str) -> f32 {
        let pieces = pieces();
        let mut meanings = Meanings::default();
        meanings.push(&pieces.meaning(a));
        meanings.nearness(0, &pieces.meaning(b))
    }

    #[test]
    fn the_table_is_whole() {
        let pieces = Pieces::read(WORDS).unwrap();
        assert!(pieces.first.len() > 15_000 && pieces.inner.len() > 3_000 && pieces.size >= 128);
        assert!(WORDS.len() < 4_000_000, "{} bytes", WORDS.len());
    }

    #[test]
    fn other_bytes_are_no_table() {
        for cut in [0, 3, 11, 12, 1_000, WORDS.len() - 1] {
            assert!(Pieces::read(&WORDS[..cut]).is_none(), "{cut}");
        }
        assert!(Pieces::read(&[255; 64]).is_none());
    }

    #[test]
    fn texts_in_other_words_are_near() {
        for (a, same, other) in [
            ("give a customer their money back", "Create a refund", "List all customers"),
            ("picture of the web page", "Take a screenshot of the current page", "Create a page"),
            ("which machines do we have", "List virtual servers", "List invoices"),
        ] {
            let (near, far) = (nearness(a, same), nearness(a, other));
            assert!(near > far, "{a}: {same} {near}, {other} {far}");
        }
        let same = nearness("listPets of the shop", "list pets of the shop");
        assert!(same > 0.999, "{same}");
    }

    #[test]
    fn what_has_no_meaning_is_near_to_nothing() {
        let long = "x".repeat(10_000);
        for text in ["", " ,.", "\u{4f60}\u{597d}", "e\u{301}\u{0}", &long] {
            assert!(nearness(text, "list pets").abs() < 0.9, "{text}");
            assert!(nearness("list pets", text).is_finite());
        }
    }
}
