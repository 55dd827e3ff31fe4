//! How many messages of a list one call takes.

use alloc::string::String;

use crate::base::{
    error::{Error, Result},
    limits,
};

/// The beginning of the list that one commit can take.
///
/// # Errors
///
/// `limit-exceeded`: not everything fits and `partial` is not set, or the first message does not.
pub fn take_fitting(messages: &[String], partial: bool) -> Result<&[String]> {
    let mut bytes = 0usize;
    let mut count = 0usize;
    for message in messages.iter().take(limits::BATCH_MESSAGES_MAX) {
        if message.len() > limits::BATCH_BYTES_MAX {
            if count == 0 || !partial {
                return Err(Error::limit_exceeded(format_args!(
                    "messages[{count}]: {} bytes are over the {} of one call; stage the text",
                    message.len(),
                    limits::BATCH_BYTES_MAX
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
            "messages: {count} of {} fit into one call (at most {} messages and {} bytes)",
            messages.len(),
            limits::BATCH_MESSAGES_MAX,
            limits::BATCH_BYTES_MAX
        )));
    }
    Ok(messages.get(..count).unwrap_or(&[]))
}
