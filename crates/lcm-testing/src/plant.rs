//! Planted bugs, which prove that the simulator finds bugs.
//!
//! The bugs are in the store and around the engine, never in the engine.

use lcm_core::store::{Entry, Guard, Put, Store};
use lcm_text::base::error::Result;

use crate::{fault_store::StoreDebug, json::Json};

/// A planted bug.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Plant {
    /// No bug.
    #[default]
    None,
    /// The store commits without comparing guards.
    SkipsGuards,
    /// The store forgets the keys that map the host's ids to messages.
    LosesIdentities,
    /// The context lists one item twice.
    DoublesItem,
    /// The store keeps search segments without their last block.
    LosesPostings,
}

/// A store with a planted bug.
#[derive(Debug)]
pub struct PlantedStore<'a> {
    inner: &'a mut dyn StoreDebug,
    plant: Plant,
}

impl<'a> PlantedStore<'a> {
    /// Wraps `inner`.
    pub fn new(inner: &'a mut dyn StoreDebug, plant: Plant) -> Self {
        Self { inner, plant }
    }
}

fn is_identity(put: &Put) -> bool {
    // Keys are `<conversation>/<kind><rest>`; kind `i` maps an id or event key to its message.
    put.key.split_once('/').is_some_and(|(_, rest)| rest.starts_with('i'))
}

/// Removes the last block from the root of a search segment; other puts are unchanged. After the
/// two bytes that begin every value, a root has: the number of blocks (2 bytes), a row of 8 bytes
/// for each block (the last two bytes are its size), and the blocks if they are stored in the root.
fn lose_postings(put: &Put) -> Put {
    let mut put = put.clone();
    let is_root = put
        .key
        .split_once('/')
        .is_some_and(|(_, rest)| rest.starts_with('p') && !rest.contains('/'));
    if let (true, Some(value)) = (is_root, &mut put.value) {
        let count = usize::from(u16::from_be_bytes([value[2], value[3]]));
        if count > 0 {
            let row = 4 + 8 * (count - 1);
            let size = usize::from(u16::from_be_bytes([value[row + 6], value[row + 7]]));
            value[2..4].copy_from_slice(&((count - 1) as u16).to_be_bytes());
            let is_inline = value.len() > row + 8;
            value.truncate(value.len() - if is_inline { size } else { 0 });
            value.drain(row..row + 8);
        }
    }
    put
}

impl Store for PlantedStore<'_> {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        self.inner.get_many(keys)
    }

    fn scan(
        &mut self,
        start: &str,
        end: &str,
        reverse: bool,
        entries_max: u32,
        bytes_max: u32,
    ) -> Result<(Vec<Entry>, bool)> {
        self.inner.scan(start, end, reverse, entries_max, bytes_max)
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<()> {
        match self.plant {
            Plant::SkipsGuards => self.inner.commit(&[], puts),
            Plant::LosesIdentities => {
                let kept: Vec<_> = puts.iter().filter(|put| !is_identity(put)).cloned().collect();
                self.inner.commit(guards, &kept)
            }
            Plant::LosesPostings => {
                let damaged: Vec<_> = puts.iter().map(lose_postings).collect();
                self.inner.commit(guards, &damaged)
            }
            Plant::None | Plant::DoublesItem => self.inner.commit(guards, puts),
        }
    }
}

/// Doubles the first item in a result of `context.assemble`.
pub fn double_item(assembled: &mut Json) {
    let Json::Object(entries) = assembled else { return };
    for (key, value) in entries {
        if let ("items", Json::Array(items)) = (key.as_str(), value)
            && let Some(first) = items.first().cloned()
        {
            items.insert(0, first);
        }
    }
}
