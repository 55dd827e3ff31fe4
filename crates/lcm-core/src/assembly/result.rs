//! Result of an assembly: counts, warnings, the explanation and the comparison with an earlier
//! context.
//!
//! In: the selected items and the rendered context. Out: an [`AssembledContext`] without its
//! messages, which [`super::assemble`] adds.

use alloc::{format, string::String, vec::Vec};

use super::{
    explain_text,
    input::{AssemblyInput, ItemPlace, SYSTEM_INDEX},
    pieces,
    rendered_context::RenderedContext,
    select::ContextChoice,
};
use crate::storage::store_session::StoreSession;
use lcm_text::{
    base::{error::Result, int},
    types::api::{AssembleOptions, AssembledContext},
};

impl AssemblyInput<'_> {
    /// Builds the result without its messages.
    ///
    /// # Errors
    ///
    /// Errors of the store, if `options.explain` is set.
    pub(super) fn build_result(
        &self,
        session: &mut StoreSession<'_>,
        options: &AssembleOptions,
        choice: &ContextChoice,
        rendered: &RenderedContext,
    ) -> Result<AssembledContext> {
        let mut warnings = Vec::new();
        warnings.extend(self.over_budget_warning(rendered));
        warnings.extend(self.debt_warning());
        warnings.extend(rendered.list_warnings());
        let pieces = choice.split_pieces(self.items);
        let evicted = pieces::count_omitted_items(&pieces, self.items);
        let fresh = self.tail.count;
        let items = if options.explain {
            self.explain_items(session, &pieces, rendered)?
        } else {
            Vec::new()
        };
        let text =
            options.explain.then(|| explain_text::render_explanation(&items, self.policy.budget));
        let previous = options.previous.as_deref();
        let prefix = self.compare_prefix(rendered, previous);
        if previous.is_some() && prefix.stable_tokens.is_none() {
            warnings.push("previous-unknown: `previous` is no token of this conversation".into());
        }
        Ok(AssembledContext {
            prefix,
            tokens: int::saturate_tokens(rendered.tokens),
            summaries: rendered.summaries,
            fresh_tail_messages: int::saturate_tokens(fresh),
            evicted: int::saturate_tokens(evicted),
            items,
            explanation_text: text,
            system: rendered.system.clone(),
            warnings,
            messages_json: String::new(),
        })
    }

    /// Warns that the stored context exceeds the compaction threshold; `None`: the context does
    /// not, or the engine is disabled.
    fn debt_warning(&self) -> Option<String> {
        let head = self.history.head;
        let tokens = head.context.tokens + head.system_tokens();
        let threshold = self.policy.threshold;
        (tokens > u64::from(threshold) && self.call.config.enabled).then(|| {
            format!(
                "debt-pending: the stored context has {tokens} tokens, the threshold is {threshold}"
            )
        })
    }

    /// Warns that the context exceeds its budget, with the tokens of each protected part that has
    /// any; `None`: the context fits.
    fn over_budget_warning(&self, rendered: &RenderedContext) -> Option<String> {
        let (budget, tokens) = (self.policy.budget, rendered.tokens);
        if tokens <= u64::from(budget) {
            return None;
        }
        let is_live = |place: ItemPlace| place.index == self.items.len();
        let is_item = |place: ItemPlace| place.index < self.items.len();
        let is_tail = |place: ItemPlace| is_item(place) && place.seq >= self.tail.seq_first;
        let pin = self.tail.pinned.map(|pin| pin.seq);
        let is_system = |place: ItemPlace| place.index == SYSTEM_INDEX;
        let parts = [
            ("system messages", rendered.count_tokens_of(&is_system)),
            ("focus brief", rendered.count_tokens_of(&|place| self.is_focus(place.index))),
            (
                "pinned message",
                rendered.count_tokens_of(&|place| is_item(place) && Some(place.seq) == pin),
            ),
            ("fresh tail", rendered.count_tokens_of(&is_tail)),
            ("live messages", rendered.count_tokens_of(&is_live)),
        ];
        let parts = parts.iter().filter(|(_, tokens)| *tokens > 0);
        let parts: Vec<String> = parts.map(|(name, tokens)| format!("{name} {tokens}")).collect();
        let parts = parts.join(", ");
        Some(format!("tail-over-budget: {tokens} tokens, the budget is {budget}: {parts}"))
    }
}
