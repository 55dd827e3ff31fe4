//! Several handles on the same data, so that conversations on different handles do not wait for
//! each other.
//!
//! In: the handles of a [`Builder`](crate::Builder). Out: a handle for each conversation, chosen by
//! a hash of its id. The same conversation always gets the same handle, so its calls run one after
//! another and find its data in the cache of the instance.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::{conversation::Conversation, lcm::Lcm};

/// Handles on the same data, each with its own instance.
///
/// ```
/// use lcm_host::{Lcm, store::{Memory, Shared}};
///
/// let store = Shared::new(Memory::new());              // or `.path("agent.lcm.db")`
/// let pool = Lcm::builder()
///     .stores(move || Ok(store.clone()))
///     .pool(4, include_bytes!("../../../dist/lcm.wasm"))?;
/// std::thread::scope(|scope| {
///     for user in ["ann", "ben", "cleo"] {
///         let chat = pool.conversation(user, 8_000);
///         scope.spawn(move || chat.turn(&[r#"{"role": "user", "content": "hello"}"#]));
///     }
/// });
/// assert!(pool.of("ben").status(Some("cleo"), 0)?.contains(r#""messages":1"#));
/// # Ok::<(), lcm_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pool {
    handles: Vec<Lcm>,
    first: Lcm,
}

impl Pool {
    /// Creates a pool of `first` and `others`.
    pub(crate) fn new(first: Lcm, mut others: Vec<Lcm>) -> Self {
        others.insert(0, first.clone());
        Self { handles: others, first }
    }

    /// Returns the number of handles, which is the most calls that run at the same time.
    #[must_use]
    pub fn len(&self) -> usize {
        self.handles.len()
    }

    /// Returns false: a pool has at least one handle.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.handles.is_empty()
    }

    /// Returns the handle of this conversation; other conversations may share this handle.
    #[must_use]
    pub fn of(&self, conversation: &str) -> &Lcm {
        let mut hasher = DefaultHasher::new();
        conversation.hash(&mut hasher);
        let count = u64::try_from(self.handles.len()).unwrap_or(u64::MAX).max(1);
        let at = usize::try_from(hasher.finish() % count).unwrap_or(0);
        self.handles.get(at).unwrap_or(&self.first)
    }

    /// Returns the conversation of this id, which need not exist, with a budget in tokens.
    #[must_use]
    pub fn conversation(&self, id: &str, budget: u32) -> Conversation {
        self.of(id).conversation(id, budget)
    }

    /// Drops the instances of all handles to free their memory; the next call of a handle makes a
    /// new instance.
    pub fn park(&self) {
        self.handles.iter().for_each(Lcm::park);
    }
}
