use lcm_core::{
    Error, ErrorCode, Result,
    store::{Entry, Guard, Put, Store},
};
use std::collections::BTreeMap;

/// A store in memory, for the examples of the documentation.
#[derive(Default)]
pub struct MemoryStore(BTreeMap<String, Vec<u8>>);

impl Store for MemoryStore {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        Ok(keys.iter().map(|key| self.0.get(key).cloned()).collect())
    }

    fn scan(
        &mut self,
        start: &str,
        end: &str,
        reverse: bool,
        entries_max: u32,
        bytes_max: u32,
    ) -> Result<(Vec<Entry>, bool)> {
        let range = self.0.range(start.to_owned()..end.to_owned());
        let mut range: Vec<_> = range.map(|(key, value)| (key.clone(), value.clone())).collect();
        if reverse {
            range.reverse();
        }
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for (key, value) in range {
            bytes += key.len() + value.len();
            let is_full = entries.len() == entries_max as usize || bytes > bytes_max as usize;
            if !entries.is_empty() && is_full {
                return Ok((entries, true));
            }
            entries.push(Entry { key, value });
        }
        Ok((entries, false))
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<()> {
        if guards.iter().any(|guard| self.0.get(&guard.key) != guard.value.as_ref()) {
            return Err(Error::new(ErrorCode::Conflict, "another writer committed first"));
        }
        for Put { key, value } in puts {
            match value {
                Some(value) => self.0.insert(key.clone(), value.clone()),
                None => self.0.remove(key),
            };
        }
        Ok(())
    }
}
