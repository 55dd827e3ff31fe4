//! Finds the failures of a source that an answer does not mention.
//!
//! Input: a source and an answer. Output: a finding for each failure that the answer omits or
//! reports as a success. The module `outcomes` classifies clauses, the parts of a line between
//! marks such as `.` and words such as `but`.

use alloc::vec::Vec;

use super::{
    finding::{Finding, FindingKind},
    outcomes::{ClauseOutcome, OutcomeLexicon, for_each_clause, parse_exit_success},
};
use crate::{
    base::sort,
    summary::{
        offline_summary::term_hash::fnv_hash,
        transcript::{self, EXPAND_PREFIX},
    },
};

/// Most failures that are kept while a source is read. A further failure replaces the oldest closed
/// failure, or the oldest failure if none is closed.
const FAILURES_MAX: usize = 64;
/// Most open failures that must be mentioned: the last failures, which show the latest state.
const REQUIRED_MAX: usize = 6;
/// Number of subject words with which a failed call takes no further words from its output.
const KEYS_MAX: usize = 48;
/// Number of lines at the beginning of a tool's error that are read as its cause.
const ERROR_LINES: usize = 3;
/// Number of characters at the beginning of a line in which [`ERROR_REPORT_MARKERS`] are searched.
const REPORT_BYTES: usize = 60;

/// Tools and commands that search; an empty result of a search is no failure.
#[rustfmt::skip]
const LOOKUP_COMMANDS: [&str; 40] = [
    "read", "view", "open", "search", "grep", "list", "ls", "find", "cat", "glob", "rg", "head",
    "tail", "sed", "awk", "less", "cd", "pwd", "wc", "diff", "which", "tree", "stat", "file",
    "read_file", "view_file", "open_file", "list_dir", "list_files", "search_file", "search_dir",
    "find_file", "grep_search", "search_files", "goto", "scroll_down", "scroll_up", "echo",
    "get_symbols", "think",
];
/// Strings of which a line has one near its beginning if the line reports an error of a program.
const ERROR_REPORT_MARKERS: [&str; 8] = [
    "rror: ",
    "xception: ",
    "atal: ",
    "raceback (most recent",
    "command not found",
    "ermission denied",
    "npm ERR!",
    "egmentation fault",
];

/// One failure of the source.
#[derive(Debug)]
struct SourceFailure<'a> {
    outcome: ClauseOutcome,
    /// Hashes of the subject's words, ascending.
    keys: Vec<u64>,
    /// [`PendingToolCall::fingerprint`] of the call that failed; 0: the failure is only stated, or
    /// the call is unknown.
    call_fingerprint: u64,
    /// The line or clause of the source that reports the failure.
    quote: &'a str,
    /// Whether the source has no later attempt of the failed call, and reports no later success of
    /// the subject.
    is_open: bool,
}

/// Returns findings for the last [`REQUIRED_MAX`] open failures of a source, as far as an answer
/// does not mention them.
pub(super) fn find_unmentioned_failures(source: &str, answer: &str) -> Vec<Finding> {
    let lexicon = OutcomeLexicon::new();
    let mut reader = FailureReader::new(&lexicon);
    source.lines().for_each(|line| reader.read_line(line.trim_end()));
    reader.close_output();
    let failures = reader.failures;
    let open = failures.iter().filter(|failure| failure.is_open).count();
    if open == 0 {
        return Vec::new();
    }
    let clauses = read_answer_clauses(&lexicon, answer);
    let covered = find_mentioned(&failures, &clauses);
    let skipped = open.saturating_sub(REQUIRED_MAX);
    failures
        .iter()
        .zip(covered)
        .filter(|(failure, _)| failure.is_open)
        .skip(skipped)
        .filter(|(_, covered)| !covered)
        .map(|(failure, _)| build_finding(failure, &clauses))
        .collect()
}

