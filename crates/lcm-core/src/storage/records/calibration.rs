//! Calibration: what a provider's count of a prompt has to do with the estimate.
//!
//! In: reports of both numbers, of one conversation and model. Out: a factor, and the token bounds
//! of a call taken by it from the provider's tokens to estimated ones. Stored counts stay
//! estimates. Not here: the verb that stores a report ([`crate::admin::call`]).

use alloc::{format, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    record_key::{RecordKey, RecordReads, RecordSlot, RecordValues},
    store::Put,
    store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{JsonFields, JsonWriter},
        limits, sort, time,
    },
    types::api::Timestamp,
};

/// What stands for 1: ratios and factors are whole numbers of ten-thousandths, so that rounding
/// stays far below what they say.
const RATIO_ONE: u64 = 10_000;
/// Reports beyond 1 to 16 or 16 to 1 are mistakes. The worst measured is 9.5: a text in Amharic,
/// which an older tokenizer takes byte by byte.
const RATIO_TIMES_MAX: u64 = 16;
/// Bounds of the factor. Korean has 0.42 with a current tokenizer, Burmese 7.75 with an older one;
/// beyond that a budget is taken for more than a quarter or eight times of what it says.
const FACTOR_MIN: u64 = RATIO_ONE / 4;
const FACTOR_MAX: u64 = 8 * RATIO_ONE;
/// Ratios that are kept: 8 changes between them, of which the two greatest do not count. One
/// prompt that was counted wrongly makes two.
const RATIOS_MAX: usize = 9;
/// Share of the changes that the factor allows for.
const CHANGES_QUANTILE: (usize, usize) = (3, 4);
/// Added to the newest ratio in any case, in ten-thousandths.
const FACTOR_MARGIN: u64 = 100;
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

