//! The context of one exported call: configuration, conversation and time.

use crate::storage::keys::ConversationKeys;
use lcm_text::{base::error::Result, config::Config, types::api::Timestamp};

/// One exported call on one conversation.
///
/// The value is copied from function to function, beside the session that reads the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    /// Configuration of the instance.
    pub(crate) config: &'a Config,
    /// Id of the conversation, as the host gave it.
    pub(crate) conversation: &'a str,
    /// Keys of the conversation's records.
    pub(crate) keys: &'a ConversationKeys,
    /// Time that the host gave, in milliseconds since 1970; 0 if the export takes no time.
    ///
    /// A conversation's clock never runs backwards: commits store the
    /// [effective time](crate::storage::head::LoadedHead::effective_time).
    pub(crate) now: Timestamp,
}

impl Call<'_> {
    /// Runs `act` with the same call on another conversation.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the id of the conversation; errors of `act`.
    pub(crate) fn with_conversation<T>(
        self,
        conversation: &str,
        act: impl FnOnce(Call<'_>) -> Result<T>,
    ) -> Result<T> {
        let keys = ConversationKeys::new(conversation)?;
        act(Call { conversation, keys: &keys, ..self })
    }
}
