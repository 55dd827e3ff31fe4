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
    /// Finds an answer whose steps were stored one by one, and that the list has as one entry. The
    /// entry has every part of all messages of the line that follow, or it joins their texts. It is
    /// the first entry behind the aligned ones, or the last aligned one if its id is that of the
    /// first step. An entry that says nothing new counts as stored.
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
        let grown = count.checked_sub(1).filter(|last| {
            self.entries.get(*last).is_some_and(|it| it.has_grown && it.position == Some(position))
        });
        let index = grown.unwrap_or(count);
        let is_new = |entry: &AlignableEntry| !entry.is_known() && !entry.is_id_taken;
        let is_answer = |entry: &&AlignableEntry| {
            entry.role == Role::Assistant && (grown.is_some() || is_new(entry))
        };
        if self.entries.get(index).filter(is_answer).is_none() {
            return Ok(());
        }
        let said = (self.parts_of)(index);
        let first = match (grown, position) {
            (Some(_), _) => position,
            (None, 0) => {
                if !(self.has_id)(index) || said.len() < 2 {
                    return Ok(());
                }
                self.find_answer_start(session)?
            }
            _ => position + 1,
        };
        let left = (self.line.count_messages() + 1).saturating_sub(first);
        if !(1..=int::to_u64(PAGE_MESSAGES)).contains(&left) {
            return Ok(());
        }
        let page = self.line.read_page(session, first)?;
        let is_whole = int::to_u64(page.len()) == left;
        let parts: Vec<SaidPart> = page.iter().flat_map(|it| it.parts.iter().copied()).collect();
        let holds_steps =
            parts.iter().any(|part| part.call != [0; 4]) && message_form::holds_parts(said, &parts);
        if is_whole && page.iter().all(is_step) && (holds_steps || self.joins_texts(index, &page)) {
            // An answer with nothing new is stored, as its last step.
            let is_stored = grown.is_none() && holds_steps && parts.len() == said.len();
            let place = is_stored.then(|| self.line.count_messages());
            diff.positions.get_mut(index).into_iter().for_each(|it| *it = place);
            if !is_stored {
                (diff.grown, diff.replaced) = (Some(index), left);
            }
        }
        Ok(())
    }

    /// Returns the position of the first message of the newest answer, which follows the newest
    /// message of a user; 0: no message of a user is on the last page.
    fn find_answer_start(&self, session: &mut StoreSession<'_>) -> Result<u64> {
        let newest = self.line.count_messages();
        let first = newest.saturating_sub(int::to_u64(PAGE_MESSAGES)) + 1;
        let page = self.line.read_page(session, first)?;
        let last_other = page.iter().rposition(|message| !is_step(message));
        Ok(last_other.map_or(0, |place| first + int::to_u64(place) + 1))
    }

    /// Returns whether an entry is one text that begins with the texts of several messages, one
    /// behind the other. White space does not count: the stored texts are known without that at
    /// their ends.
    fn joins_texts(&self, index: usize, page: &[ComparedMessage]) -> bool {
        let Some(text) = (self.text_of)(index).filter(|_| page.len() > 1) else { return false };
        let mut rest = text.chars().filter(|c| !c.is_whitespace());
        page.iter().all(|message| {
            let said = message.said.as_deref().filter(|_| message.role == Role::Assistant);
            said.is_some_and(|said| {
                let mut stored = said.chars().filter(|c| !c.is_whitespace());
                stored.all(|c| rest.next() == Some(c))
            })
        })
    }
}

/// Returns whether a message is a step of an answer.
fn is_step(message: &ComparedMessage) -> bool {
    matches!(message.role, Role::Assistant | Role::Tool)
}
