//! Bounds the linear memory of an instance, and records its peak.

use wasmtime::{ResourceLimiter, Result, StoreLimits, StoreLimitsBuilder};

/// The limits of the running instance, and the memory peak of all instances of a handle so far.
#[derive(Debug, Default)]
pub(crate) struct InstanceMemory {
    limits: StoreLimits,
    /// Bytes of all memories of the running instance.
    bytes: usize,
    bytes_peak: usize,
}

impl InstanceMemory {
    /// Starts to count for a new instance; `bytes_max` bounds each of its linear memories.
    pub(crate) fn begin(&mut self, bytes_max: usize) {
        self.bytes = 0;
        self.limits =
            StoreLimitsBuilder::new().memory_size(bytes_max).trap_on_grow_failure(true).build();
    }

    /// Returns the most bytes that one instance has had in all its memories together.
    pub(crate) const fn bytes_peak(&self) -> usize {
        self.bytes_peak
    }
}

impl ResourceLimiter for InstanceMemory {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool> {
        let allowed = self.limits.memory_growing(current, desired, maximum)?;
        if allowed {
            self.bytes = self.bytes.saturating_add(desired.saturating_sub(current));
            self.bytes_peak = self.bytes_peak.max(self.bytes);
        }
        Ok(allowed)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> Result<()> {
        self.limits.memory_grow_failed(error)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool> {
        self.limits.table_growing(current, desired, maximum)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> Result<()> {
        self.limits.table_grow_failed(error)
    }

    fn instances(&self) -> usize {
        self.limits.instances()
    }

    fn tables(&self) -> usize {
        self.limits.tables()
    }

    fn memories(&self) -> usize {
        self.limits.memories()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_outlives_an_instance_and_counts_all_its_memories() {
        let mut memory = InstanceMemory::default();
        memory.begin(100);
        assert!(memory.memory_growing(0, 40, None).unwrap());
        assert!(memory.memory_growing(0, 30, None).unwrap());
        assert!(memory.memory_growing(40, 101, None).is_err());
        assert_eq!(memory.bytes_peak(), 70);
        memory.begin(100);
        assert!(memory.memory_growing(0, 60, None).unwrap());
        assert_eq!(memory.bytes_peak(), 70);
    }
}
