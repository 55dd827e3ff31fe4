//! `lcm demo`.

use lcm_host::Result;

use crate::{End, arguments::Global};

pub(crate) fn run(_global: &Global) -> Result<End> {
    Ok(End::Done)
}
