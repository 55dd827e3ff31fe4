//! A chain of providers: asks a failing provider again, then the next provider.
//!
//! In: a completion request. Out: the first completion that is neither blank nor cut off, else the
//! best that [`Chain`] describes, or the failure of the last provider that was asked.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{CompletionProvider, Offline, failed};
use crate::{
    clock::Cancel,
    component::Component,
    events,
    lcm::Lcm,
    types::{
        Completion, CompletionError, CompletionErrorCode, CompletionRequest, CompletionResult,
        Purpose,
    },
};

/// Retries of a provider after its first attempt, by default.
const RETRIES: u32 = 2;
/// Pause before the first retry; each further pause is twice as long.
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// Longest pause before a retry. A provider that requests a longer pause is not asked again for the
/// request; the next provider may answer sooner.
const DELAY_MAX: Duration = Duration::from_secs(60);

/// A fallback chain of providers.
///
/// The failures `auth` and `policy` concern the key or the content, so the chain returns them at
/// once. After `context-too-long` the next provider is asked, whose window may be larger; if no
/// provider answers, the chain returns this failure, because it concerns the request. After any
/// other failure the same provider is asked again, up to the number of retries, then the next
/// provider. A provider that requests a pause over a minute is not asked again. The chain returns
/// the first completion, or the failure of the last provider. After a stop by the caller, no
/// further provider is asked. A chain without providers fails with `unavailable`.
///
/// With [`Chain::with_judge`] the next provider is also asked after a completion that says nothing
/// or was cut off. The first such completion is returned if no later provider has a better one, for
/// whatever reason, unless the caller stops the chain meanwhile.
#[derive(Clone)]
pub struct Chain {
    default: Vec<Arc<dyn CompletionProvider>>,
    by_purpose: Vec<(Purpose, Arc<dyn CompletionProvider>)>,
    retries: u32,
    judge: Option<Lcm>,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Chain")
            .field("providers", &self.default.len())
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

impl Chain {
    /// Creates a chain that asks these providers in order, each at most three times for a request
    /// unless [`Chain::with_retries`] sets another number.
    #[must_use]
    pub fn new(providers: Vec<Arc<dyn CompletionProvider>>) -> Self {
        Self { default: providers, by_purpose: Vec::new(), retries: RETRIES, judge: None }
    }

    /// Adds a provider for one purpose. The general providers are then not asked for that purpose;
    /// several providers of one purpose are asked in order.
    #[must_use]
    pub fn with_purpose(mut self, purpose: Purpose, provider: Arc<dyn CompletionProvider>) -> Self {
        self.by_purpose.push((purpose, provider));
        self
    }

    /// Sets the number of retries of a provider after its first attempt; the default is 2.
    #[must_use]
    pub fn with_retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Makes the chain ask the next provider after a completion that says nothing or was cut off,
    /// as `component` judges. A single provider is not judged.
    #[must_use]
    pub fn with_judge(mut self, component: &Component) -> Self {
        self.judge = Some(Offline::new(component).into_instance());
        self
    }

    /// Returns whether the next provider should be asked after this completion.
    fn is_faulty(&self, request: &CompletionRequest, completion: &Completion) -> bool {
        let judged = |judge: &Lcm| judge.judge_answer(request, completion);
        self.judge.as_ref().is_some_and(|judge| matches!(judged(judge), Ok(Some(_))))
    }

    fn providers(&self, purpose: Purpose) -> Vec<&Arc<dyn CompletionProvider>> {
        let own = self.by_purpose.iter().filter(|(of, _)| *of == purpose);
        let own: Vec<_> = own.map(|(_, provider)| provider).collect();
        if own.is_empty() { self.default.iter().collect() } else { own }
    }

