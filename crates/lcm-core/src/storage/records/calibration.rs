//! Calibration: what a provider's count of a prompt has to do with the estimate.
//!
//! In: reports of both numbers, of one conversation and model. Out: a factor, and the token bounds
//! of a call taken by it from the provider's tokens to estimated ones. Stored counts stay
//! estimates. Not here: the verb that stores a report ([`crate::admin::call`]).

use alloc::{format, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, Sound},
    keys::Keys,
    store::Put,
    store_session::Reader,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{Fields, Writer},
        limits, sort, time,
    },
    types::api::Timestamp,
};

/// What stands for 1: ratios and factors are whole numbers of ten-thousandths, so that rounding
/// stays far below what they say.
const ONE: u64 = 10_000;
/// Reports beyond 1 to 16 or 16 to 1 are mistakes. The worst measured is 9.5: a text in Amharic,
/// which an older tokenizer takes byte by byte.
const RATIO_TIMES_MAX: u64 = 16;
/// Bounds of the factor. Korean has 0.42 with a current tokenizer, Burmese 7.75 with an older one;
/// beyond that a budget is taken for more than a quarter or eight times of what it says.
const FACTOR_MIN: u64 = ONE / 4;
const FACTOR_MAX: u64 = 8 * ONE;
/// Ratios that are kept: 8 changes between them, of which the two greatest do not count. One
/// prompt that was counted wrongly makes two.
const RATIOS_MAX: usize = 9;
/// Share of the changes that the factor allows for.
const CHANGES_COUNTED: (usize, usize) = (3, 4);
/// Added to the newest ratio in any case, in ten-thousandths.
const MARGIN: u64 = 100;
/// Models of one conversation.
pub(crate) const MODELS_MAX: usize = 16;

/// The record of one model: its newest ratios.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Calibration {
    model: String,
    reports: u64,
    /// Time of the newest report.
    pub(crate) time: Timestamp,
    /// What the provider counted by what was estimated, in ten-thousandths, oldest first.
    ratios: Vec<u32>,
}

impl Sound for Calibration {
    fn is_sound(&self) -> bool {
        let bounds = ONE / RATIO_TIMES_MAX..=ONE * RATIO_TIMES_MAX;
        codec::countable(&[self.reports])
            && self.time <= time::MS_MAX
            && self.model.len() <= limits::MODEL_BYTES_MAX
            && (1..=RATIOS_MAX).contains(&self.ratios.len())
            && self.ratios.iter().all(|ratio| bounds.contains(&u64::from(*ratio)))
    }
}

impl Calibration {
    /// Takes a report. Returns whether it is one: the newest may come again with its own time.
    ///
    /// # Errors
    ///
    /// `invalid-input`: one number is 0, or more than 16 times the other.
    pub(crate) fn report(
        &mut self,
        estimated_tokens: u32,
        prompt_tokens: u32,
        now: Timestamp,
    ) -> Result<bool> {
        let (estimated, counted) = (u64::from(estimated_tokens), u64::from(prompt_tokens));
        let far = |more: u64, less: u64| more > less * RATIO_TIMES_MAX;
        if far(estimated, counted) || far(counted, estimated) || estimated == 0 {
            return Err(Error::invalid(format_args!(
                "estimated_tokens, prompt_tokens: {estimated} and {counted} are not of one prompt"
            )));
        }
        let ratio = int::tokens_u32((counted * ONE).div_ceil(estimated));
        if self.time == now && self.ratios.last() == Some(&ratio) {
            return Ok(false);
        }
        if self.ratios.len() == RATIOS_MAX {
            self.ratios.remove(0);
        }
        self.ratios.push(ratio);
        (self.reports, self.time) = (self.reports + 1, now);
        Ok(true)
    }