impl SoundRecord for Calibration {
    fn is_sound(&self) -> bool {
        let bounds = RATIO_ONE / RATIO_TIMES_MAX..=RATIO_ONE * RATIO_TIMES_MAX;
        codec::are_countable(&[self.reports])
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
    pub(crate) fn add_report(
        &mut self,
        estimated_tokens: u32,
        prompt_tokens: u32,
        now: Timestamp,
    ) -> Result<bool> {
        let (estimated, counted) = (u64::from(estimated_tokens), u64::from(prompt_tokens));
        let far = |more: u64, less: u64| more > less * RATIO_TIMES_MAX;
        if far(estimated, counted) || far(counted, estimated) || estimated == 0 {
            return Err(Error::invalid_input(format_args!(
                "estimated_tokens, prompt_tokens: {estimated} and {counted} are not of one prompt"
            )));
        }
        let ratio = int::saturate_tokens((counted * RATIO_ONE).div_ceil(estimated));
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
    fn compute_factor(&self) -> u64 {
        let newest = u64::from(self.ratios.last().copied().unwrap_or_default());
        let pairs = self.ratios.iter().zip(self.ratios.iter().skip(1));
        let change = |(before, after): (&u32, &u32)| {
            u64::from(before.abs_diff(*after)) * RATIO_ONE / u64::from(*before).max(1)
        };
        let mut changes: Vec<u64> = pairs.map(change).collect();
        sort::sort_numbers(&mut changes);
        let (share, of) = CHANGES_QUANTILE;
        let place = (changes.len() * share).div_ceil(of).checked_sub(1);
        let usual = place.and_then(|place| changes.get(place)).copied().unwrap_or_default();
        (newest * (RATIO_ONE + usual + FACTOR_MARGIN))
            .div_ceil(RATIO_ONE)
            .clamp(FACTOR_MIN, FACTOR_MAX)
    }

    /// Estimated tokens that the provider counts as at most `tokens`; at least 1.
    pub(crate) fn to_estimated_floor(&self, tokens: u32) -> u32 {
        int::saturate_tokens(u64::from(tokens) * RATIO_ONE / self.compute_factor()).max(1)
    }

    /// The same of what the provider counted: rounded up.
    pub(crate) fn to_estimated_ceil(&self, tokens: u32) -> u32 {
        int::saturate_tokens((u64::from(tokens) * RATIO_ONE).div_ceil(self.compute_factor()))
    }

    /// What is shown of it.
    pub(crate) fn to_object(&self) -> JsonWriter {
        let mut object = JsonWriter::new_object();
        object.add_number("factor_permille", self.compute_factor().div_ceil(RATIO_ONE / 1_000));
        object.add_text("model", &self.model);
        object.add_number("reports", self.reports);
        object
    }
}

/// Which model a call is for, and where its record stands.
pub(crate) struct CalibratedModel {
    model: String,
    pub(crate) key: String,
}

impl CalibratedModel {
    /// The name of the model.
    pub(crate) fn model_name(&self) -> &str {
        &self.model
    }

    /// The record of this model.
    ///
    /// # Errors
    ///
    /// `invalid-input`: a name that is empty or too long.
    pub(crate) fn new(keys: &ConversationKeys, model: String) -> Result<Self> {
        if !(1..=limits::MODEL_BYTES_MAX).contains(&model.len()) {
            let message = format!("model: a name has 1 to {} bytes", limits::MODEL_BYTES_MAX);
            return Err(Error::invalid_input(message));
        }
        let key = keys.calibration_key(&model);
        Ok(Self { model, key })
    }

    /// The `model` of further options, which is all that they may hold.
    ///
    /// # Errors
    ///
    /// `invalid-input`: other options.
    pub(crate) fn from_options(
        keys: &ConversationKeys,
        extra_json: Option<&str>,
    ) -> Result<Option<Self>> {
        const NAME: &str = "extra-json";
        let Some(json) = extra_json.filter(|json| !json.is_empty()) else { return Ok(None) };
        let mut fields = JsonFields::parse_argument(NAME, json)?;
        let model = fields.take_optional_text("model");
        fields.finish(NAME)?;
        model.map(|model| Self::new(keys, model)).transpose()
    }

    /// What the first read of a call brought, when it was asked last for the key of the model that
    /// the call may be for.
    ///
    /// # Errors
    ///
    /// `corrupt`.
    pub(crate) fn pop_calibration(
        model: Option<&Self>,
        values: &mut Vec<Option<Vec<u8>>>,
    ) -> Result<Option<Calibration>> {
        let Some(model) = model else { return Ok(None) };
        model.decode_calibration(values.pop().flatten())
    }

    /// What was read under the key; `None`: nothing was reported of this model.
    ///
    /// # Errors
    ///
    /// `corrupt`.
    pub(crate) fn decode_calibration(&self, value: Option<Vec<u8>>) -> Result<Option<Calibration>> {
        let Some(value) = value else { return Ok(None) };
        let record = decode_record(&self.key, &value)?;
        // Another model of the same hash is passed over, and replaced by the next report.
        Ok(Some(record).filter(|record| record.model == self.model))
    }

    /// Adds the record of this model to a read.
    pub(crate) fn add_to(&self, reads: &mut RecordReads) -> RecordSlot<Calibration> {
        reads.add(self.record_key())
    }

    /// Decodes the record of this model from a read; `None`: nothing was reported of the model.
    ///
    /// # Errors
    ///
    /// `corrupt`.
    pub(crate) fn decode_from(
        &self,
        values: &RecordValues,
        slot: &RecordSlot<Calibration>,
    ) -> Result<Option<Calibration>> {
        Ok(values.decode(slot)?.filter(|record| record.model == self.model))
    }

    /// Reads the record of this model; `None`: nothing was reported of the model.
    ///
    /// # Errors
    ///
    /// `corrupt`; errors of the store.
    pub(crate) fn read_calibration(
        &self,
        session: &mut StoreSession<'_>,
    ) -> Result<Option<Calibration>> {
        let record = session.read_record(&self.record_key())?;
        Ok(record.filter(|record| record.model == self.model))
    }

    fn record_key(&self) -> RecordKey<Calibration> {
        RecordKey::new(self.key.clone())
    }

    /// The record to begin with.
    pub(crate) fn new_calibration(&self) -> Calibration {
        Calibration { model: self.model.clone(), ..Calibration::default() }
    }
}

/// Reads a record: the one place that does, for the size of the component.
///
/// # Errors
///
/// `corrupt`.
#[inline(never)]
pub(crate) fn decode_record(key: &str, value: &[u8]) -> Result<Calibration> {
    codec::decode(key, value)
}

/// All records of a conversation, in the order of their keys.
///
/// # Errors
///
/// `corrupt`; errors of the store.
pub(crate) fn read_all(
    reader: &mut StoreSession<'_>,
    keys: &ConversationKeys,
) -> Result<Vec<(String, Calibration)>> {
    let mut out = Vec::new();
    let (start, end) = keys.record_range("c");
    reader.scan_range(&start, &end, &mut |key, value| {
        out.push((key.into(), decode_record(key, value)?));
        Ok(())
    })?;
    Ok(out)
}

/// What makes room for the record of a new model: the one that was reported longest ago leaves.
///
/// # Errors
///
/// As [`all`].
pub(crate) fn evict_oldest(
    reader: &mut StoreSession<'_>,
    keys: &ConversationKeys,
) -> Result<Option<Put>> {
    let records = read_all(reader, keys)?;
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
            assert!(calibration.add_report(*estimated, *counted, now).unwrap());
            assert!(calibration.is_sound());
        }
        calibration
    }

