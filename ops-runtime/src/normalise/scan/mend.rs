//! Mending a text: only what needs a change is read into a value, and only that is written anew.
//!
//! A part that does not pass is repaired by the same [`Fixer`] as in a whole value. That gives the same result, because
//! nothing above it is still open: the scan goes into objects and arrays, and into the one variant of a union that the
//! repair would choose, too. Undeclared properties, and a `null` that stands for absence, are cut out without a value.

use std::borrow::Cow;

use serde_json::Value;

use super::{Next, No, Passes, Scanner};
use crate::normalise::check::Checker;
use crate::normalise::findings::Repair;
use crate::normalise::node::{Additional, At, ObjectRules};
use crate::normalise::path::Path;
use crate::normalise::repair::{Fixer, Mark, Measure, Mode, Strip};
use crate::record::json::{Figure, Place};

/// A text in the shape of its schema, and what was done for it.
pub(in crate::normalise) struct Mended<'t> {
    pub(in crate::normalise) text: Cow<'t, str>,
    pub(in crate::normalise) repairs: Vec<Repair>,
    /// How many repairs there are that are not listed.
    pub(in crate::normalise) more: usize,
}

/// What is to be changed in a text.
pub(super) struct Mender<'c, 'a, 't> {
    fixer: Fixer<'c, 'a>,
    /// In the order of the text.
    edits: Vec<Edit>,
    /// What is to be written, of all edits, one behind the other.
    patches: Vec<u8>,
    /// The properties that are cut out of the objects that are open, and their kinds: they are told at an object's end.
    removed: Vec<(&'t str, &'static str)>,
    /// True if the whole value is needed.
    gave_up: bool,
}

/// A part of the text, and where what replaces it ends.
struct Edit {
    from: usize,
    to: usize,
    patch_end: usize,
}

/// The state before a part is scanned.
struct Start {
    place: Place,
    names: usize,
    seen: usize,
    edits: usize,
    patches: usize,
    removed: usize,
    told: Mark,
}

/// The properties of an object that are cut out, from the last that was kept on.
pub(super) struct Cut {
    from: usize,
    to: usize,
    has_kept: bool,
}

impl Cut {
    /// Nothing, behind the bracket of an object.
    pub(super) fn behind(bracket: usize) -> Self {
        Cut { from: bracket, to: bracket, has_kept: false }
    }

    /// Notes that a property was kept, which ends here.
    pub(super) fn keep(&mut self, end: usize) {
        *self = Cut { from: end, to: end, has_kept: true };
    }

    /// Notes that a property is cut out, which ends here.
    pub(super) fn remove(&mut self, end: usize) {
        self.to = end;
    }
}

