//! Types of the public interface: arguments and results of the engine, and its requests to models.

pub mod api;
pub mod event;
pub mod model;
