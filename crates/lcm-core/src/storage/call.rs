//! The arguments that all functions of one exported call share.
//!
//! The engine's facade builds a [`Call`] from the host's arguments. Operations pass it on.

use crate::storage::keys::ConversationKeys;
use lcm_text::{base::error::Result, config::Config, types::api::Timestamp};

/// Configuration, conversation and time of one exported call.
///
/// Functions take a copy of this value, together with the session that reads the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    /// Configuration of the instance.
    pub(crate) config: &'a Config,
    /// Id of the conversation, as the host gave it.
    pub(crate) conversation: &'a str,
    /// Keys of the conversation's records.
    pub(crate) keys: &'a ConversationKeys,
    /// Time in milliseconds since 1970, as the host gave it; 0 if the exported function takes no
    /// time.
    ///
    /// A host's clock may run backwards. Stored times are this value; deadlines run by the
    /// [clock](crate::storage::clock) of the conversation.
    pub(crate) now: Timestamp,
}

impl Call<'_> {
    /// Runs `act` with a copy of this call in which only the conversation is replaced.
    ///
    /// # Errors
    ///
    /// `invalid-input`: `conversation` is empty or longer than 512 bytes; errors of `act`.
    pub(crate) fn with_conversation<T>(
        self,
        conversation: &str,
        act: impl FnOnce(Call<'_>) -> Result<T>,
    ) -> Result<T> {
        let keys = ConversationKeys::new(conversation)?;
        act(Call { conversation, keys: &keys, ..self })
    }
}