fn build_finding(failure: &SourceFailure<'_>, clauses: &[AnswerClause<'_>]) -> Finding {
    let best = clauses
        .iter()
        .filter(|clause| clause.outcome.is_pure_success())
        .map(|clause| (count_shared_keys(&failure.keys, &clause.keys), clause.text))
        .fold((0, ""), |best, next| if next.0 > best.0 { next } else { best });
    match best {
        (0, _) => Finding::new(FindingKind::FailureDropped, failure.quote),
        (_, text) => Finding::new(FindingKind::FailureInverted, text),
    }
}

/// A clause of the answer.
#[derive(Debug)]
struct AnswerClause<'a> {
    text: &'a str,
    outcome: ClauseOutcome,
    keys: Vec<u64>,
}

fn read_answer_clauses<'a>(lexicon: &OutcomeLexicon, answer: &'a str) -> Vec<AnswerClause<'a>> {
    let mut list: Vec<AnswerClause<'a>> = Vec::new();
    for line in answer.lines().filter(|line| !line.starts_with(EXPAND_PREFIX)) {
        let line = transcript::parse_inline_header(line).map_or(line, |(_, text)| text);
        for_each_clause(line, &mut |text, goes_on| {
            let mut keys = Vec::new();
            let outcome = lexicon.read_clause(text, &mut keys);
            if keys.is_empty()
                && goes_on
                && let Some(last) = list.last()
            {
                keys.clone_from(&last.keys);
            }
            list.push(AnswerClause { text: text.trim(), outcome, keys });
        });
    }
    list
}

/// Returns for each failure whether a clause mentions it.
///
/// A clause about failure mentions the failures with which it shares the most subject words, and
/// the failures with at least half as many shared words. A clause that shares no word with any
/// failure mentions all failures of its kinds. If its kind is known, the clause also mentions the
/// failures of unknown kind.
fn find_mentioned(failures: &[SourceFailure<'_>], clauses: &[AnswerClause<'_>]) -> Vec<bool> {
    let mut covered = alloc::vec![false; failures.len()];
    let mut loose: Vec<&AnswerClause<'_>> = Vec::new();
    for clause in clauses.iter().filter(|clause| clause.outcome.mentions_failure()) {
        let shares: Vec<usize> =
            failures.iter().map(|failure| count_shared_keys(&failure.keys, &clause.keys)).collect();
        let most = shares.iter().copied().max().unwrap_or(0);
        if most == 0 {
            loose.push(clause);
            continue;
        }
        for (flag, share) in covered.iter_mut().zip(shares) {
            *flag |= share > 0 && share * 2 >= most;
        }
    }
    for clause in loose {
        for (flag, failure) in covered.iter_mut().zip(failures) {
            let kinds = failure.outcome.failure_kinds & clause.outcome.failure_kinds;
            *flag |= kinds != 0
                || (clause.outcome.failure_kinds != 0 && failure.outcome.failure_kinds == 0);
        }
    }
    covered
}

/// Counts the keys that two ascending lists share.
fn count_shared_keys(left: &[u64], right: &[u64]) -> usize {
    let (few, many) = if left.len() < right.len() { (left, right) } else { (right, left) };
    few.iter().filter(|key| many.binary_search(key).is_ok()).count()
}

/// A tool call without its result yet.
#[derive(Clone, Debug, Default)]
struct PendingToolCall {
    /// Hash of the tool's name.
    name: u64,
    /// Hash of the tool's name and the first words of its command, equal for repeated attempts; 0:
    /// the call is unknown.
    fingerprint: u64,
    /// Hashes of the words of the call.
    keys: Vec<u64>,
    /// Whether the call only searches or reads, so that its result is never a failure.
    is_lookup: bool,
}

/// A tool result while its lines are read.
#[derive(Debug)]
struct OpenToolResult<'a> {
    call: PendingToolCall,
    /// The line that reports the failure, with its outcome; `None`: no line reports a failure.
    failing_line: Option<(&'a str, ClauseOutcome)>,
    /// Whether the source marks the result as an error.
    is_error: bool,
    /// Whether a line reports a success.
    is_ok: bool,
    /// Number of lines so far.
    lines: usize,
}

