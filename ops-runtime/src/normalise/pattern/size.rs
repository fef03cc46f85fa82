//! How large patterns are once they are compiled: short ones may be huge.

use std::sync::atomic::{AtomicUsize, Ordering};

use regex_syntax::ast::ErrorKind::{EscapeUnrecognized, UnsupportedBackreference, UnsupportedLookAround};
use regex_syntax::hir::{Class, Hir, HirKind};

use super::SIZE_LIMIT;
use super::translate::BOUNDARIES;

/// How much all patterns of one schema, table of definitions or validator may take together, in bytes.
const ALLOWANCE: usize = 64 << 20;
/// A pattern that takes no more than this for each byte of its text takes nothing of that: who writes it pays for it.
const PER_BYTE: usize = 512;
/// The size that counts as one in the steps of a search.
const LIGHT: usize = 64 << 10;
/// The least that a pattern takes that is compiled at once, however short it is.
const COMPILED: usize = 16 << 10;
/// What a state of an automaton takes, and a range of characters that are written in several bytes.
const STATE: usize = 32;
const RANGE: usize = 100;
/// What the engine that backtracks takes, which holds a pattern as instructions: for each byte of the text,
const NODE: usize = 256;
/// for a boundary of words, for which [several instructions](BOUNDARIES) stand,
const BOUNDARY: usize = 4 << 10;
/// for each part that may get an automaton of its own: what is looked at, and what is beside a reference,
const PART: usize = 8 << 10;
/// and for each alternative. Some get an automaton of their own, but most are plain text.
const ALTERNATIVE: usize = 2 << 10;

/// What patterns may still take.
#[derive(Debug)]
pub(in crate::normalise) struct Allowance(AtomicUsize);

impl Default for Allowance {
    fn default() -> Self {
        Allowance(AtomicUsize::new(ALLOWANCE))
    }
}

impl Allowance {
    /// Takes the size of a pattern whose text is so long, and returns what was taken; `None` if there is not enough left.
    pub(super) fn take(&self, size: usize, length: usize) -> Option<usize> {
        let size = size.min(SIZE_LIMIT);
        if size <= length.saturating_mul(PER_BYTE) { Some(0) } else { self.take_size(size) }
    }

    /// Like [`take`](Self::take), for a pattern that is compiled at once, used or not: it always takes something.
    pub(super) fn take_compiled(&self, size: usize) -> Option<usize> {
        self.take_size(size.clamp(COMPILED, 2 * SIZE_LIMIT))
    }

    fn take_size(&self, size: usize) -> Option<usize> {
        let take = |left: usize| left.checked_sub(size);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok().then_some(size)
    }

    /// Gives back what a pattern took that is not held. It keeps a little, for the time that it took to find that out.
    pub(super) fn give_back(&self, taken: usize) {
        self.0.fetch_add(taken.saturating_sub(LIGHT), Ordering::Relaxed);
    }
}

/// How many times as much work a search is as with a small pattern.
fn weight(size: usize) -> u64 {
    (size.min(SIZE_LIMIT) as u64).div_ceil(LIGHT as u64).max(1)
}

/// What is known of a pattern before it is compiled.
pub(super) struct Read {
    /// About how much memory it takes.
    pub(super) size: usize,
    /// How many times as much work a search is as with a small pattern.
    pub(super) weight: u64,
    /// True if it is for the engine that takes linear time; or else it is for the one that backtracks, if that supports it.
    pub(super) is_linear: bool,
}

/// Reads a pattern. `None` if no engine can read it.
pub(super) fn read(source: &str) -> Option<Read> {
    match regex_syntax::parse(source) {
        Ok(pattern) => {
            let size = size(&pattern);
            Some(Read { size, weight: weight(size), is_linear: true })
        }
        // These, and `\k<name>`, are for the other engine.
        Err(regex_syntax::Error::Parse(error)) => {
            let is_other =
                matches!(error.kind(), EscapeUnrecognized | UnsupportedBackreference | UnsupportedLookAround);
            let (plain, parts) = is_other.then(|| plain(source))?;
            let automaton = size(&regex_syntax::parse(&plain).ok()?);
            let boundaries: usize = BOUNDARIES.iter().map(|(boundary, _)| source.matches(boundary).count()).sum();
            let instructions = source.len().saturating_mul(NODE).saturating_add(boundaries.saturating_mul(BOUNDARY));
            let size = automaton.saturating_add(instructions).saturating_add(parts);
            Some(Read { size, weight: weight(automaton), is_linear: false })
        }
        Err(_) => None,
    }
}

/// What begins a group that is looked at, and not taken.
const LOOKS: [&str; 4] = ["(?=", "(?!", "(?<=", "(?<!"];

/// A pattern with groups for what it looks around at, and with nothing for references to groups. The number is what the
/// engine that backtracks takes for these, and for alternatives.
fn plain(source: &str) -> (String, usize) {
    let mut plain = String::with_capacity(source.len());
    let mut parts = 0_usize;
    let mut rest = source;
    // A set such as `\W` in a class is a class in it.
    let mut classes = 0_usize;
    while let Some(c) = rest.chars().next() {
        if let Some(inside) = LOOKS.iter().find_map(|look| rest.strip_prefix(*look)).filter(|_| classes == 0) {
            plain.push_str("(?:");
            parts = parts.saturating_add(PART);
            rest = inside;
            continue;
        }
        let mut chars = rest.chars();
        chars.next();
        match c {
            '\\' => match chars.next() {
                Some('1'..='9') => {
                    parts = parts.saturating_add(PART);
                    plain.push_str("(?:)");
                }
                Some('k') if chars.as_str().starts_with('<') => {
                    _ = chars.find(|c| *c == '>');
                    parts = parts.saturating_add(PART);
                    plain.push_str("(?:)");
                }
                escaped => plain.extend([Some(c), escaped].into_iter().flatten()),
            },
            _ => {
                if c == '|' && classes == 0 {
                    parts = parts.saturating_add(ALTERNATIVE);
                }
                classes = match c {
                    '[' => classes + 1,
                    ']' => classes.saturating_sub(1),
                    _ => classes,
                };
                plain.push(c);
            }
        }
        rest = chars.as_str();
    }
    (plain, parts)
}

/// As deep as patterns may be nested, which the parser limits.
fn size(pattern: &Hir) -> usize {
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => STATE,
        HirKind::Literal(literal) => literal.0.len().saturating_mul(STATE),
        HirKind::Class(Class::Unicode(class)) if !class.is_ascii() => class.ranges().len().saturating_mul(RANGE),
        HirKind::Class(_) => STATE,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1);
            size(&repetition.sub).saturating_add(STATE).saturating_mul(times as usize)
        }
        HirKind::Capture(capture) => size(&capture.sub).saturating_add(2 * STATE),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(size).fold(STATE, usize::saturating_add)
        }
    }
}
