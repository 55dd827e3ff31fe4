//! Translation of a parsed expression to the form that is compiled.
//!
//! Input: the syntax tree of `regex_syntax`. Output: its `Hir`, as `regex_syntax` would translate
//! it.
//!
//! The translator of `regex_syntax` would add 28 KB of Unicode tables to the gzipped `lcm.wasm`, so
//! [`char_classes`](super::char_classes) replaces the needed part. The tests compare both
//! translations. Two differences: `\p{...}` is refused, and under `(?-u)` a class is a class of
//! ASCII characters, not of bytes. Elsewhere: parsing ([`super`]), and the characters of classes
//! ([`char_classes`](super::char_classes)).

use alloc::{boxed::Box, vec::Vec};

use regex_syntax::{
    ast::{
        Assertion, AssertionKind, Ast, ClassBracketed, ClassSet, ClassSetBinaryOpKind,
        ClassSetItem, Flag, Flags, FlagsItemKind, Group, GroupKind, Literal, Repetition,
        RepetitionKind, RepetitionRange, Span,
    },
    hir::{self, Capture, Class, ClassUnicode, ClassUnicodeRange, Dot, Hir, Look},
};

use super::char_classes::CharClasses;
use lcm_text::base::error::{Error, Result};

/// Translates a whole expression.
///
/// # Errors
///
/// `invalid-input`, with the byte at fault:
///
/// - the expression could match bytes that are not UTF-8;
/// - a class has a non-ASCII character under the flag `(?-u)`;
/// - the expression names a Unicode property.
pub(super) fn translate_ast(ast: &Ast) -> Result<Hir> {
    let mut translation =
        HirTranslator { modes: RegexFlags::default(), classes: CharClasses::default() };
    translation.translate_node(ast)
}

/// Flags at one place of an expression. `ascii` is the inverse of flag `u`, so that every flag is
/// off at the start.
#[derive(Clone, Copy, Default)]
struct RegexFlags {
    any_case: bool,
    multi_line: bool,
    dot_all: bool,
    swap_greed: bool,
    crlf: bool,
    ascii: bool,
}

struct HirTranslator {
    modes: RegexFlags,
    classes: CharClasses,
}

impl HirTranslator {
    /// Translates one node. The parser limits nesting, so recursion is safe.
    fn translate_node(&mut self, ast: &Ast) -> Result<Hir> {
        Ok(match ast {
            Ast::Empty(_) => Hir::empty(),
            Ast::Flags(set) => {
                self.modes.apply(&set.flags);
                Hir::empty()
            }
            Ast::Literal(literal) => self.translate_literal(literal)?,
            Ast::Dot(span) => self.translate_dot(span)?,
            Ast::Assertion(assertion) => Hir::look(self.modes.translate_look(assertion)),
            Ast::ClassUnicode(class) => return Err(property_error(&class.span)),
            Ast::ClassPerl(class) => {
                let set = self.classes.perl_class(&class.kind, self.modes.ascii);
                self.translate_class(set, class.negated, false, &class.span)?
            }
            Ast::ClassBracketed(class) => {
                let set = self.build_bracketed_class(class)?;
                Hir::class(Class::Unicode(set))
            }
            Ast::Repetition(repetition) => self.translate_repetition(repetition)?,
            Ast::Group(group) => self.translate_group(group)?,
            Ast::Alternation(alternation) => {
                Hir::alternation(self.translate_all(&alternation.asts)?)
            }
            Ast::Concat(concat) => Hir::concat(self.translate_all(&concat.asts)?),
        })
    }

    fn translate_all(&mut self, asts: &[Ast]) -> Result<Vec<Hir>> {
        let mut parts = Vec::with_capacity(asts.len());
        for ast in asts {
            parts.push(self.translate_node(ast)?);
        }
        Ok(parts)
    }

    fn translate_literal(&mut self, literal: &Literal) -> Result<Hir> {
        let char = self.modes.literal_char(literal)?;
        if self.modes.any_case && (char.is_ascii() || !self.modes.ascii) {
            let set = self.fold_class(ClassUnicode::new([ClassUnicodeRange::new(char, char)]));
            return Ok(Hir::class(Class::Unicode(set)));
        }
        let mut bytes = [0; 4];
        Ok(Hir::literal(char.encode_utf8(&mut bytes).as_bytes()))
    }

    fn translate_dot(&self, span: &Span) -> Result<Hir> {
        if self.modes.ascii {
            return Err(not_text_error(span));
        }
        Ok(Hir::dot(match (self.modes.dot_all, self.modes.crlf) {
            (true, _) => Dot::AnyChar,
            (false, true) => Dot::AnyCharExceptCRLF,
            (false, false) => Dot::AnyCharExceptLF,
        }))
    }

    fn translate_repetition(&mut self, repetition: &Repetition) -> Result<Hir> {
        let (min, max) = match repetition.op.kind {
            RepetitionKind::ZeroOrOne => (0, Some(1)),
            RepetitionKind::ZeroOrMore => (0, None),
            RepetitionKind::OneOrMore => (1, None),
            RepetitionKind::Range(RepetitionRange::Exactly(count)) => (count, Some(count)),
            RepetitionKind::Range(RepetitionRange::AtLeast(min)) => (min, None),
            RepetitionKind::Range(RepetitionRange::Bounded(min, max)) => (min, Some(max)),
        };
        let sub = Box::new(self.translate_node(&repetition.ast)?);
        let greedy = repetition.greedy != self.modes.swap_greed;
        Ok(Hir::repetition(hir::Repetition { min, max, greedy, sub }))
    }

