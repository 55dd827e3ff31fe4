//! From the syntax tree of an expression to the form that is compiled.
//!
//! The regex-syntax crate has such a step of its own, which brings tables of every Unicode property
//! and of case folding: 28 KB of the gzipped component for what [`classes`](super::classes) says in
//! a page. Expressions mean the same here (the tests compare the outcome with that crate's), except
//! that `\p{...}` is refused, as it is there without those tables.
//!
//! Not here: reading the text of an expression, and what a class holds.

use alloc::{boxed::Box, vec::Vec};

use regex_syntax::{
    ast::{
        Assertion, AssertionKind, Ast, ClassBracketed, ClassSet, ClassSetBinaryOpKind,
        ClassSetItem, Flag, Flags, FlagsItemKind, Group, GroupKind, Literal, Repetition,
        RepetitionKind, RepetitionRange, Span,
    },
    hir::{self, Capture, Class, ClassUnicode, ClassUnicodeRange, Dot, Hir, Look},
};

use super::classes::Classes;
use lcm_text::base::error::{Error, Result};

/// Translates a whole expression.
///
/// # Errors
///
/// `invalid-input`: it could match bytes that are no text, puts a character that is not ASCII into
/// a class without Unicode, or names a Unicode property.
pub(super) fn translate(ast: &Ast) -> Result<Hir> {
    let mut translation = Translation { modes: Modes::default(), classes: Classes::default() };
    translation.expression(ast)
}

/// What the flags say at a place; the reverse of `unicode`, so that all are off at first.
#[derive(Clone, Copy, Default)]
struct Modes {
    any_case: bool,
    multi_line: bool,
    dot_all: bool,
    swap_greed: bool,
    crlf: bool,
    ascii: bool,
}

struct Translation {
    modes: Modes,
    classes: Classes,
}

impl Translation {
    /// The parser bounds how deep expressions stand in each other, so this may call itself.
    fn expression(&mut self, ast: &Ast) -> Result<Hir> {
        Ok(match ast {
            Ast::Empty(_) => Hir::empty(),
            Ast::Flags(set) => {
                self.modes.apply(&set.flags);
                Hir::empty()
            }
            Ast::Literal(literal) => self.literal(literal)?,
            Ast::Dot(span) => self.dot(span)?,
            Ast::Assertion(assertion) => Hir::look(self.modes.look(assertion)),
            Ast::ClassUnicode(class) => return Err(no_property(&class.span)),
            Ast::ClassPerl(class) => {
                let set = self.classes.perl(&class.kind, self.modes.ascii);
                self.class(set, class.negated, false, &class.span)?
            }
            Ast::ClassBracketed(class) => {
                let set = self.bracketed(class)?;
                Hir::class(Class::Unicode(set))
            }
            Ast::Repetition(repetition) => self.repetition(repetition)?,
            Ast::Group(group) => self.group(group)?,
            Ast::Alternation(alternation) => Hir::alternation(self.each(&alternation.asts)?),
            Ast::Concat(concat) => Hir::concat(self.each(&concat.asts)?),
        })
    }

    fn each(&mut self, asts: &[Ast]) -> Result<Vec<Hir>> {
        let mut parts = Vec::with_capacity(asts.len());
        for ast in asts {
            parts.push(self.expression(ast)?);
        }
        Ok(parts)
    }

    fn literal(&mut self, literal: &Literal) -> Result<Hir> {
        let char = self.modes.char(literal)?;
        if self.modes.any_case && (char.is_ascii() || !self.modes.ascii) {
            let set = self.folded(ClassUnicode::new([ClassUnicodeRange::new(char, char)]));
            return Ok(Hir::class(Class::Unicode(set)));
        }
        let mut bytes = [0; 4];
        Ok(Hir::literal(char.encode_utf8(&mut bytes).as_bytes()))
    }

    fn dot(&self, span: &Span) -> Result<Hir> {
        if self.modes.ascii {
            return Err(no_text(span));
        }
        Ok(Hir::dot(match (self.modes.dot_all, self.modes.crlf) {
            (true, _) => Dot::AnyChar,
            (false, true) => Dot::AnyCharExceptCRLF,
            (false, false) => Dot::AnyCharExceptLF,
        }))
    }

