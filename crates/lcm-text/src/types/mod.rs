//! Types of the public interface: arguments and results of the engine, and the model import.

pub mod api;
pub mod model;
