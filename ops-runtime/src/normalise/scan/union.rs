//! Unions in a scan: which variant is meant is told by a tag, by the type, or, for scalars, by trying them.

use super::{Next, No, Passes, Scanner};
use crate::normalise::node::{At, FRACTION, Named, Node, Tag, Types, Union};
use crate::normalise::path::Path;
use crate::record::json::{Figure, Text};

impl<'a, 't> Scanner<'_, 'a, 't> {
    pub(super) fn union(&mut self, at: At<'a>, union: &'a Union, path: &Path<'_>, depth: u32) -> Passes {
        let next = self.next()?;
        if !union.types.has(next.types()) {
            return Err(No);
        }
        if let Next::Object = next
            && let Some(node) = self.tagged(at, union)?
        {
            return self.value(at.to(node), path, depth + 1);
        }
        // The types of all variants are looked at.
        if !self.checker.budget.spend(union.variants.len() as u64 / 16) {
            return Err(No);
        }
        let types = &self.checker.shape(at, union).types;
        let mut able = union.variants.iter().zip(types).filter(|(_, types)| types.has(next.types()));
        let (Some((node, _)), None) = (able.next(), able.next()) else {
            return self.one_of(at, union, next, path, depth);
        };
        if let Next::Number = next {
            self.integral(union.types)?;
        }
        self.value(at.to(node), path, depth + 1)
    }

    /// Reads a scalar of which several variants may be.
    fn one_of(&mut self, at: At<'a>, union: &'a Union, next: Next, path: &Path<'_>, depth: u32) -> Passes {
        if let Next::Array | Next::Object = next {
            return Err(No);
        }
        if let Next::Number = next {
            self.integral(union.types)?;
        }
        let start = self.cursor.at();
        for node in &union.variants {
            if self.value(at.to(node), path, depth + 1).is_ok() {
                return Ok(());
            }
            let length = self.cursor.at() - start;
            self.again = self.again.checked_sub(length + 8).ok_or(No)?;
            self.cursor.back_to(start);
        }
        Err(No)
    }

    /// Leaves a number to the value that is an integer written as a fraction: which variant it is decides how it is
    /// written.
    fn integral(&mut self, types: Types) -> Passes {
        let start = self.cursor.at();
        let figure = self.cursor.number()?;
        self.cursor.back_to(start);
        match figure {
            Figure::F64(value) if value.fract() == 0.0 || !types.has(FRACTION) => Err(No),
            _ => Ok(()),
        }
    }

    /// The variant that the tag of an object names; `None` if the union has no tag, or the object.
    fn tagged(&mut self, at: At<'a>, union: &'a Union) -> Result<Option<&'a Node>, No> {
        let shape = self.checker.shape(at, union);
        let mut is_undescribed = false;
        if let (Some(discriminator), Some(tag)) = (&union.discriminator, &shape.declared) {
            let value = self.tag(tag)?;
            match value.and_then(|value| tag.named(value)) {
                Some(Named::One(number)) => return union.variants.get(number as usize).map(Some).ok_or(No),
                Some(Named::Several) => {}
                None if discriminator.otherwise.is_some() => return Err(No),
                None => is_undescribed = value.is_some(),
            }
        }
        let value = match &shape.tag {
            Some(tag) => self.tag(tag)?.map(|value| tag.named(value)),
            None => None,
        };
        match value {
            Some(Some(Named::One(number))) => union.variants.get(number as usize).map(Some).ok_or(No),
            Some(_) => Err(No),
            None if is_undescribed => Err(No),
            None => Ok(None),
        }
    }

    /// The value of a tag of the object that is next, if it is a string.
    fn tag(&mut self, tag: &Tag) -> Result<Option<&'t str>, No> {
        let start = self.cursor.at();
        self.cursor.open()?;
        let (mut first, mut found) = (true, None);
        while self.cursor.next_name(&mut first)? {
            if self.name()? == &*tag.property {
                if self.cursor.space() == Some(b'"') {
                    self.cursor.eat();
                    let Text::Borrowed(value) = self.cursor.string()? else { return Err(No) };
                    found = Some(value);
                } else if self.is_by_type() {
                    // A type may keep the object whole.
                    return Err(No);
                }
                break;
            }
            self.cursor.skip()?;
        }
        self.cursor.leave();
        let length = self.cursor.at() - start;
        // A tag at the beginning costs next to nothing.
        self.again = self.again.checked_sub(if length > 64 { length } else { 0 }).ok_or(No)?;
        self.cursor.back_to(start);
        Ok(found)
    }
}