    fn repetition(&mut self, repetition: &Repetition) -> Result<Hir> {
        let (min, max) = match repetition.op.kind {
            RepetitionKind::ZeroOrOne => (0, Some(1)),
            RepetitionKind::ZeroOrMore => (0, None),
            RepetitionKind::OneOrMore => (1, None),
            RepetitionKind::Range(RepetitionRange::Exactly(count)) => (count, Some(count)),
            RepetitionKind::Range(RepetitionRange::AtLeast(min)) => (min, None),
            RepetitionKind::Range(RepetitionRange::Bounded(min, max)) => (min, Some(max)),
        };
        let sub = Box::new(self.expression(&repetition.ast)?);
        // Read after the expression: flags that it sets hold from here on.
        let greedy = repetition.greedy != self.modes.swap_greed;
        Ok(Hir::repetition(hir::Repetition { min, max, greedy, sub }))
    }

    /// Flags that are set inside a group end with it.
    fn group(&mut self, group: &Group) -> Result<Hir> {
        let outside = self.modes;
        if let Some(flags) = group.flags() {
            self.modes.apply(flags);
        }
        let sub = self.expression(&group.ast)?;
        self.modes = outside;
        let (index, name) = match &group.kind {
            GroupKind::CaptureIndex(index) => (*index, None),
            GroupKind::CaptureName { name, .. } => (name.index, Some(name.name.as_str().into())),
            GroupKind::NonCapturing(_) => return Ok(sub),
        };
        Ok(Hir::capture(Capture { index, name, sub: Box::new(sub) }))
    }

    fn bracketed(&mut self, class: &ClassBracketed) -> Result<ClassUnicode> {
        let set = self.set(&class.kind)?;
        self.finished(set, class.negated, true, &class.span)
    }

    fn set(&mut self, set: &ClassSet) -> Result<ClassUnicode> {
        let operation = match set {
            ClassSet::Item(item) => {
                let mut class = ClassUnicode::empty();
                self.add(item, &mut class)?;
                return Ok(class);
            }
            ClassSet::BinaryOp(operation) => operation,
        };
        let (mut left, mut right) = (self.set(&operation.lhs)?, self.set(&operation.rhs)?);
        if self.modes.any_case {
            (left, right) = (self.folded(left), self.folded(right));
        }
        match operation.kind {
            ClassSetBinaryOpKind::Intersection => left.intersect(&right),
            ClassSetBinaryOpKind::Difference => left.difference(&right),
            ClassSetBinaryOpKind::SymmetricDifference => left.symmetric_difference(&right),
        }
        Ok(left)
    }

    fn add(&mut self, item: &ClassSetItem, class: &mut ClassUnicode) -> Result<()> {
        match item {
            ClassSetItem::Empty(_) => {}
            ClassSetItem::Literal(literal) => {
                let char = self.modes.member(literal)?;
                class.push(ClassUnicodeRange::new(char, char));
            }
            ClassSetItem::Range(range) => {
                let (start, end) =
                    (self.modes.member(&range.start)?, self.modes.member(&range.end)?);
                class.push(ClassUnicodeRange::new(start, end));
            }
            ClassSetItem::Ascii(ascii) => {
                let set = Classes::ascii(&ascii.kind);
                class.union(&self.finished(set, ascii.negated, true, &ascii.span)?);
            }
            ClassSetItem::Unicode(unicode) => return Err(no_property(&unicode.span)),
            ClassSetItem::Perl(perl) => {
                let set = self.classes.perl(&perl.kind, self.modes.ascii);
                class.union(&self.finished(set, perl.negated, false, &perl.span)?);
            }
            ClassSetItem::Bracketed(inner) => class.union(&self.bracketed(inner)?),
            ClassSetItem::Union(union) => {
                for item in &union.items {
                    self.add(item, class)?;
                }
            }
        }
        Ok(())
    }

    fn class(&mut self, set: ClassUnicode, negated: bool, fold: bool, span: &Span) -> Result<Hir> {
        Ok(Hir::class(Class::Unicode(self.finished(set, negated, fold, span)?)))
    }