impl<'c, 'a, 't> Scanner<'c, 'a, 't> {
    /// Repairs a text at the places that need it; `None` if a value is needed to tell.
    pub(in crate::normalise) fn mend(
        mut self,
        root: At<'a>,
        mode: Mode,
        measure: Measure,
        text: &'t str,
    ) -> Option<Mended<'t>> {
        self.mender = Some(Mender::new(self.checker, mode, measure));
        if !self.scan(root) {
            return None;
        }
        let Mender { fixer, edits, patches, .. } = self.mender?;
        let (repairs, more) = fixer.repairs.finish();
        Some(Mended { text: written(text, &edits, &patches)?, repairs, more })
    }

    /// Reads a part of an object or array; one that does not pass is mended.
    pub(super) fn part(&mut self, at: At<'a>, path: &Path<'_>, depth: u32) -> Passes {
        if self.mender.is_none() {
            return self.value(at, path, depth);
        }
        // Nothing can have been changed inside a scalar, so what was before is what is behind it.
        let is_scalar = !matches!(self.cursor.space(), Some(b'{' | b'['));
        let place = self.cursor.place();
        let start = if is_scalar { None } else { self.start(place) };
        match self.value(at, path, depth) {
            Ok(()) => Ok(()),
            Err(No) => {
                let start = start.or_else(|| self.start(place)).ok_or(No)?;
                self.mend_part(at, &start, path, depth)
            }
        }
    }

    fn start(&self, place: Place) -> Option<Start> {
        let mender = self.mender.as_ref()?;
        Some(Start {
            place,
            names: self.names.len(),
            seen: self.seen.len(),
            edits: mender.edits.len(),
            patches: mender.patches.len(),
            removed: mender.removed.len(),
            told: mender.fixer.mark(),
        })
    }

    /// Repairs a part that was scanned in vain.
    fn mend_part(&mut self, at: At<'a>, start: &Start, path: &Path<'_>, depth: u32) -> Passes {
        self.forget(start.names);
        self.seen.truncate(start.seen);
        self.cursor.return_to(start.place);
        let Some(mender) = self.mender.as_mut().filter(|mender| !mender.gave_up) else { return Err(No) };
        mender.undo(start);
        // Whatever goes wrong from here on goes wrong for all that is around it, too.
        mender.gave_up = true;
        let from = self.cursor.at();
        let mut value = self.cursor.tree()?;
        let to = self.cursor.at();
        self.again = self.again.checked_sub(to - from).ok_or(No)?;
        let came = if let Value::Number(number) = &value { Some(number.clone()) } else { None };
        mender.fixer.fix(at, &mut value, path, Strip::All, depth);
        // A number that stays may have more digits than were read of it.
        let stays = matches!((&value, came), (Value::Number(number), Some(came)) if *number == came);
        let is_written = stays || serde_json::to_writer(&mut mender.patches, &value).is_ok();
        if self.checker.budget.is_dry() || !is_written {
            return Err(No);
        }
        if !stays {
            mender.edit(from, to);
        }
        mender.gave_up = false;
        Ok(())
    }

    /// True if `null` is next in the place of the absence of a property that has this schema and is not required.
    #[inline]
    pub(super) fn is_absence(&mut self, at: At<'a>, depth: u32) -> bool {
        let Some(mender) = &self.mender else { return false };
        self.cursor.space() == Some(b'n') && mender.fixer.refuses_null(at, depth)
    }

    /// True if such a `null` stays, because the type that the text is for reads it as absent.
    pub(super) fn is_by_type(&self) -> bool {
        self.mender.as_ref().is_some_and(|mender| mender.fixer.is_by_type())
    }

    /// Cuts out such a property.
    pub(super) fn remove_null(&mut self, at: At<'a>, path: &Path<'_>) -> Passes {
        self.cursor.literal(b"null")?;
        let Some(mender) = &mut self.mender else { return Err(No) };
        mender.fixer.tell_null(at, path);
        Ok(())
    }

    /// Cuts out the property whose value is next, which its object does not declare.
    pub(super) fn remove(&mut self, rules: &ObjectRules, name: &'t str) -> Passes {
        if self.mender.is_none() || matches!(rules.additional, Additional::Each(_) | Additional::Broken) {
            return Err(No);
        }
        let kind = match self.next()? {
            Next::Number => match self.cursor.number()? {
                Figure::F64(_) => "number",
                Figure::U64(_) | Figure::I64(_) => "integer",
            },
            next => {
                self.any()?;
                next.kind()
            }
        };
        if let Some(mender) = &mut self.mender {
            mender.removed.push((name, kind));
        }
        Ok(())
    }

    /// How many properties are cut out of the objects that are open.
    pub(super) fn removed(&self) -> usize {
        self.mender.as_ref().map_or(0, |mender| mender.removed.len())
    }

    /// Tells which properties were cut out of the object that ends.
    pub(super) fn tell_removed(&mut self, path: &Path<'_>, since: usize) {
        if let Some(mender) = &mut self.mender {
            for (name, kind) in mender.removed.drain(since.min(mender.removed.len())..) {
                mender.fixer.tell_removed(path, name, kind);
            }
        }
    }

    /// Ends what is cut out before a property that is kept, which starts here.
    #[inline]
    pub(super) fn keep(&mut self, cut: &Cut, start: usize) {
        if cut.to > cut.from {
            // The comma before it goes, or, if there is none, the one behind it.
            self.edit(cut.from, if cut.has_kept { cut.to } else { start });
        }
    }

    /// Ends what is cut out at the end of an object.
    #[inline]
    pub(super) fn end_cut(&mut self, cut: &Cut) {
        if cut.to > cut.from {
            self.edit(cut.from, cut.to);
        }
    }

    fn edit(&mut self, from: usize, to: usize) {
        if let Some(mender) = &mut self.mender {
            mender.edit(from, to);
        }
    }
}

impl<'c, 'a> Mender<'c, 'a, '_> {
    fn new(checker: &'c Checker<'a>, mode: Mode, measure: Measure) -> Self {
        let mut fixer = Fixer::new(checker, mode, measure);
        fixer.begin(mode, false);
        Mender { fixer, edits: Vec::new(), patches: Vec::new(), removed: Vec::new(), gave_up: false }
    }

    /// Replaces a part of the text by what was added to the patches.
    fn edit(&mut self, from: usize, to: usize) {
        self.edits.push(Edit { from, to, patch_end: self.patches.len() });
    }

    fn undo(&mut self, start: &Start) {
        self.edits.truncate(start.edits);
        self.patches.truncate(start.patches);
        self.removed.truncate(start.removed);
        self.fixer.rollback(start.told);
    }
}

impl Next {
    /// The kind of value, as repairs tell it.
    fn kind(self) -> &'static str {
        match self {
            Next::Null => "null",
            Next::Bool => "boolean",
            Next::Number => "number",
            Next::String => "string",
            Next::Array => "array",
            Next::Object => "object",
        }
    }
}

/// The text with its edits; `None` only if they are out of bounds.
fn written<'t>(text: &'t str, edits: &[Edit], patches: &[u8]) -> Option<Cow<'t, str>> {
    if edits.is_empty() {
        return Some(Cow::Borrowed(text));
    }
    let patches = std::str::from_utf8(patches).ok()?;
    let mut written = String::with_capacity(text.len() + patches.len());
    let (mut at, mut patch) = (0, 0);
    for edit in edits {
        written.push_str(text.get(at..edit.from)?);
        written.push_str(patches.get(patch..edit.patch_end)?);
        (at, patch) = (edit.to, edit.patch_end);
    }
    written.push_str(text.get(at..)?);
    Some(Cow::Owned(written))
}
