//! How large patterns are once they are compiled: short ones may be huge.

use std::sync::atomic::{AtomicUsize, Ordering};

use regex_syntax::ast::ErrorKind::{EscapeUnrecognized, UnsupportedBackreference, UnsupportedLookAround};
use regex_syntax::hir::{Class, Hir, HirKind};

use super::SIZE_LIMIT;

/// How much all patterns of one schema, table of definitions or validator may take together, in bytes.
const ALLOWANCE: usize = 64 << 20;
/// A pattern that takes no more than this for each byte of its text takes nothing of that: who writes it pays for it.
const PER_BYTE: usize = 512;
/// The size that counts as one in the steps of a search.
const LIGHT: usize = 64 << 10;
/// What a state of an automaton takes, and a range of characters that are written in several bytes.
const STATE: usize = 32;
const RANGE: usize = 100;

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
        if size <= length.saturating_mul(PER_BYTE) {
            return Some(0);
        }
        let take = |left: usize| left.checked_sub(size);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok().then_some(size)
    }

    /// Gives back what a pattern took that is not held. It keeps a little, for the time that it took to find that out.
    pub(super) fn give_back(&self, taken: usize) {
        self.0.fetch_add(taken.saturating_sub(LIGHT), Ordering::Relaxed);
    }
}

/// How many times as much work a search is as with a small pattern.
pub(super) fn weight(size: usize) -> u64 {
    (size.min(SIZE_LIMIT) as u64).div_ceil(LIGHT as u64).max(1)
}

/// About how much memory a pattern takes; `None` if no engine can read it.
pub(super) fn read(source: &str) -> Option<usize> {
    match regex_syntax::parse(source) {
        Ok(pattern) => Some(size(&pattern)),
        // These, and `\k<name>`, are for the other engine.
        Err(regex_syntax::Error::Parse(error)) => {
            let is_other =
                matches!(error.kind(), EscapeUnrecognized | UnsupportedBackreference | UnsupportedLookAround);
            let is_read = is_other && fancy_regex::Expr::parse_tree(source).is_ok();
            is_read.then(|| regex_syntax::parse(&plain(source)).map_or(SIZE_LIMIT, |pattern| size(&pattern)))
        }
        Err(_) => None,
    }
}

/// A pattern with groups for what it looks around at, and without references to groups: it takes about as much.
fn plain(source: &str) -> String {
    let mut plain = String::with_capacity(source.len());
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('1'..='9') => {}
                Some('k') if chars.peek() == Some(&'<') => _ = chars.by_ref().find(|c| *c == '>'),
                escaped => plain.extend([Some(c), escaped].into_iter().flatten()),
            },
            _ => plain.push(c),
        }
    }
    ["(?=", "(?!", "(?<=", "(?<!"].iter().fold(plain, |plain, look| plain.replace(look, "(?:"))
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
