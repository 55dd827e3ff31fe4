//! Implements the functions that the component imports: those of the store and of the model.
//!
//! In: calls of the component. Out: the answers of the store or the model of the handle. This
//! module checks no argument and repeats no call.

use std::time::Instant;

use serde_json::json;

use crate::{
    bindings::engine::{llm, store, types},
    clock::Cancel,
    error::Code,
    instance::{Commit, HostState},
    json::merge,
    store::{Guard, Put, Scan, StoreError},
};

impl types::Host for HostState {}

impl HostState {
    fn record(&self, line: impl FnOnce() -> serde_json::Value) {
        if let Some(recorder) = &self.recorder {
            recorder.line(&line());
        }
    }
}

fn wit_error(error: &StoreError) -> types::Error {
    let code = match error.code() {
        Code::Conflict => types::ErrorCode::Conflict,
        Code::Unsupported => types::ErrorCode::Unsupported,
        Code::WouldBlock => types::ErrorCode::WouldBlock,
        _ => types::ErrorCode::StoreUnavailable,
    };
    types::Error { code, message: error.to_string() }
}

fn bytes(value: Option<&Vec<u8>>) -> Option<usize> {
    value.map(Vec::len)
}

impl store::Host for HostState {
    fn get_many(&mut self, keys: Vec<String>) -> Result<Vec<Option<Vec<u8>>>, types::Error> {
        let answer = self.kv.get_many(&keys).map_err(|error| wit_error(&error));
        self.record(|| match &answer {
            Ok(values) => {
                let sizes: Vec<_> = values.iter().map(|value| bytes(value.as_ref())).collect();
                json!({"host_call": "store.get-many", "keys": keys, "bytes": sizes})
            }
            Err(error) => {
                json!({"host_call": "store.get-many", "keys": keys, "error": error.message})
            }
        });
        answer
    }

    fn scan(
        &mut self,
        start: String,
        end: String,
        reverse: bool,
        entries_max: u32,
        bytes_max: u32,
    ) -> Result<(Vec<store::Entry>, bool), types::Error> {
        let scan = Scan { start: &start, end: &end, reverse, entries_max, bytes_max };
        let answer = self.kv.scan(&scan).map_err(|error| wit_error(&error));
        self.record(|| {
            let call = json!({"host_call": "store.scan", "start": start, "end": end,
                "reverse": reverse, "entries_max": entries_max, "bytes_max": bytes_max});
            match &answer {
                Ok(page) => {
                    let keys: Vec<_> = page.entries.iter().map(|(key, _)| key).collect();
                    let sizes: Vec<_> = page.entries.iter().map(|(_, value)| value.len()).collect();
                    merge(call, json!({"keys": keys, "bytes": sizes, "more": page.more}))
                }
                Err(error) => merge(call, json!({"error": error.message})),
            }
        });
        let page = answer?;
        let entries =
            page.entries.into_iter().map(|(key, value)| store::Entry { key, value }).collect();
        Ok((entries, page.more))
    }

    fn commit(
        &mut self,
        guards: Vec<store::Guard>,
        puts: Vec<store::Put>,
    ) -> Result<(), types::Error> {
        let guards: Vec<Guard> =
            guards.into_iter().map(|guard| Guard { key: guard.key, value: guard.value }).collect();
        let puts: Vec<Put> =
            puts.into_iter().map(|put| Put { key: put.key, value: put.value }).collect();
        let answer = self.kv.commit(&guards, &puts);
        self.commit = match &answer {
            Ok(()) => Commit::Done,
            Err(StoreError::Conflict) => Commit::None,
            Err(StoreError::Unavailable(_)) => Commit::Unknown,
            Err(_) => Commit::NotBegun,
        };
        self.record(|| {
            let size = |key: &String, value: Option<&Vec<u8>>| json!([key, bytes(value)]);
            let guards: Vec<_> =
                guards.iter().map(|guard| size(&guard.key, guard.value.as_ref())).collect();
            let puts: Vec<_> = puts.iter().map(|put| size(&put.key, put.value.as_ref())).collect();
            let call = json!({"host_call": "store.commit", "guards": guards, "puts": puts});
            match &answer {
                Ok(()) => call,
                Err(error) => merge(call, json!({"error": error.to_string()})),
            }
        });
        answer.map_err(|error| wit_error(&error))
    }
}

impl llm::Host for HostState {
    fn complete(&mut self, request: types::CompletionRequest) -> types::CompletionResult {
        let started = Instant::now();
        let answer = self.model.complete(&request, &Cancel::default());
        let spent = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.model_ms = self.model_ms.saturating_add(spent).saturating_add(1);
        self.record(|| json!({"host_call": "llm.complete", "id": request.id}));
        answer
    }
}