struct FailureReader<'l, 'a> {
    lexicon: &'l OutcomeLexicon,
    failures: Vec<SourceFailure<'a>>,
    calls: Vec<PendingToolCall>,
    output: Option<OpenToolResult<'a>>,
    /// Whether the lines come from a summary or have no header, so that each line may have an
    /// inline header.
    is_summary: bool,
    is_tool: bool,
    /// Subject of the previous clause or result with a subject.
    last_keys: Vec<u64>,
}

impl<'l, 'a> FailureReader<'l, 'a> {
    fn new(lexicon: &'l OutcomeLexicon) -> Self {
        Self {
            lexicon,
            failures: Vec::new(),
            calls: Vec::new(),
            output: None,
            is_summary: true,
            is_tool: false,
            last_keys: Vec::new(),
        }
    }

    fn read_line(&mut self, line: &'a str) {
        if let Some(header) = transcript::parse_block_header(line) {
            self.is_summary = header.role.is_empty();
            self.open_block(header.role);
            return;
        }
        let mut line = line.trim();
        if let Some((header, text)) =
            transcript::parse_inline_header(line).filter(|_| self.is_summary)
        {
            self.open_block(header.role);
            line = text.trim();
        }
        if line.is_empty()
            || line.starts_with(EXPAND_PREFIX)
            || transcript::is_truncation_note(line)
        {
            return;
        }
        if let Some(call) = line.strip_prefix("tool call ") {
            self.close_output();
            let call = self.parse_call(call);
            self.calls.push(call);
            return;
        }
        let label = line.strip_suffix(':').and_then(|label| {
            let result = label.strip_prefix("tool result").map(|name| (name, false));
            result.or_else(|| label.strip_prefix("tool error").map(|name| (name, true)))
        });
        if let Some((name, is_error)) = label {
            self.close_output();
            let call = self.take_pending_call(name.trim());
            let (failing_line, is_ok, lines) = (None, false, 0);
            self.output = Some(OpenToolResult { call, failing_line, is_error, is_ok, lines });
            if is_error {
                self.record_output_failure(line, ClauseOutcome::default());
            }
            return;
        }
        if self.output.is_some() { self.read_output_line(line) } else { self.read_statement(line) }
    }

    fn open_block(&mut self, role: &str) {
        self.close_output();
        self.is_tool = role == "tool";
        if role == "user" {
            self.last_keys.clear();
        }
        if self.is_tool && self.is_summary {
            // An extract of a result; its call is unknown.
            let (failing_line, is_error, is_ok, lines) = (None, false, false, 0);
            self.output = Some(OpenToolResult {
                call: PendingToolCall::default(),
                failing_line,
                is_error,
                is_ok,
                lines,
            });
        }
    }

    fn parse_call(&self, text: &str) -> PendingToolCall {
        let (name, input) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        let command = ["\"command\":\"", "\"cmd\":\"", "\"script\":\"", "\"code\":\""]
            .iter()
            .find_map(|key| input.split_once(key).map(|(_, command)| command));
        let (head, second) = split_command(command.unwrap_or(""));
        let mut keys = Vec::new();
        self.lexicon.read_clause(name, &mut keys);
        let input = command.unwrap_or(input);
        let input =
            input.char_indices().nth(400).map_or(input, |(end, _)| input.get(..end).unwrap_or(""));
        self.lexicon.read_clause(input, &mut keys);
        keys.truncate(KEYS_MAX);
        let looks =
            |word: &str| LOOKUP_COMMANDS.iter().any(|marker| marker.eq_ignore_ascii_case(word));
        let is_looking = looks(head)
            || looks(name)
            || (head == "git" && matches!(second, "log" | "show" | "diff" | "grep" | "status"));
        let name = fnv_hash(name.as_bytes());
        let call = name
            ^ fnv_hash(head.as_bytes()).rotate_left(1)
            ^ fnv_hash(second.as_bytes()).rotate_left(2);
        PendingToolCall { name, fingerprint: call.max(1), keys, is_lookup: is_looking }
    }

