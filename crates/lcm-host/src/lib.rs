//! The wasmtime reference host of `lcm.wasm`, as a library.
//!
//! In: the bytes of the component, a store and a model. Out: [`Lcm`]; its typed methods call
//! exported functions, [`Lcm::call_json`] calls any of them by name. Loops over several calls are
//! [`Lcm::ingest`], [`Lcm::turn`], [`Lcm::compact`], [`Lcm::ask`], [`Lcm::answer_tool_call`], and
//! methods that read all pages of a list. The component makes every decision about conversations.
//!
//! [`Lcm::open`] uses the defaults, [`Lcm::builder`] changes them, and a [`Conversation`] binds an
//! id to its budget and dialect:
//!
//! ```
//! use lcm_host::{Lcm, types::Dialect};
//!
//! let lcm = Lcm::open("memory:", include_bytes!("../../../dist/lcm.wasm"))?;
//! let chat = lcm.conversation("chat-1", 200_000).dialect(Dialect::Anthropic);
//! chat.turn(&[r#"{"role": "user", "content": "hello"}"#])?;
//! let context = chat.assemble()?; // send this context to the model, then append the answer
//! assert!(context.messages_json.contains("hello"));
//! # Ok::<(), lcm_host::Error>(())
//! ```
//!
//! # Many conversations, many threads
//!
//! A handle may be used from any thread. Its calls of the component run one after another, each for
//! microseconds to milliseconds. Only [`Lcm::run`] and [`Lcm::ask_run`] keep other calls waiting
//! while a model works. A [`Pool`] has several handles on the same data, and gives each
//! conversation one of them. [`Limits`] bound an instance: a call that exceeds a limit fails, and
//! the next call gets a new instance.
//!
//! # Without blocking
//!
//! Calls block on the store, and calls such as [`Lcm::compact`] on the model. For programs that
//! must not block, [`Lcm::background`] and [`Conversation::background`] return futures for any
//! runtime. A [`CompletionProvider`](completion::CompletionProvider) blocks until its model has
//! answered; for an asynchronous model it can call `block_on` of a runtime's handle.
//!
//! # Events
//!
//! The library emits events of [`tracing`] with the target `lcm`: messages stored, models called,
//! summaries made and rejected. `docs/events.md` lists the kinds. Each task is a span with its
//! `conversation`; the calls of models belong to the span.
//!
//! # Stores
//!
//! [`store::Sqlite`], [`store::Memory`], and any implementation of [`store::KeyValueStore`]. The
//! feature `postgres` adds a PostgreSQL database, for processes on many machines.

mod ask;
mod background;
mod bindings;
mod branches;
mod builder;
mod calls;
mod clock;
mod compaction;
mod component;
mod conversation;
mod digest;
mod drive;
mod dynamic;
mod error;
mod events;
mod host_calls;
mod ingest;
mod instance;
mod json;
mod lcm;
mod memory;
mod money;
mod pages;
mod pool;
mod portable;
mod record;
mod settings;
mod time_zone;
mod tools;
mod turn;
mod verbs;

pub mod completion;
pub mod session_files;
pub mod shapes;
pub mod store;

pub use ask::{AskOptions, AskReport};
pub use background::Running;
pub use bindings::{context, ingestion, types, work};
pub use branches::SessionMessages;
pub use builder::Builder;
pub use clock::{Cancel, Clock};
pub use compaction::{CompactOptions, CompactReport, CompactStatus, Pass, model_option};
pub use component::{Component, Limits, LoadOptions};
pub use conversation::Conversation;
pub use error::{Code, Error, Result};
pub use ingest::{IngestError, IngestOptions, IngestReport};
pub use lcm::Lcm;
pub use money::{AdviseOptions, UsageReport};
pub use pages::{Checked, ExpandOptions, Expanded};
pub use pool::Pool;
pub use portable::ImportReport;
pub use record::Recorder;
pub use settings::Settings;
pub use shapes::{
    AdviseAnswer, AskStatus, DeferredCompaction, DeletionResult, GrantCharge, ModelFailure,
    TokenPrices, UsagePurpose, UsageSum, UsageTotals, Withdrawal, WithdrawnId,
};
pub use tools::ToolCall;
pub use turn::{FamilyReport, MaintainReport, MemberReport, TurnOptions, TurnReport};

// Compiles and runs the Rust program of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
