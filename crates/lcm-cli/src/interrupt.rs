//! Ctrl-C: the program stops between two calls and exits with 130.
//!
//! Every commit is atomic, so an immediate exit would be safe as well. A stop between calls lets
//! the program report and close its files.

use std::sync::{Mutex, PoisonError};

use lcm_host::{Cancel, Code, Error, Result};

/// Work that can be stopped; `None`: an interrupt ends the program.
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

/// Registers work that the next interrupt stops; the second interrupt ends the program.
pub(crate) fn work() -> Cancel {
    let cancel = Cancel::default();
    *WORK.lock().unwrap_or_else(PoisonError::into_inner) = Some(cancel.clone());
    cancel
}