    /// Takes the first pending call with this name; without such a call, makes a call from `name`.
    fn take_pending_call(&mut self, name: &str) -> PendingToolCall {
        let key = fnv_hash(name.as_bytes());
        let found = self.calls.iter().position(|call| call.name == key);
        match found {
            Some(at) => self.calls.remove(at),
            None => self.parse_call(name),
        }
    }

    fn read_output_line(&mut self, line: &'a str) {
        let Some(output) = &mut self.output else { return };
        output.lines += 1;
        if output.call.is_lookup {
            return;
        }
        if let Some(is_zero) = parse_exit_success(line) {
            output.is_ok |= is_zero;
            if !is_zero {
                let mut keys = Vec::new();
                let outcome = self.lexicon.read_clause(line, &mut keys);
                self.record_output_failure(line, outcome);
            }
            return;
        }
        let report = line
            .char_indices()
            .nth(REPORT_BYTES)
            .map_or(line, |(end, _)| line.get(..end).unwrap_or(line));
        let reported = ERROR_REPORT_MARKERS.iter().any(|marker| report.contains(marker));
        let lexicon = self.lexicon;
        let mut failed = reported.then(ClauseOutcome::default);
        let mut is_ok = false;
        for_each_clause(line, &mut |clause, _| {
            let mut keys = Vec::new();
            let outcome = lexicon.read_clause(clause, &mut keys);
            if outcome.is_failure() {
                failed = Some(outcome);
            }
            is_ok |= outcome.is_pure_success();
        });
        let is_first = self.output.as_ref().is_some_and(|o| o.is_error && o.lines <= ERROR_LINES);
        if let Some(outcome) = failed.or(is_first.then(ClauseOutcome::default)) {
            self.record_output_failure(line, outcome);
        } else if let Some(output) = &mut self.output {
            output.is_ok |= is_ok;
        }
    }

    fn record_output_failure(&mut self, line: &'a str, outcome: ClauseOutcome) {
        let Some(output) = &mut self.output else { return };
        // The first line with a cause is kept; the label `tool error` names no cause.
        let is_label =
            output.failing_line.is_some_and(|(first, _)| first.starts_with("tool error"));
        if output.failing_line.is_none() || is_label {
            output.failing_line = Some((line, outcome));
        }
        let keys = &mut output.call.keys;
        if keys.len() < KEYS_MAX {
            self.lexicon.read_clause(line, keys);
        }
    }

    /// Ends a result: records the failure of its call, or its success.
    fn close_output(&mut self) {
        let Some(output) = self.output.take() else { return };
        let OpenToolResult { call, mut failing_line, is_error, is_ok, lines } = output;
        if call.is_lookup {
            return;
        }
        if is_error && lines > 0 && failing_line.is_none() {
            failing_line = Some(("tool error", ClauseOutcome::default()));
        }
        self.last_keys.clone_from(&call.keys);
        let is_call_known = call.fingerprint != 0;
        for failure in self
            .failures
            .iter_mut()
            .filter(|f| is_call_known && f.call_fingerprint == call.fingerprint)
        {
            // Of several attempts, only the last attempt counts.
            failure.is_open = false;
        }
        match failing_line {
            Some((quote, outcome)) => {
                let (keys, call) = (call.keys, call.fingerprint);
                self.push_failure(SourceFailure {
                    outcome,
                    keys,
                    call_fingerprint: call,
                    quote,
                    is_open: true,
                });
            }
            None if is_ok => self.resolve_failures(&call.keys, false),
            None => {}
        }
    }

