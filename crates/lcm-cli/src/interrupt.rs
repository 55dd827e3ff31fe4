//! Handles Ctrl-C: the program stops between two calls of the component and exits with 130.
//!
//! Every commit is atomic, so an immediate exit would lose no data, either. A stop between calls
//! lets the program report the stop and remove partial files.

use std::sync::{Mutex, PoisonError};

use lcm_host::{Cancel, Code, Error, Result};

/// Flag of the work that the next interrupt stops; `None`: an interrupt ends the program.
static WORK: Mutex<Option<Cancel>> = Mutex::new(None);

/// Installs the interrupt handler.
pub(crate) fn install() -> Result<()> {
    let handler = || {
        let work = WORK.lock().unwrap_or_else(PoisonError::into_inner).take();
        match work {
            Some(work) => work.cancel(),
            None => {
                eprintln!("lcm: {}", Error::cancelled());
                std::process::exit(130);
            }
        }
    };
    ctrlc::set_handler(handler).map_err(|error| {
        Error::new(Code::Internal, format!("cannot watch for interrupts: {error}"))
    })
}

/// Returns a flag that the next interrupt sets; a second interrupt ends the program at once.
pub(crate) fn work() -> Cancel {
    let cancel = Cancel::default();
    *WORK.lock().unwrap_or_else(PoisonError::into_inner) = Some(cancel.clone());
    cancel
}