    #[test]
    fn a_steady_ratio_is_the_factor_and_a_hundredth() {
        assert_eq!(of(&[(1_000, 1_400)]).compute_factor(), 14_140);
        assert_eq!(of(&[(1_000, 1_400); 30]).compute_factor(), 14_140);
        // 1,014 of these prompts' estimated tokens are 1,434 with margin, and 1,420 without.
        let calibration = of(&[(1_000, 1_400); 30]);
        assert_eq!(
            (calibration.to_estimated_floor(1_434), calibration.to_estimated_ceil(1_434)),
            (1_014, 1_015)
        );
        assert_eq!((calibration.reports, calibration.ratios.len()), (30, RATIOS_MAX));
    }

    #[test]
    fn what_usually_changes_is_added_and_the_two_greatest_changes_are_not() {
        let swinging: Vec<_> =
            (0..20).map(|i| (1_000, if i % 2 == 0 { 1_000 } else { 1_100 })).collect();
        assert_eq!(of(&swinging).compute_factor(), 11_000 * (10_000 + 1_000 + 100) / 10_000);
        let mut once_wrong = [(1_000, 1_200); 20];
        once_wrong[16].1 = 4_000;
        assert_eq!(of(&once_wrong).compute_factor(), 12_120);
        assert_eq!(of(&[(1_000, 1_000), (1_000, 1_050)]).compute_factor(), 11_130);
    }

    #[test]
    fn the_factor_has_bounds_and_so_have_reports() {
        assert_eq!(of(&[(1_600, 100); 3]).compute_factor(), FACTOR_MIN);
        assert_eq!(of(&[(100, 1_600); 3]).compute_factor(), FACTOR_MAX);
        for (estimated, counted) in [(0, 0), (0, 1), (1, 0), (1_601, 100), (100, 1_601)] {
            let mut calibration = of(&[(10, 10)]);
            let before = calibration.clone();
            assert!(
                calibration.add_report(estimated, counted, 9).is_err(),
                "{estimated} {counted}"
            );
            assert_eq!(calibration, before);
        }
        let most = of(&[(u32::MAX, u32::MAX)]);
        assert_eq!(most.to_estimated_floor(u32::MAX), 4_252_442_866);
        assert_eq!(of(&[(16, 1); 2]).to_estimated_floor(u32::MAX), u32::MAX);
        assert_eq!(of(&[(1, 16); 2]).to_estimated_floor(1), 1);
    }

    #[test]
    fn a_repeated_report_is_none() {
        let mut calibration = of(&[(10, 10), (10, 12)]);
        assert!(!calibration.add_report(10, 12, 2).unwrap());
        assert!(calibration.add_report(10, 12, 3).unwrap());
        assert_eq!(calibration.reports, 3);
    }
}