    fn push_failure(&mut self, failure: SourceFailure<'a>) {
        if self.failures.len() == FAILURES_MAX {
            let closed = self.failures.iter().position(|failure| !failure.is_open);
            self.failures.remove(closed.unwrap_or(0));
        }
        self.failures.push(failure);
    }

    /// Closes the failures that share enough subject words with a success. Enough are three words,
    /// or more than half of the words of the shorter subject. For a success of everything
    /// (`is_general`), one word is enough.
    fn resolve_failures(&mut self, keys: &[u64], is_general: bool) {
        for failure in &mut self.failures {
            let shared = count_shared_keys(&failure.keys, keys);
            let least = failure.keys.len().min(keys.len());
            failure.is_open &= !(shared >= 3 || shared * 2 > least || (is_general && shared > 0));
        }
    }

    /// Records a failure that a text states. If exactly one open failure of a call shares subject
    /// words, the statement is added to this failure; otherwise the statement is a new failure.
    fn record_stated_failure(
        &mut self,
        quote: &'a str,
        outcome: ClauseOutcome,
        mut keys: Vec<u64>,
    ) {
        let refers = ["It ", "They ", "This ", "That ", "Both "];
        if keys.is_empty() || refers.iter().any(|word| quote.starts_with(word)) {
            keys.extend_from_slice(&self.last_keys);
            sort::sort_and_dedup_numbers(&mut keys);
        }
        self.last_keys.clone_from(&keys);
        let is_same = |failure: &&mut SourceFailure<'a>| {
            failure.is_open
                && failure.call_fingerprint != 0
                && count_shared_keys(&failure.keys, &keys) > 0
        };
        let mut same = self.failures.iter_mut().filter(is_same);
        if let (Some(failure), None) = (same.next(), same.next()) {
            failure.outcome.failure_kinds |= outcome.failure_kinds;
            failure.keys.extend_from_slice(&keys);
            sort::sort_and_dedup_numbers(&mut failure.keys);
            return;
        }
        self.push_failure(SourceFailure {
            outcome,
            keys,
            call_fingerprint: 0,
            quote,
            is_open: true,
        });
    }

    fn read_statement(&mut self, line: &'a str) {
        let lexicon = self.lexicon;
        let mut sentence: Vec<(&'a str, ClauseOutcome, Vec<u64>)> = Vec::new();
        for_each_clause(line, &mut |clause, _| {
            let mut keys = Vec::new();
            let outcome = lexicon.read_clause(clause, &mut keys);
            sentence.push((clause, outcome, keys));
        });
        for (clause, outcome, keys) in sentence {
            // An assignment is code and reports no outcome.
            if outcome.is_failure() && !clause.contains(" = ") {
                self.record_stated_failure(clause.trim(), outcome, keys);
                continue;
            }
            if outcome.is_pure_success() {
                if !keys.is_empty() {
                    self.resolve_failures(&keys, outcome.is_general);
                } else if outcome.is_general {
                    self.failures.iter_mut().for_each(|failure| failure.is_open = false);
                } else if let Some(last) = self.failures.last_mut() {
                    last.is_open = false;
                }
            }
            if !keys.is_empty() {
                self.last_keys = keys;
            }
        }
    }
}

/// Returns the program that a command line runs, and its first argument; an argument that does not
/// begin with a letter is returned empty.
fn split_command(command: &str) -> (&str, &str) {
    let command = command.trim_start();
    let mut rest = command;
    // Commands before the last `&&` only prepare the last command.
    if let Some((_, last)) = rest.rsplit_once("&& ") {
        rest = last;
    }
    let mut words = rest.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\\' | ';' | '|'));
    let is_program = |word: &&str| {
        !word.is_empty() && !word.contains('=') && !matches!(*word, "sudo" | "time" | "timeout")
    };
    let program = words.find(is_program).unwrap_or("");
    let second = words.next().unwrap_or("");
    let is_word = second.starts_with(|c: char| c.is_ascii_alphabetic());
    (program, if is_word { second } else { "" })
}