    fn ask(
        &self,
        provider: &dyn CompletionProvider,
        request: &CompletionRequest,
        cancel: &Cancel,
        attempts: &mut u32,
    ) -> CompletionResult {
        let mut retries = 0;
        loop {
            let began = Instant::now();
            let answer = provider.complete(request, cancel);
            *attempts += 1;
            events::emit_model_call(request, *attempts, &answer, began.elapsed().as_millis());
            let CompletionResult::Failed(error) = &answer else { return answer };
            if is_lasting(error) || retries == self.retries || cancel.is_cancelled() {
                return answer;
            }
            let Some(pause) = pause(error, retries) else { return answer };
            retries += 1;
            cancel.sleep(pause);
            if cancel.is_cancelled() {
                return answer;
            }
        }
    }
}

/// Returns the pause before the next attempt of a provider that was retried `retries` times.
/// `None`: the provider requests a pause over [`DELAY_MAX`], so there is no further attempt.
fn pause(error: &CompletionError, retries: u32) -> Option<Duration> {
    let doubled = || FIRST_DELAY.saturating_mul(1 << retries.min(16)).min(DELAY_MAX);
    let pause = error.retry_after_ms.map_or_else(doubled, Duration::from_millis);
    (pause <= DELAY_MAX).then_some(pause)
}

impl CompletionProvider for Chain {
    fn complete(&self, request: &CompletionRequest, cancel: &Cancel) -> CompletionResult {
        let mut last = failed(CompletionErrorCode::Unavailable, "no model is configured");
        let mut attempts = 0;
        let (mut faulty, mut too_long) = (None, None);
        let providers = self.providers(request.purpose);
        let is_alone = providers.len() < 2;
        for provider in providers {
            last = self.ask(provider.as_ref(), request, cancel, &mut attempts);
            match &last {
                CompletionResult::Done(done) if !is_alone && self.is_faulty(request, done) => {
                    faulty.get_or_insert(last.clone());
                }
                CompletionResult::Done(_) => return last,
                CompletionResult::Failed(_) if cancel.is_cancelled() => return last,
                CompletionResult::Failed(error)
                    if error.code == CompletionErrorCode::ContextTooLong =>
                {
                    too_long.get_or_insert(last.clone());
                }
                CompletionResult::Failed(error) if is_lasting(error) => break,
                CompletionResult::Failed(_) => {}
            }
        }
        // The component decides what follows from a faulty answer.
        faulty.or(too_long).unwrap_or(last)
    }

