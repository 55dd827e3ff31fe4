//! What prompts cost where a provider keeps exact prefixes.

/// Bytes that stand for one token here: only ratios are printed.
const TOKEN_BYTES: usize = 4;
/// Tokens of a block that a cache keeps.
const BLOCK_TOKENS: usize = 1_024;

/// A bill in input tokens.
#[derive(Clone, Default)]
pub(crate) struct Bill {
    before: String,
    /// Tokens of all prompts.
    pub(crate) sent: u64,
    /// Of them those that were in the cache.
    pub(crate) read: u64,
    /// Tokens that summaries took, an output token as five.
    pub(crate) summaries: u64,
}

impl Bill {
    /// A bill of nothing, with the same in the cache.
    pub(crate) fn of_its_own(&self) -> Self {
        Self { before: self.before.clone(), ..Self::default() }
    }

    /// What the cache keeps is gone.
    pub(crate) fn forget(&mut self) {
        self.before.clear();
    }

    /// A prompt that is sent within the life of the cache.
    pub(crate) fn turn(&mut self, prompt: &str) {
        let equal = self.before.bytes().zip(prompt.bytes()).take_while(|(a, b)| a == b).count();
        let blocks = equal / TOKEN_BYTES / BLOCK_TOKENS;
        self.sent += u64::try_from(prompt.len() / TOKEN_BYTES).unwrap();
        self.read += u64::try_from(blocks * BLOCK_TOKENS).unwrap();
        prompt.clone_into(&mut self.before);
    }

    pub(crate) fn completion(&mut self, input_tokens: u32, output_tokens: u32) {
        self.summaries += u64::from(input_tokens) + 5 * u64::from(output_tokens);
    }

    /// In hundredths of input tokens: a written one costs 1.25, one that is read 0.1.
    pub(crate) fn total(&self) -> u64 {
        (self.sent - self.read) * 125 + self.read * 10 + self.summaries * 100
    }
}
