//! Calibration: the ratio between a provider's token count and the estimate.
//!
//! In: reports of both counts for prompts of one conversation and model. Out: a factor that
//! converts token bounds of a call from the provider's tokens to estimated tokens. Stored counts
//! stay estimates. The command that stores a report is in `crate::admin`.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::storage::{
    changes::Changes,
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    record_key::{RecordKey, RecordReads, RecordSlot, RecordValues},
    store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::JsonWriter,
        limits, sort, time,
    },
    types::api::Timestamp,
};

/// The ratio 1: ratios and factors are in ten-thousandths.
const RATIO_ONE: u64 = 10_000;
/// Greatest quotient of the two counts of a report, whichever is greater. The greatest measured
/// quotient is 9.5: Amharic with an older tokenizer, which counts single bytes.
const RATIO_TIMES_MAX: u64 = 16;
/// Least factor, 0.25. Korean has 0.42 with a current tokenizer.
const FACTOR_MIN: u64 = RATIO_ONE / 4;
/// Greatest factor, 8. Burmese has 7.75 with an older tokenizer.
const FACTOR_MAX: u64 = 8 * RATIO_ONE;
/// Most stored ratios. Of the 8 changes between neighbours, the factor ignores the two greatest,
/// because one wrong count causes two changes.
const RATIOS_MAX: usize = 9;
/// Share of the changes that the factor covers, smallest first, as numerator and denominator.
const CHANGES_QUANTILE: (usize, usize) = (3, 4);
/// Margin that the factor always adds to the newest ratio: a hundredth of the ratio.
const FACTOR_MARGIN: u64 = 100;
/// Most models with a calibration record in one conversation.
pub(crate) const MODELS_MAX: usize = 16;