    /// Translates a group. Flags set inside a group end with the group.
    fn translate_group(&mut self, group: &Group) -> Result<Hir> {
        let outside = self.modes;
        if let Some(flags) = group.flags() {
            self.modes.apply(flags);
        }
        let sub = self.translate_node(&group.ast)?;
        self.modes = outside;
        let (index, name) = match &group.kind {
            GroupKind::CaptureIndex(index) => (*index, None),
            GroupKind::CaptureName { name, .. } => (name.index, Some(name.name.as_str().into())),
            GroupKind::NonCapturing(_) => return Ok(sub),
        };
        Ok(Hir::capture(Capture { index, name, sub: Box::new(sub) }))
    }

    fn build_bracketed_class(&mut self, class: &ClassBracketed) -> Result<ClassUnicode> {
        let set = self.build_set(&class.kind)?;
        self.finish_class(set, class.negated, true, &class.span)
    }

    fn build_set(&mut self, set: &ClassSet) -> Result<ClassUnicode> {
        let operation = match set {
            ClassSet::Item(item) => {
                let mut class = ClassUnicode::empty();
                self.add_item(item, &mut class)?;
                return Ok(class);
            }
            ClassSet::BinaryOp(operation) => operation,
        };
        let (mut left, mut right) =
            (self.build_set(&operation.lhs)?, self.build_set(&operation.rhs)?);
        if self.modes.any_case {
            (left, right) = (self.fold_class(left), self.fold_class(right));
        }
        match operation.kind {
            ClassSetBinaryOpKind::Intersection => left.intersect(&right),
            ClassSetBinaryOpKind::Difference => left.difference(&right),
            ClassSetBinaryOpKind::SymmetricDifference => left.symmetric_difference(&right),
        }
        Ok(left)
    }

    fn add_item(&mut self, item: &ClassSetItem, class: &mut ClassUnicode) -> Result<()> {
        match item {
            ClassSetItem::Empty(_) => {}
            ClassSetItem::Literal(literal) => {
                let char = self.modes.class_member(literal)?;
                class.push(ClassUnicodeRange::new(char, char));
            }
            ClassSetItem::Range(range) => {
                let (start, end) =
                    (self.modes.class_member(&range.start)?, self.modes.class_member(&range.end)?);
                class.push(ClassUnicodeRange::new(start, end));
            }
            ClassSetItem::Ascii(ascii) => {
                let set = CharClasses::ascii_class(&ascii.kind);
                class.union(&self.finish_class(set, ascii.negated, true, &ascii.span)?);
            }
            ClassSetItem::Unicode(unicode) => return Err(property_error(&unicode.span)),
            ClassSetItem::Perl(perl) => {
                let set = self.classes.perl_class(&perl.kind, self.modes.ascii);
                class.union(&self.finish_class(set, perl.negated, false, &perl.span)?);
            }
            ClassSetItem::Bracketed(inner) => class.union(&self.build_bracketed_class(inner)?),
            ClassSetItem::Union(union) => {
                for item in &union.items {
                    self.add_item(item, class)?;
                }
            }
        }
        Ok(())
    }

    fn translate_class(
        &mut self,
        set: ClassUnicode,
        negated: bool,
        fold: bool,
        span: &Span,
    ) -> Result<Hir> {
        Ok(Hir::class(Class::Unicode(self.finish_class(set, negated, fold, span)?)))
    }

    /// Folds case if `fold` and the flag `i` are set, then negates: `(?i)[^x]` excludes both `x`
    /// and `X`.
    fn finish_class(
        &mut self,
        mut set: ClassUnicode,
        negated: bool,
        fold: bool,
        span: &Span,
    ) -> Result<ClassUnicode> {
        if fold && self.modes.any_case {
            set = self.fold_class(set);
        }
        if negated {
            set.negate();
        }
        // With the flag `(?-u)`, a class matches bytes, and only ASCII bytes are valid text.
        if self.modes.ascii && !set.is_ascii() { Err(not_text_error(span)) } else { Ok(set) }
    }

    fn fold_class(&mut self, set: ClassUnicode) -> ClassUnicode {
        self.classes.fold_class(set, self.modes.ascii)
    }
}

impl RegexFlags {
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
                // The parser already skipped the white space.
                FlagsItemKind::Flag(Flag::IgnoreWhitespace) => {}
            }
        }
    }

    /// Returns the character of a literal. Under the flag `(?-u)`, `\xFF` is a byte and is refused.
    fn literal_char(self, literal: &Literal) -> Result<char> {
        match literal.byte() {
            Some(byte) if self.ascii && !byte.is_ascii() => Err(not_text_error(&literal.span)),
            _ => Ok(literal.c),
        }
    }

    /// Returns the character of a literal inside a class. Under the flag `(?-u)`, only ASCII is
    /// allowed.
    fn class_member(self, literal: &Literal) -> Result<char> {
        let char = self.literal_char(literal)?;
        if self.ascii && !char.is_ascii() { Err(not_text_error(&literal.span)) } else { Ok(char) }
    }

    fn translate_look(self, assertion: &Assertion) -> Look {
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

fn not_text_error(span: &Span) -> Error {
    regex_error("under `(?-u)` this part could match bytes that are not UTF-8; omit `(?-u)`", span)
}

fn property_error(span: &Span) -> Error {
    regex_error(r"`\p` is not offered; use `\w`, `\d`, `\s` or ranges", span)
}

fn regex_error(what: &str, span: &Span) -> Error {
    let at = span.start.offset;
    Error::invalid_input(format_args!(
        "`pattern` must be a valid regular expression; at byte {at}: {what}"
    ))
}
