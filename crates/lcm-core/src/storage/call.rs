//! One call of the interface on one conversation: what every operation is handed.

use alloc::{string::String, vec::Vec};

use lcm_text::{base::error::Result, config::Config, types::api::Timestamp};

use super::{head::LoadedHead, keys::ConversationKeys, store_session::StoreSession};

/// The context of one call: the store, the conversation, the configuration and the time.
///
/// An operation takes a `Call` in place of these values one by one.
pub(crate) struct Call<'a> {
    /// The store, seen through the cache of the instance.
    pub(crate) session: StoreSession<'a>,
    pub(crate) config: &'a Config,
    /// Id of the conversation, as the host gave it.
    pub(crate) conversation: &'a str,
    pub(crate) keys: ConversationKeys,
    /// The time that the host gave, in milliseconds since 1970. The effective time of a commit is
    /// never before that of an earlier commit, see [`LoadedHead::effective_time`].
    pub(crate) now: Timestamp,
}

impl<'a> Call<'a> {
    /// Returns the context of a call on a conversation. Nothing is read.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the id is empty or too long.
    pub(crate) fn new(
        session: StoreSession<'a>,
        config: &'a Config,
        conversation: &'a str,
        now: Timestamp,
    ) -> Result<Self> {
        let keys = ConversationKeys::new(conversation)?;
        Ok(Self { session, config, conversation, keys, now })
    }

    /// Reads the head.
    ///
    /// # Errors
    ///
    /// As [`LoadedHead::read_with_keys`].
    pub(crate) fn read_head(&mut self) -> Result<LoadedHead> {
        self.read_head_with(&[]).map(|(loaded, _)| loaded)
    }

    /// Reads the head together with the values of further keys, in one host call.
    ///
    /// # Errors
    ///
    /// As [`LoadedHead::read_with_keys`].
    pub(crate) fn read_head_with(
        &mut self,
        further: &[String],
    ) -> Result<(LoadedHead, Vec<Option<Vec<u8>>>)> {
        LoadedHead::read_with_keys(&mut self.session, &self.keys, self.conversation, further)
    }
}
