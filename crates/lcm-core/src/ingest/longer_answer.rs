//! Answers whose steps were stored one by one, and that a list has as one longer entry.
//!
//! In: a list, the line, and the entries that are aligned. Out: the entry that takes the place of
//! the newest messages of the line. An agent appends each step when it is done; its client posts
//! one message for all steps, with the results of tools that the client ran.

use alloc::vec::Vec;

use crate::storage::store_session::StoreSession;
use lcm_text::{
    base::{error::Result, int},
    message::{Role, meaning::SaidPart},
};

use super::{
    alignment::AlignableEntry,
    line_diff::{LastStored, LineComparison, LineDiff},
    message_form,
    stored_line::{ComparedMessage, PAGE_MESSAGES},
};

impl LineComparison<'_, '_> {
    /// Finds an answer whose steps were stored one by one, and that the list has as one entry: it
    /// has every part of all messages of the line that follow, in order, and more parts. It is the
    /// entry behind the aligned ones, or the last of them, which its id leads to its first step.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn find_longer_answer(
        &self,
        session: &mut StoreSession<'_>,
        diff: &mut LineDiff,
    ) -> Result<()> {
        let LastStored { count, position } = diff.find_last_stored();
        let is_behind = |entry: &&AlignableEntry| !entry.is_known() && !entry.is_id_taken;
        let grown = count.checked_sub(1).filter(|last| {
            self.entries.get(*last).is_some_and(|it| it.has_grown && it.position == Some(position))
        });
        let (index, first) = match grown {
            Some(last) => (last, position),
            None if self.entries.get(count).filter(is_behind).is_none() => return Ok(()),
            None => (count, position + 1),
        };
        let left = (self.line.count_messages() + 1).saturating_sub(first);
        let is_answer = self.entries.get(index).is_some_and(|it| it.role == Role::Assistant);
        if count == 0 || !is_answer || !(1..=int::to_u64(PAGE_MESSAGES)).contains(&left) {
            return Ok(());
        }
        let page = self.line.read_page(session, first)?;
        let is_step =
            |message: &ComparedMessage| matches!(message.role, Role::Assistant | Role::Tool);
        let parts: Vec<SaidPart> = page.iter().flat_map(|it| it.parts.iter().copied()).collect();
        let said = (self.parts_of)(index);
        if int::to_u64(page.len()) == left
            && page.iter().all(is_step)
            && parts.iter().any(|part| part.call != [0; 4])
            && parts.len() < said.len() + usize::from(grown.is_some())
            && message_form::holds_parts(said, &parts)
        {
            (diff.grown, diff.replaced) = (Some(index), left);
            diff.positions.get_mut(index).into_iter().for_each(|it| *it = None);
        }
        Ok(())
    }
}