    /// Folds before it negates: `(?i)[^x]` holds neither `x` nor `X`.
    fn finished(
        &mut self,
        mut set: ClassUnicode,
        negated: bool,
        fold: bool,
        span: &Span,
    ) -> Result<ClassUnicode> {
        if fold && self.modes.any_case {
            set = self.folded(set);
        }
        if negated {
            set.negate();
        }
        // Without Unicode a class holds bytes, and only those of ASCII are text by themselves.
        if self.modes.ascii && !set.is_ascii() { Err(no_text(span)) } else { Ok(set) }
    }

    fn folded(&mut self, set: ClassUnicode) -> ClassUnicode {
        self.classes.folded(set, self.modes.ascii)
    }
}

impl Modes {
    fn apply(&mut self, flags: &Flags) {
        let mut on = true;
        for item in &flags.items {
            match item.kind {
                FlagsItemKind::Negation => on = false,
                FlagsItemKind::Flag(Flag::CaseInsensitive) => self.any_case = on,
                FlagsItemKind::Flag(Flag::MultiLine) => self.multi_line = on,
                FlagsItemKind::Flag(Flag::DotMatchesNewLine) => self.dot_all = on,
                FlagsItemKind::Flag(Flag::SwapGreed) => self.swap_greed = on,
                FlagsItemKind::Flag(Flag::Unicode) => self.ascii = !on,
                FlagsItemKind::Flag(Flag::CRLF) => self.crlf = on,
                // The parser has skipped the white space.
                FlagsItemKind::Flag(Flag::IgnoreWhitespace) => {}
            }
        }
    }

    /// The character that a literal stands for; without Unicode `\xFF` is a byte, not a character.
    fn char(self, literal: &Literal) -> Result<char> {
        match literal.byte() {
            Some(byte) if self.ascii && !byte.is_ascii() => Err(no_text(&literal.span)),
            _ => Ok(literal.c),
        }
    }

    /// As [`Modes::char`], in a class.
    fn member(self, literal: &Literal) -> Result<char> {
        let char = self.char(literal)?;
        if self.ascii && !char.is_ascii() { Err(no_text(&literal.span)) } else { Ok(char) }
    }

    fn look(self, assertion: &Assertion) -> Look {
        let of_unicode = |unicode, ascii| if self.ascii { ascii } else { unicode };
        let of_lines = |text, line, crlf| match (self.multi_line, self.crlf) {
            (false, _) => text,
            (true, false) => line,
            (true, true) => crlf,
        };
        match assertion.kind {
            AssertionKind::StartLine => of_lines(Look::Start, Look::StartLF, Look::StartCRLF),
            AssertionKind::EndLine => of_lines(Look::End, Look::EndLF, Look::EndCRLF),
            AssertionKind::StartText => Look::Start,
            AssertionKind::EndText => Look::End,
            AssertionKind::WordBoundary => of_unicode(Look::WordUnicode, Look::WordAscii),
            AssertionKind::NotWordBoundary => {
                of_unicode(Look::WordUnicodeNegate, Look::WordAsciiNegate)
            }
            AssertionKind::WordBoundaryStart | AssertionKind::WordBoundaryStartAngle => {
                of_unicode(Look::WordStartUnicode, Look::WordStartAscii)
            }
            AssertionKind::WordBoundaryEnd | AssertionKind::WordBoundaryEndAngle => {
                of_unicode(Look::WordEndUnicode, Look::WordEndAscii)
            }
            AssertionKind::WordBoundaryStartHalf => {
                of_unicode(Look::WordStartHalfUnicode, Look::WordStartHalfAscii)
            }
            AssertionKind::WordBoundaryEndHalf => {
                of_unicode(Look::WordEndHalfUnicode, Look::WordEndHalfAscii)
            }
        }
    }
}

fn no_text(span: &Span) -> Error {
    refused("without Unicode this could match what is no text", span)
}

fn no_property(span: &Span) -> Error {
    refused(r"\p is not offered; \w, \d, \s and ranges are", span)
}

fn refused(what: &str, span: &Span) -> Error {
    let at = span.start.offset;
    Error::invalid(format_args!("pattern: no regular expression: {what} at byte {at}"))
}
