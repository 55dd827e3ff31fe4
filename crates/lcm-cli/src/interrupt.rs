//! Ctrl-C: the work stops between two calls and the program ends with 130.
//!
//! Every commit is whole, so ending at once would be safe, too; stopping between calls lets the
//! program say what happened and close its files.

use std::sync::{Mutex, PoisonError};

use lcm_host::{Cancel, Code, Error, Result};

/// The work that can be stopped; `None`: there is none, and an interrupt ends the program.
static WORK: Mutex<Option<Cancel>> = Mutex::new(None);

/// Takes interrupts from here on.
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

/// Work that the next interrupt stops; the one after ends the program.
pub(crate) fn work() -> Cancel {
    let cancel = Cancel::default();
    *WORK.lock().unwrap_or_else(PoisonError::into_inner) = Some(cancel.clone());
    cancel
}
