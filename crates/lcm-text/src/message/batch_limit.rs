//! Checks the number and the bytes of the messages of one `append`.
//!
//! In: a list of raw messages. Out: the longest beginning of the list that one append accepts.
//! `lcm-core` checks limits that depend on stored records.

use alloc::string::String;

use crate::base::{
    error::{Error, Result},
    limits,
};

/// Returns the longest beginning of the list within [`limits::BATCH_MESSAGES_MAX`] and
/// [`limits::BATCH_BYTES_MAX`].
///
/// # Errors
///
/// `limit-exceeded`: the first message alone is too large, or `partial` is false and the list
/// exceeds a limit.
pub fn take_fitting(messages: &[String], partial: bool) -> Result<&[String]> {
    let mut bytes = 0usize;
    let mut count = 0usize;
    for message in messages.iter().take(limits::BATCH_MESSAGES_MAX) {
        if message.len() > limits::BATCH_BYTES_MAX {
            if count == 0 || !partial {
                return Err(Error::limit_exceeded(format_args!(
                    "`messages[{count}]` must have at most {} bytes, got {}; upload its text with \
                     `stage`",
                    limits::BATCH_BYTES_MAX,
                    message.len()
                )));
            }
            break;
        }
        bytes += message.len();
        if bytes > limits::BATCH_BYTES_MAX {
            break;
        }
        count += 1;
    }
    if count < messages.len() && !partial {
        return Err(Error::limit_exceeded(format_args!(
            "`messages` must have at most {} messages and {} bytes, got {} messages; append the \
             first {count} in one call",
            limits::BATCH_MESSAGES_MAX,
            limits::BATCH_BYTES_MAX,
            messages.len()
        )));
    }
    Ok(messages.get(..count).unwrap_or(&[]))
}