    /// What an estimate is multiplied by, in ten-thousandths: the newest ratio, as the prompt that
    /// comes is mostly the one before; more by what ratios usually change, and by 1 in 100, as a
    /// prompt that is too long fails and one that is too short does not.
    fn factor(&self) -> u64 {
        let newest = u64::from(self.ratios.last().copied().unwrap_or_default());
        let pairs = self.ratios.iter().zip(self.ratios.iter().skip(1));
        let change = |(before, after): (&u32, &u32)| {
            u64::from(before.abs_diff(*after)) * ONE / u64::from(*before).max(1)
        };
        let mut changes: Vec<u64> = pairs.map(change).collect();
        sort::numbers(&mut changes);
        let (share, of) = CHANGES_COUNTED;
        let place = (changes.len() * share).div_ceil(of).checked_sub(1);
        let usual = place.and_then(|place| changes.get(place)).copied().unwrap_or_default();
        (newest * (ONE + usual + MARGIN)).div_ceil(ONE).clamp(FACTOR_MIN, FACTOR_MAX)
    }

    /// Estimated tokens that the provider counts as at most `tokens`; at least 1.
    pub(crate) fn estimated(&self, tokens: u32) -> u32 {
        int::tokens_u32(u64::from(tokens) * ONE / self.factor()).max(1)
    }

    /// The same of what the provider counted: rounded up.
    pub(crate) fn estimated_of(&self, tokens: u32) -> u32 {
        int::tokens_u32((u64::from(tokens) * ONE).div_ceil(self.factor()))
    }

    /// What is shown of it.
    pub(crate) fn object(&self) -> Writer {
        let mut object = Writer::object();
        object.number("factor_permille", self.factor().div_ceil(ONE / 1_000));
        object.text("model", &self.model);
        object.number("reports", self.reports);
        object
    }
}

/// Which model a call is for, and where its record stands.
pub(crate) struct Wanted {
    model: String,
    pub(crate) key: String,
}

impl Wanted {
    /// The name of the model.
    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    /// The record of this model.
    ///
    /// # Errors
    ///
    /// `invalid-input`: a name that is empty or too long.
    pub(crate) fn of(keys: &Keys, model: String) -> Result<Self> {
        if !(1..=limits::MODEL_BYTES_MAX).contains(&model.len()) {
            let message = format!("model: a name has 1 to {} bytes", limits::MODEL_BYTES_MAX);
            return Err(Error::invalid(message));
        }
        let key = keys.calibration(&model);
        Ok(Self { model, key })
    }

    /// The `model` of further options, which is all that they may hold.
    ///
    /// # Errors
    ///
    /// `invalid-input`: other options.
    pub(crate) fn of_options(keys: &Keys, extra_json: Option<&str>) -> Result<Option<Self>> {
        const NAME: &str = "extra-json";
        let Some(json) = extra_json.filter(|json| !json.is_empty()) else { return Ok(None) };
        let mut fields = Fields::of_argument(NAME, json)?;
        let model = fields.text_or_none("model");
        fields.end(NAME)?;
        model.map(|model| Self::of(keys, model)).transpose()
    }

    /// What the first read of a call brought, when it was asked last for the key of the model that
    /// the call may be for.
    ///
    /// # Errors
    ///
    /// `corrupt`.
    pub(crate) fn taken(
        model: Option<&Self>,
        values: &mut Vec<Option<Vec<u8>>>,
    ) -> Result<Option<Calibration>> {
        let Some(model) = model else { return Ok(None) };
        model.found(values.pop().flatten())
    }

    /// What was read under the key; `None`: nothing was reported of this model.
    ///
    /// # Errors
    ///
    /// `corrupt`.
    pub(crate) fn found(&self, value: Option<Vec<u8>>) -> Result<Option<Calibration>> {
        let Some(value) = value else { return Ok(None) };
        let record = read(&self.key, &value)?;
        // Another model of the same hash is passed over, and replaced by the next report.
        Ok(Some(record).filter(|record| record.model == self.model))
    }

    /// The record to begin with.
    pub(crate) fn begin(&self) -> Calibration {
        Calibration { model: self.model.clone(), ..Calibration::default() }
    }
}

