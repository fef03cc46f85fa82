//! How much of an operation is written.

/// How much [`describe`](super::describe) says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detail {
    /// What a caller needs to begin with, in under 2,400 bytes unless what is required takes more.
    ///
    /// Everything that is required is there with its type. Of the rest, as much is there as fits: descriptions are cut to
    /// a few sentences or to one, optional properties to their names, and types that are cut are `unknown`.
    Short,
    /// Everything. Of an enum, 1,000 values are written, and no further type beyond 256 KB.
    Whole,
}

/// How much is said in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    None,
    /// The first sentences: at most how many, and of how many characters.
    Sentences(usize, usize),
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

/// How much is written of objects, but for what callers must give.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// How deep they are written.
    pub(super) depth: usize,
    /// How many properties of each are written.
    pub(super) properties: usize,
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
    /// What is written of objects that callers may give, and of those that they get.
    pub(super) given: Extent,
    pub(super) got: Extent,
    /// How many values of an enum are written, and how many of one that has more.
    pub(super) values: usize,
    pub(super) first: usize,
    /// No further named type is written beyond so many bytes, but for what callers must give.
    pub(super) size: usize,
}

/// The most of an enum's values, a few of them as examples, and the bytes beyond which no further type is written.
const MAX_VALUES: usize = 1_000;
const EXAMPLES: usize = 8;
const MAX_SIZE: usize = 256 * 1024;

impl Policy {
    /// Everything, up to sizes that no reader can use.
    pub(super) fn whole() -> Self {
        Self {
            operation: Words::All,
            due: Words::All,
            input: Words::All,
            output: Words::All,
            optional: Optional::Whole,
            given: Extent { depth: usize::MAX, properties: usize::MAX },
            got: Extent { depth: usize::MAX, properties: usize::MAX },
            values: MAX_VALUES,
            first: MAX_VALUES,
            size: MAX_SIZE,
        }
    }

    /// Everything, of any size.
    pub(super) fn declarations() -> Self {
        Self { first: EXAMPLES, size: usize::MAX, ..Self::whole() }
    }

    /// Short forms, each shorter than the one before. What callers may give stays longer than what they get.
    pub(super) fn short() -> impl Iterator<Item = Self> {
        let extent = |depth, properties| Extent { depth, properties };
        let few = |limit| Words::Sentences(3, limit);
        let one = |limit| Words::Sentences(1, limit);
        let first = Self {
            operation: few(240),
            due: few(160),
            input: few(160),
            output: few(160),
            optional: Optional::Whole,
            given: extent(6, 200),
            got: extent(6, 200),
            values: 50,
            first: EXAMPLES,
            // What is longer is written anew by the next.
            size: 4 * 1024,
        };
        let second = Self { operation: one(240), due: one(160), input: one(160), output: one(160), ..first.clone() };
        let third = Self { input: one(80), output: Words::None, got: extent(2, 100), values: 20, ..second.clone() };
        let fourth = Self { got: extent(1, 60), given: extent(4, 100), ..third.clone() };
        let fifth = Self { optional: Optional::Simple, got: extent(1, 30), ..fourth.clone() };
        let sixth = Self { input: Words::None, due: one(80), values: 12, given: extent(3, 60), ..fifth.clone() };
        let seventh = Self { operation: one(160), got: extent(1, 12), given: extent(2, 40), ..sixth.clone() };
        let eighth =
            Self { optional: Optional::Names, got: extent(1, 8), given: extent(2, 30), values: 6, ..seventh.clone() };
        let last = Self { due: Words::None, got: extent(0, 0), given: extent(1, 12), values: 3, ..eighth.clone() };
        [first, second, third, fourth, fifth, sixth, seventh, eighth, last].into_iter()
    }

    /// True if nothing is said of properties.
    pub(super) fn is_silent(&self) -> bool {
        [self.due, self.input, self.output].iter().all(|words| *words == Words::None)
    }
}
