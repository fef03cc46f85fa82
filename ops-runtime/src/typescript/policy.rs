//! How much of an operation is written.

/// How much is said in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    None,
    /// The first sentence, of at most so many characters.
    Sentence(usize),
    All,
}

/// How much is written of an optional property of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Optional {
    Whole,
    /// The types that are about as short as `unknown`, of others the name.
    Simple,
    Names,
}

/// How much is written.
#[derive(Debug, Clone)]
pub(super) struct Policy {
    /// What is said of the operation.
    pub(super) operation: Words,
    /// What is said of what callers must give.
    pub(super) due: Words,
    /// What is said of what callers may give.
    pub(super) input: Words,
    /// What is said of the output.
    pub(super) output: Words,
    pub(super) optional: Optional,
    /// How deep objects are written, but for what callers must give.
    pub(super) depth: usize,
    /// How many properties of an object are written, but for what callers must give.
    pub(super) properties: usize,
    /// How many values of an enum are written.
    pub(super) values: usize,
    /// No further named type is written beyond so many bytes, but for what callers must give.
    pub(super) size: usize,
}

/// The most of an enum's values, and the bytes beyond which no further type is written.
const MAX_VALUES: usize = 1_000;
const MAX_SIZE: usize = 256 * 1024;

impl Policy {
    /// Everything, up to sizes that nobody reads.
    pub(super) fn whole() -> Self {
        Self {
            operation: Words::All,
            due: Words::All,
            input: Words::All,
            output: Words::All,
            optional: Optional::Whole,
            depth: usize::MAX,
            properties: usize::MAX,
            values: MAX_VALUES,
            size: MAX_SIZE,
        }
    }

    /// Everything, of any size.
    pub(super) fn declarations() -> Self {
        Self { size: usize::MAX, ..Self::whole() }
    }

    /// Short forms, each shorter than the one before.
    pub(super) fn short() -> impl Iterator<Item = Self> {
        let sentence = Words::Sentence(160);
        let first = Self {
            operation: Words::Sentence(240),
            due: sentence,
            input: sentence,
            output: sentence,
            optional: Optional::Whole,
            depth: 6,
            properties: 200,
            values: 50,
            // What is longer is written anew by the next.
            size: 4 * 1024,
        };
        let brief = Words::Sentence(80);
        let second = Self { due: sentence, input: brief, output: Words::None, depth: 4, values: 20, ..first.clone() };
        let third = Self { depth: 2, optional: Optional::Simple, ..second.clone() };
        let fourth = Self { input: Words::None, due: brief, values: 10, depth: 1, properties: 40, ..third.clone() };
        let fifth = Self { operation: Words::Sentence(120), optional: Optional::Names, properties: 20, ..fourth.clone() };
        let sixth = Self { due: Words::Sentence(40), properties: 8, values: 4, depth: 1, ..fifth.clone() };
        let last = Self { due: Words::None, properties: 0, values: 3, depth: 0, ..sixth.clone() };
        [first, second, third, fourth, fifth, sixth, last].into_iter()
    }

    /// True if nothing is said of properties.
    pub(super) fn is_silent(&self) -> bool {
        [self.due, self.input, self.output].iter().all(|words| *words == Words::None)
    }
}