/// The calibration record of one model.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Calibration {
    model: String,
    reports: u64,
    /// Time of the newest report.
    pub(crate) time: Timestamp,
    /// Newest ratios of the provider's count to the estimate, in ten-thousandths, oldest first.
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
    /// Adds a report; does nothing and returns false if ratio and time equal those of the newest
    /// report. Above nine ratios, the oldest is dropped.
    ///
    /// # Errors
    ///
    /// `invalid-input`: a count is 0, or more than 16 times the other count.
    pub(crate) fn add_report(
        &mut self,
        estimated_tokens: u32,
        prompt_tokens: u32,
        now: Timestamp,
    ) -> Result<bool> {
        let (estimated, counted) = (u64::from(estimated_tokens), u64::from(prompt_tokens));
        let is_too_great = |more: u64, less: u64| more > less * RATIO_TIMES_MAX;
        if is_too_great(estimated, counted) || is_too_great(counted, estimated) || estimated == 0 {
            return Err(Error::invalid_input(format_args!(
                "`estimated_tokens` and `prompt_tokens` must be of the same prompt and differ by \
                 at most {RATIO_TIMES_MAX} times, got {estimated} and {counted}"
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

    /// Computes the factor for estimates, in ten-thousandths.
    ///
    /// The factor starts from the newest ratio, because the next prompt mostly repeats the last
    /// prompt. A usual change between ratios and a hundredth are added, because a prompt that is
    /// too long fails. The result is clamped to the range from 0.25 to 8.
    fn compute_factor(&self) -> u64 {
        let newest = u64::from(self.ratios.last().copied().unwrap_or_default());
        let pairs = self.ratios.iter().zip(self.ratios.iter().skip(1));
        let change = |(before, after): (&u32, &u32)| {
            u64::from(before.abs_diff(*after)) * RATIO_ONE / u64::from(*before).max(1)
        };
        let mut changes: Vec<u64> = pairs.map(change).collect();
        sort::sort_numbers(&mut changes);
        let (numerator, denominator) = CHANGES_QUANTILE;
        let index = (changes.len() * numerator).div_ceil(denominator).checked_sub(1);
        let usual_change = index.and_then(|index| changes.get(index)).copied().unwrap_or_default();
        (newest * (RATIO_ONE + usual_change + FACTOR_MARGIN))
            .div_ceil(RATIO_ONE)
            .clamp(FACTOR_MIN, FACTOR_MAX)
    }

    /// Converts the provider's tokens to estimated tokens, rounded down; at least 1.
    pub(crate) fn to_estimated_floor(&self, tokens: u32) -> u32 {
        int::saturate_tokens(u64::from(tokens) * RATIO_ONE / self.compute_factor()).max(1)
    }

    /// Converts the provider's tokens to estimated tokens, rounded up.
    pub(crate) fn to_estimated_ceil(&self, tokens: u32) -> u32 {
        int::saturate_tokens((u64::from(tokens) * RATIO_ONE).div_ceil(self.compute_factor()))
    }

    /// Returns the calibration as JSON.
    pub(crate) fn to_object(&self) -> JsonWriter {
        let mut object = JsonWriter::new_object();
        object.add_number("factor_permille", self.compute_factor().div_ceil(RATIO_ONE / 1_000));
        object.add_text("model", &self.model);
        object.add_number("reports", self.reports);
        object
    }
}

/// The model of a call, with the key of its calibration record.
pub(crate) struct CalibratedModel {
    model: String,
    key: RecordKey<Calibration>,
}

impl CalibratedModel {
    /// Returns the name of the model.
    pub(crate) fn model_name(&self) -> &str {
        &self.model
    }

    /// Creates the key of the record of a model.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the name is empty or longer than 128 bytes.
    pub(crate) fn new(keys: &ConversationKeys, model: String) -> Result<Self> {
        if !(1..=limits::MODEL_BYTES_MAX).contains(&model.len()) {
            return Err(Error::invalid_input(format_args!(
                "`model` must have 1 to {} bytes, got {}",
                limits::MODEL_BYTES_MAX,
                model.len()
            )));
        }
        let key = RecordKey::new(keys.calibration_key(&model));
        Ok(Self { model, key })
    }

    /// Adds the record of this model to a read.
    pub(crate) fn add_to(&self, reads: &mut RecordReads) -> RecordSlot<Calibration> {
        reads.add_record(self.key.clone())
    }

    /// Decodes the record of this model from a read. `None`: the model has no report, or a model
    /// with the same hash of its name replaced the record.
    ///
    /// # Errors
    ///
    /// `corrupt`: the record is damaged; `unsupported`: the record has a newer format.
    pub(crate) fn decode_from(
        &self,
        values: &RecordValues,
        slot: &RecordSlot<Calibration>,
    ) -> Result<Option<Calibration>> {
        // A record of another model with the same hash is ignored; the next report replaces it.
        Ok(values.decode(slot)?.filter(|record| record.model == self.model))
    }

    /// Reads the record of this model. `None`: the model has no report, or a model with the same
    /// hash of its name replaced the record.
    ///
    /// # Errors
    ///
    /// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the
    /// store.
    pub(crate) fn read_calibration(
        &self,
        session: &mut StoreSession<'_>,
    ) -> Result<Option<Calibration>> {
        let record = session.read_record(&self.key)?;
        Ok(record.filter(|record| record.model == self.model))
    }

    /// Returns the key of the record of this model.
    pub(crate) fn key(&self) -> &RecordKey<Calibration> {
        &self.key
    }

    /// Creates a record of this model without reports.
    pub(crate) fn new_calibration(&self) -> Calibration {
        Calibration { model: self.model.clone(), ..Calibration::default() }
    }
}

/// Reads all calibration records of a conversation with their keys, in the order of the keys.
///
/// # Errors
///
/// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the store.
fn read_all(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
) -> Result<Vec<(String, Calibration)>> {
    let mut records = Vec::new();
    let (start, end) = keys.record_range("c");
    session.scan_range(&start, &end, &mut |key, value| {
        records.push((key.into(), codec::decode(key, value)?));
        Ok(())
    })?;
    Ok(records)
}

/// Makes room for the record of a new model: if the conversation has [`MODELS_MAX`] records,
/// deletes the record whose newest report is oldest.
///
/// # Errors
///
/// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the store.
pub(crate) fn evict_oldest(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    changes: &mut Changes,
) -> Result<()> {
    let records = read_all(session, keys)?;
    if records.len() < MODELS_MAX {
        return Ok(());
    }
    if let Some((key, _)) = records.into_iter().min_by_key(|(_, record)| record.time) {
        changes.delete_record(&RecordKey::<Calibration>::new(key));
    }
    Ok(())
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