/// Reads a record: the one place that does, for the size of the component.
///
/// # Errors
///
/// `corrupt`.
#[inline(never)]
pub(crate) fn read(key: &str, value: &[u8]) -> Result<Calibration> {
    codec::decode(key, value)
}

/// All records of a conversation, in the order of their keys.
///
/// # Errors
///
/// `corrupt`; errors of the store.
pub(crate) fn all(reader: &mut Reader<'_>, keys: &Keys) -> Result<Vec<(String, Calibration)>> {
    let mut out = Vec::new();
    let (start, end) = keys.range("c");
    reader.scan(&start, &end, &mut |key, value| {
        out.push((key.into(), read(key, value)?));
        Ok(())
    })?;
    Ok(out)
}

/// What makes room for the record of a new model: the one that was reported longest ago leaves.
///
/// # Errors
///
/// As [`all`].
pub(crate) fn room(reader: &mut Reader<'_>, keys: &Keys) -> Result<Option<Put>> {
    let records = all(reader, keys)?;
    if records.len() < MODELS_MAX {
        return Ok(None);
    }
    let oldest = records.into_iter().min_by_key(|(_, record)| record.time);
    Ok(oldest.map(|(key, _)| Put { key, value: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(prompts: &[(u32, u32)]) -> Calibration {
        let mut calibration = Calibration::default();
        for (now, (estimated, counted)) in (1..).zip(prompts) {
            assert!(calibration.report(*estimated, *counted, now).unwrap());
            assert!(calibration.is_sound());
        }
        calibration
    }

    #[test]
    fn a_steady_ratio_is_the_factor_and_a_hundredth() {
        assert_eq!(of(&[(1_000, 1_400)]).factor(), 14_140);
        assert_eq!(of(&[(1_000, 1_400); 30]).factor(), 14_140);
        // 1,014 of these prompts' estimated tokens are 1,434 with margin, and 1,420 without.
        let calibration = of(&[(1_000, 1_400); 30]);
        assert_eq!((calibration.estimated(1_434), calibration.estimated_of(1_434)), (1_014, 1_015));
        assert_eq!((calibration.reports, calibration.ratios.len()), (30, RATIOS_MAX));
    }

    #[test]
    fn what_usually_changes_is_added_and_the_two_greatest_changes_are_not() {
        let swinging: Vec<_> =
            (0..20).map(|i| (1_000, if i % 2 == 0 { 1_000 } else { 1_100 })).collect();
        assert_eq!(of(&swinging).factor(), 11_000 * (10_000 + 1_000 + 100) / 10_000);
        let mut once_wrong = [(1_000, 1_200); 20];
        once_wrong[16].1 = 4_000;
        assert_eq!(of(&once_wrong).factor(), 12_120);
        assert_eq!(of(&[(1_000, 1_000), (1_000, 1_050)]).factor(), 11_130);
    }

    #[test]
    fn the_factor_has_bounds_and_so_have_reports() {
        assert_eq!(of(&[(1_600, 100); 3]).factor(), FACTOR_MIN);
        assert_eq!(of(&[(100, 1_600); 3]).factor(), FACTOR_MAX);
        for (estimated, counted) in [(0, 0), (0, 1), (1, 0), (1_601, 100), (100, 1_601)] {
            let mut calibration = of(&[(10, 10)]);
            let before = calibration.clone();
            assert!(calibration.report(estimated, counted, 9).is_err(), "{estimated} {counted}");
            assert_eq!(calibration, before);
        }
        let most = of(&[(u32::MAX, u32::MAX)]);
        assert_eq!(most.estimated(u32::MAX), 4_252_442_866);
        assert_eq!(of(&[(16, 1); 2]).estimated(u32::MAX), u32::MAX);
        assert_eq!(of(&[(1, 16); 2]).estimated(1), 1);
    }

    #[test]
    fn a_repeated_report_is_none() {
        let mut calibration = of(&[(10, 10), (10, 12)]);
        assert!(!calibration.report(10, 12, 2).unwrap());
        assert!(calibration.report(10, 12, 3).unwrap());
        assert_eq!(calibration.reports, 3);
    }
}