    fn is_offline(&self, purpose: Purpose) -> bool {
        self.providers(purpose).first().is_some_and(|provider| provider.is_offline(purpose))
    }
}

/// Returns whether the same provider would fail again after this failure.
fn is_lasting(error: &CompletionError) -> bool {
    matches!(
        error.code,
        CompletionErrorCode::Auth
            | CompletionErrorCode::Policy
            | CompletionErrorCode::ContextTooLong
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::types::{Finish, Level};

    fn request(purpose: Purpose) -> CompletionRequest {
        CompletionRequest {
            id: "task".into(),
            purpose,
            level: Level::Normal,
            system: String::new(),
            prompt: "text".into(),
            input_tokens: 1,
            output_tokens_max: 1,
            temperature_permille: 0,
            model: None,
        }
    }

    fn done(text: &str) -> CompletionResult {
        CompletionResult::Done(Completion {
            text: text.into(),
            finish: Finish::Stop,
            model: "test".into(),
            input_tokens: 0,
            output_tokens: 0,
        })
    }

    /// A provider that fails with `code` and counts how often it was asked.
    fn failing(code: CompletionErrorCode, count: &Arc<AtomicU32>) -> Arc<dyn CompletionProvider> {
        let count = Arc::clone(count);
        Arc::new(move |_: &CompletionRequest| {
            count.fetch_add(1, Ordering::SeqCst);
            let message = "no".to_owned();
            CompletionResult::Failed(CompletionError { code, message, retry_after_ms: Some(0) })
        })
    }

    fn ask(chain: &Chain, purpose: Purpose) -> CompletionResult {
        chain.complete(&request(purpose), &Cancel::default())
    }

    #[test]
    fn a_refused_key_is_asked_once_and_nobody_else_is_asked() {
        let count = Arc::new(AtomicU32::new(0));
        let next: Arc<dyn CompletionProvider> = Arc::new(|_: &CompletionRequest| done("next"));
        let chain = Chain::new(vec![failing(CompletionErrorCode::Auth, &count), next]);
        let answer = ask(&chain, Purpose::Leaf);
        assert!(matches!(answer, CompletionResult::Failed(error)
            if error.code == CompletionErrorCode::Auth));
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn an_unavailable_model_is_retried_and_then_the_next_is_asked() {
        let count = Arc::new(AtomicU32::new(0));
        let next: Arc<dyn CompletionProvider> = Arc::new(|_: &CompletionRequest| done("next"));
        let chain = Chain::new(vec![failing(CompletionErrorCode::Unavailable, &count), next]);
        assert_eq!(ask(&chain, Purpose::Leaf), done("next"));
        assert_eq!(count.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_provider_that_wants_a_long_pause_is_not_asked_again() {
        let count = Arc::new(AtomicU32::new(0));
        let asked = Arc::clone(&count);
        let busy: Arc<dyn CompletionProvider> = Arc::new(move |_: &CompletionRequest| {
            asked.fetch_add(1, Ordering::SeqCst);
            CompletionResult::Failed(CompletionError {
                code: CompletionErrorCode::RateLimited,
                message: "in an hour".to_owned(),
                retry_after_ms: Some(3_600_000),
            })
        });
        let next: Arc<dyn CompletionProvider> = Arc::new(|_: &CompletionRequest| done("next"));
        assert_eq!(ask(&Chain::new(vec![busy, next]), Purpose::Leaf), done("next"));
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn pauses_double_from_half_a_second_to_a_minute_or_are_as_wanted() {
        let after = |retry_after_ms| {
            let (code, message) = (CompletionErrorCode::RateLimited, "busy".to_owned());
            CompletionError { code, message, retry_after_ms }
        };
        let pauses: Vec<u128> = (0..9)
            .filter_map(|retries| pause(&after(None), retries))
            .map(|p| p.as_millis())
            .collect();
        assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(pause(&after(None), u32::MAX), Some(DELAY_MAX));
        assert_eq!(pause(&after(Some(60_000)), 0), Some(DELAY_MAX));
        assert_eq!(pause(&after(Some(60_001)), 0), None);
    }

    #[test]
    fn waiting_ends_at_once_when_the_work_is_stopped() {
        let (count, cancel) = (Arc::new(AtomicU32::new(0)), Cancel::default());
        let (asked, stop) = (Arc::clone(&count), cancel.clone());
        let busy: Arc<dyn CompletionProvider> = Arc::new(move |_: &CompletionRequest| {
            asked.fetch_add(1, Ordering::SeqCst);
            let stop = stop.clone();
            // While the chain waits for the second attempt.
            std::thread::spawn(move || stop.cancel());
            let message = "in a minute".to_owned();
            let (code, retry_after_ms) = (CompletionErrorCode::RateLimited, Some(60_000));
            CompletionResult::Failed(CompletionError { code, message, retry_after_ms })
        });
        let next: Arc<dyn CompletionProvider> = Arc::new(|_: &CompletionRequest| done("next"));
        let began = std::time::Instant::now();
        let chain = Chain::new(vec![busy, next]);
        let answer = chain.complete(&request(Purpose::Leaf), &cancel);
        assert!(matches!(answer, CompletionResult::Failed(_)));
        assert!(began.elapsed() < Duration::from_secs(30));
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn the_provider_of_a_purpose_takes_its_requests_only() {
        let default: Arc<dyn CompletionProvider> = Arc::new(|_: &CompletionRequest| done("any"));
        let leaf: Arc<dyn CompletionProvider> = Arc::new(|_: &CompletionRequest| done("leaf"));
        let chain = Chain::new(vec![default]).with_purpose(Purpose::Leaf, leaf);
        assert_eq!(ask(&chain, Purpose::Leaf), done("leaf"));
        assert_eq!(ask(&chain, Purpose::Condensed), done("any"));
    }
}
