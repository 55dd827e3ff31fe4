//! The progress of a task as a list of numbers and short texts.
//!
//! In: the values of a progress, visited in a fixed order. Out: the state in a token, or the values
//! read back from it. One function `visit` of each progress both reads and writes.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::storage::codec::SoundRecord;
use lcm_text::base::int;

/// The values of a progress, in visiting order.
#[derive(Default, Deserialize, Serialize)]
pub(super) struct DriveState {
    numbers: Vec<u64>,
    texts: Vec<String>,
    /// Number of numbers and number of texts read so far; `None`: values are written.
    #[serde(skip)]
    read: Option<(u64, u64)>,
    /// Whether a value was missing or invalid when it was read.
    #[serde(skip)]
    is_short: bool,
}

impl SoundRecord for DriveState {}

impl DriveState {
    /// Returns the state as a reader of its values.
    pub(super) fn into_reader(mut self) -> Self {
        self.read = Some((0, 0));
        self
    }

    /// Returns whether every value was read, and none was missing or invalid.
    pub(super) fn is_read(&self) -> bool {
        !self.is_short
            && self.read == Some((int::to_u64(self.numbers.len()), int::to_u64(self.texts.len())))
    }

    /// Reads or writes a number.
    pub(super) fn visit_number(&mut self, number: &mut u64) {
        match &mut self.read {
            None => self.numbers.push(*number),
            Some((at, _)) => match self.numbers.get(int::to_usize(*at)) {
                Some(read) => {
                    *number = *read;
                    *at += 1;
                }
                None => self.is_short = true,
            },
        }
    }

    /// Reads or writes a text.
    pub(super) fn text(&mut self, text: &mut String) {
        match &mut self.read {
            None => self.texts.push(text.clone()),
            Some((_, at)) => match self.texts.get_mut(int::to_usize(*at)) {
                Some(read) => {
                    *text = core::mem::take(read);
                    *at += 1;
                }
                None => self.is_short = true,
            },
        }
    }

    /// Reads or writes a flag.
    pub(super) fn visit_flag(&mut self, flag: &mut bool) {
        let mut number = u64::from(*flag);
        self.visit_number(&mut number);
        *flag = number != 0;
    }

    /// Reads or writes a value by its index in `all`.
    pub(super) fn visit_choice<T: Copy + PartialEq>(&mut self, value: &mut T, all: &[T]) {
        let mut place = all.iter().position(|of| of == value).map_or(0, int::to_u64);
        self.visit_number(&mut place);
        match all.get(int::to_usize(place)) {
            Some(of) => *value = *of,
            None => self.is_short = true,
        }
    }
}
