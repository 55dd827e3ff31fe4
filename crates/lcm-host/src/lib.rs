//! The wasmtime reference host of `lcm.wasm`, as a library.
//!
//! In: the bytes of the component, a store and a model. Out: [`Lcm`], one typed method per
//! exported function, and the loops every host needs: [`Lcm::ingest`], [`Lcm::compact`],
//! [`Lcm::ask`] and the readers that follow cursors. No decision about conversations is made here;
//! that is the component's part, and no constant of its policy appears in this crate.
//!
//! ```no_run
//! use std::sync::Arc;
//! use lcm_host::{
//!     Cancel, Clock, CompactOptions, Component, IngestOptions, Lcm, LoadOptions,
//!     completion::{Chain, Offline}, store::Sqlite, types::Dialect,
//! };
//!
//! # fn main() -> lcm_host::Result<()> {
//! let wasm = std::fs::read("dist/lcm.wasm").expect("built by build.sh");
//! let component = Component::load(&wasm, &LoadOptions::default())?;
//! let model = Arc::new(Chain::new(vec![Arc::new(Offline::new(&component))]));
//! let lcm = Lcm::new(&component, Box::new(Sqlite::open("agent.lcm.db".as_ref())?), model);
//!
//! let messages = vec![r#"{"role":"user","content":"hello"}"#.to_owned()];
//! let ingest = IngestOptions::new(Dialect::Lcm, Clock::System);
//! lcm.ingest("chat-1", &messages, &ingest, &Cancel::default(), &mut |_| ())?;
//! let compact = CompactOptions::new(200_000, Clock::System);
//! lcm.compact("chat-1", &compact, &Cancel::default(), &mut |_| ())?;
//! # Ok(())
//! # }
//! ```

mod ask;
mod bindings;
mod calls;
mod clock;
mod compaction;
mod component;
mod digest;
mod dynamic;
mod error;
mod host_calls;
mod ingest;
mod instance;
mod json;
mod lcm;
mod memory;
mod money;
mod pages;
mod portable;
mod record;
mod turn;

pub mod completion;
pub mod session_files;
pub mod store;

pub use ask::{AskFailure, AskOptions, AskReport, AskStatus};
pub use bindings::{context, ingestion, types, work};
pub use clock::{Cancel, Clock};
pub use compaction::{CompactOptions, CompactReport, CompactStatus, Pass, model_option};
pub use component::{Component, Limits, LoadOptions};
pub use error::{Code, Error, Result};
pub use ingest::{IngestError, IngestOptions, IngestReport, Proven};
pub use lcm::Lcm;
pub use money::{Advice, AdviseOptions, Prices, Spent, SpentOn, Usage, UsageReport};
pub use pages::{Checked, ExpandOptions, Expanded, Granted};
pub use portable::ImportReport;
pub use record::Recorder;
pub use turn::{Debt, MaintainReport, TurnOptions, TurnReport};
