//! The costs of prompts with a provider that keeps exact prefixes.

/// Bytes that stand for one token here: only ratios are printed.
pub(crate) const TOKEN_BYTES: usize = 4;
/// Tokens of a block that a cache keeps.
pub(crate) const BLOCK_TOKENS: usize = 1_024;

/// A bill in input tokens.
#[derive(Clone, Default)]
pub(crate) struct Bill {
    before: String,
    /// Tokens of all prompts.
    pub(crate) sent: u64,
    /// Tokens of all prompts that were in the cache.
    pub(crate) read: u64,
    /// Tokens of the requests for summaries; an output token counts as five.
    pub(crate) summaries: u64,
}

impl Bill {
    /// Returns an empty bill with the same prompt in the cache.
    pub(crate) fn of_its_own(&self) -> Self {
        Self { before: self.before.clone(), ..Self::default() }
    }

    /// Empties the cache.
    pub(crate) fn forget(&mut self) {
        self.before.clear();
    }

    /// Adds a prompt that is sent while the cache is valid.
    pub(crate) fn turn(&mut self, prompt: &str) {
        let equal = equal_bytes(self.before.as_bytes(), prompt.as_bytes());
        let blocks = equal / TOKEN_BYTES / BLOCK_TOKENS;
        self.sent += u64::try_from(prompt.len() / TOKEN_BYTES).unwrap();
        self.read += u64::try_from(blocks * BLOCK_TOKENS).unwrap();
        prompt.clone_into(&mut self.before);
    }

    pub(crate) fn completion(&mut self, input_tokens: u32, output_tokens: u32) {
        self.summaries += u64::from(input_tokens) + 5 * u64::from(output_tokens);
    }

    /// Returns the costs in hundredths of the price of an input token: a token written to the cache
    /// costs 1.25, a token read from it 0.1.
    pub(crate) fn total(&self) -> u64 {
        self.total_of(self.read)
    }

    /// Returns the costs if `read` tokens were in the cache.
    pub(crate) fn total_of(&self, read: u64) -> u64 {
        (self.sent - read) * 125 + read * 10 + self.summaries * 100
    }
}

/// Returns the length of the common beginning, in bytes.
fn equal_bytes(a: &[u8], b: &[u8]) -> usize {
    const STEP: usize = 4_096;
    let steps = a.chunks_exact(STEP).zip(b.chunks_exact(STEP));
    let from = steps.take_while(|(a, b)| a == b).count() * STEP;
    from + a[from..].iter().zip(&b[from..]).take_while(|(a, b)| a == b).count()
}
