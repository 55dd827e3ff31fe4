//! Pairing of tool calls with results: every kept call gets exactly one result, directly behind.
//!
//! In: turns with calls and results anywhere. Out: turns whose calls have ids that the dialect
//! accepts, with the results in [`Turn::answers`] and none among the blocks. A result is searched
//! first behind its call, then before. Neighbouring turns of the model are one message: where ids
//! are missing or equal, its calls are paired with results by order. A call without a result gets a
//! placeholder, and a result without a call becomes text.

use alloc::{borrow::Cow, collections::BTreeMap, format, string::String, vec::Vec};

use super::{
    RenderNote, RenderNotes,
    approvals::TurnApproval,
    normalize::{BlockBody, MISSING_JSON, Turn, TurnAnswer, TurnBlock},
    tool_output,
};
use lcm_text::{
    base::sort,
    message::{Role, is_unique_call_id, provider_limits},
    types::api::Dialect,
};

/// Characters of a replaced id that the new id keeps: enough to recognise the id in a log. With its
/// suffix, the new id has at most 40 characters, the limit of the strictest provider, as long as
/// seq and number have at most 22 digits together.
const ID_STEM_CHARACTERS: usize = 16;

/// Prefix of the text of a result that is not shown behind a call, for example because a summary
/// covers the call. Without it the model would read the output as its own words.
pub(super) const ORPHAN_PREFIX: &str = "[a tool returned this; its call is not shown]\n";

/// A call or a result in the turns.
struct ToolEvent {
    /// Index of the turn.
    turn: usize,
    /// Index of the block in the turn.
    block: usize,
    /// Place of the event in the list of all events.
    place: usize,
    /// Number of the message of the turn, as in [`number_messages`].
    message: usize,
    /// Id of the call; `None`: absent, and not assigned.
    id: Option<String>,
    name: String,
    is_call: bool,
    /// Whether the event is a call, or a result of a tool; false: the placeholder of a missing
    /// result that an earlier assembly wrote.
    is_real: bool,
    fate: CallFate,
}

/// Fate of a call: removed, or kept with the index of the event that answers the call (`None`: no
/// result).
#[derive(Clone, Copy, Default)]
enum CallFate {
    #[default]
    Removed,
    Kept(Option<usize>),
}

/// Pairs the calls and results of all turns. Returns the indexes of the entry of a call and of its
/// result, where the two differ.
pub(super) fn pair_calls(
    dialect: Dialect,
    turns: &mut Vec<Turn<'_>>,
    notes: &mut RenderNotes,
) -> Vec<(usize, usize)> {
    let messages = number_messages(turns);
    let mut events = collect_events(turns, &messages);
    assign_ids(turns, &mut events);
    let mut ids: BTreeMap<String, usize> = BTreeMap::new();
    // For each id, its events in order, and whether any is a call.
    let mut groups: Vec<(Vec<usize>, bool)> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let Some(id) = &event.id else { continue };
        let index = number_id(&mut ids, id);
        if index == groups.len() {
            groups.push((Vec::new(), false));
        }
        if let Some((group, is_called)) = groups.get_mut(index) {
            group.push(at);
            *is_called |= event.is_call;
        }
    }
    for (group, _) in &groups {
        for (call, answer) in select_calls(group, &events, turns) {
            if let Some(event) = events.get_mut(call) {
                event.fate = CallFate::Kept(answer);
            }
        }
    }
    let is_called =
        |id: &String| ids.get(id).and_then(|at| groups.get(*at)).is_some_and(|(_, called)| *called);
    let mut answers = take_answers(turns, &events);
    attach_answers(dialect, turns, &events, &mut answers, notes);
    let pairs = turns.iter().flat_map(|turn| {
        let others = turn.answers.iter().filter(|answer| answer.entry != turn.entry);
        others.map(|answer| (turn.entry, answer.entry))
    });
    let pairs = pairs.collect();
    for (event, answer) in events.iter().zip(answers) {
        let Some(answer) = answer else { continue };
        match &event.id {
            Some(id) if is_called(id) => notes.add_note(answer.entry, RenderNote::DuplicateResult),
            Some(_) if answer.is_real() => {
                replace_with_text(turns, event, &answer, RenderNote::OrphanResult, notes);
            }
            Some(_) => notes.add_note(answer.entry, RenderNote::DroppedEmpty),
            None => replace_with_text(turns, event, &answer, RenderNote::ResultAsText, notes),
        }
    }
    for turn in turns.iter_mut() {
        turn.blocks.retain(|block| match &block.body {
            BlockBody::Answer(_) => false,
            BlockBody::Call(call) => !call.id.is_empty(),
            _ => true,
        });
        // Other blocks of a `tool` message become a turn of the assistant.
        if turn.role == Role::Tool {
            turn.role = Role::Assistant;
            turn.native = None;
        }
    }
    move_answers_behind(dialect, turns);
    pairs
}

/// Returns for each turn the number of its message: turns of the model without a turn of others
/// between them are one message.
fn number_messages(turns: &[Turn<'_>]) -> Vec<usize> {
    let (mut count, mut is_open) = (0, false);
    let number = |turn: &Turn<'_>| {
        let is_model = turn.role == Role::Assistant;
        count += usize::from(!(is_model && is_open));
        is_open = is_model;
        count
    };
    turns.iter().map(number).collect()
}

/// Returns for each turn whether the next turn belongs to the same message of the model, so that
/// the results of both follow the next turn.
///
/// Where a message is an item, consecutive items of one response belong together. In the other
/// dialects, turns up to the last call do, if no result came between them. A message of
/// `openai-chat` takes in only turns that have nothing but calls.
fn find_continued(dialect: Dialect, turns: &[Turn<'_>]) -> Vec<bool> {
    let is_call = |block: &TurnBlock<'_>| matches!(block.body, BlockBody::Call(_));
    let mut out = Vec::new();
    let mut after: Option<&Turn<'_>> = None;
    // Whether a call stands in the following turn, or in turns that continue it.
    let mut leads_to_call = false;
    for turn in turns.iter().rev() {
        let is_model = turn.role == Role::Assistant && !turn.blocks.is_empty();
        let has_call = turn.blocks.iter().any(is_call);
        let is_continued = is_model
            && after.is_some_and(|next| {
                let came_later =
                    |answer: &TurnAnswer<'_>| answer.entry > next.entry || !answer.is_real();
                let is_bare = |block: &TurnBlock<'_>| match &block.body {
                    BlockBody::Text(text) => text.trim().is_empty(),
                    _ => is_call(block),
                };
                match dialect {
                    _ if dialect.has_items() && turn.is_item && next.is_item => {
                        // An item that holds its result had the result before the next item.
                        !turn.answers.iter().any(|one| one.entry == turn.entry && one.is_real())
                    }
                    // A framework has several messages of a model in one turn.
                    _ if dialect.is_framework() => false,
                    _ if !(leads_to_call && turn.answers.iter().all(came_later)) => false,
                    Dialect::OpenaiChat => has_call && next.blocks.iter().all(is_bare),
                    _ => true,
                }
            });
        out.push(is_continued);
        leads_to_call = is_model && (has_call || is_continued);
        after = Some(turn).filter(|_| is_model);
    }
    out.reverse();
    out
}

/// Moves the results of turns that belong to one message behind the last of these turns.
fn move_answers_behind(dialect: Dialect, turns: &mut [Turn<'_>]) {
    let mut moved: Vec<TurnAnswer<'_>> = Vec::new();
    let continued = find_continued(dialect, turns);
    for (turn, is_continued) in turns.iter_mut().zip(continued) {
        if is_continued {
            moved.append(&mut turn.answers);
        } else if !moved.is_empty() {
            moved.append(&mut turn.answers);
            turn.answers = core::mem::take(&mut moved);
            if dialect.has_items() {
                // The provider accepts any order: keep the order in which the results came.
                sort::sort_by(&mut turn.answers, &mut |a, b| a.entry.cmp(&b.entry));
            }
        }
    }
}

/// Collects the calls and results of all turns, in order; `messages` has the message of each turn.
fn collect_events(turns: &[Turn<'_>], messages: &[usize]) -> Vec<ToolEvent> {
    let mut out = Vec::new();
    for ((turn, Turn { role, blocks, .. }), message) in turns.iter().enumerate().zip(messages) {
        for (block, TurnBlock { body, .. }) in blocks.iter().enumerate() {
            let place = out.len();
            let event = |id: &Option<Cow<'_, str>>, name: &str, is_call, is_real| ToolEvent {
                turn,
                block,
                place,
                message: *message,
                id: id.as_deref().map(String::from),
                name: String::from(name),
                is_call,
                is_real,
                fate: CallFate::default(),
            };
            match body {
                BlockBody::Call(call) if *role == Role::Assistant => {
                    out.push(event(&call.given_id, &call.name, true, true));
                }
                BlockBody::Answer(answer) => {
                    out.push(event(&answer.given_id, &answer.name, false, answer.is_real()));
                }
                _ => {}
            }
        }
    }
    out
}

/// Assigns ids to calls without an id, and to results without an id the id of their call.
///
/// The call of such a result is in the newest message with calls before the result: the first call
/// there that no other result answers. If the result has a name, the call must have the same name.
fn assign_ids(turns: &[Turn<'_>], events: &mut [ToolEvent]) {
    let mut answered: BTreeMap<String, usize> = BTreeMap::new();
    for id in events.iter().filter(|event| !event.is_call).filter_map(|event| event.id.as_ref()) {
        answered.insert(id.clone(), 0);
    }
    // Id and name of the unanswered calls of the last message with calls.
    let mut open: Vec<(String, String)> = Vec::new();
    let mut open_message = usize::MAX;
    for event in events.iter_mut() {
        if event.is_call {
            let seq = turns.get(event.turn).map_or(0, |turn| turn.seq);
            let number = event.block;
            let id = event.id.get_or_insert_with(|| format!("call_{seq}_{number}"));
            if open_message != event.message {
                open_message = event.message;
                open.clear();
            }
            open.push((id.clone(), event.name.clone()));
        } else if event.id.is_none() {
            let fits = |(id, name): &(String, String)| {
                !answered.contains_key(id) && (event.name.is_empty() || event.name == *name)
            };
            if let Some(at) = open.iter().position(fits) {
                let (id, _) = open.remove(at);
                answered.insert(id.clone(), 0);
                event.id = Some(id);
            }
        }
    }
}

/// Returns the number of an id. Ids are numbered from 0 in the order of their first occurrence.
pub(super) fn number_id(ids: &mut BTreeMap<String, usize>, id: &str) -> usize {
    if let Some(number) = ids.get(id) {
        return *number;
    }
    let number = ids.len();
    ids.insert(id.into(), number);
    number
}

/// Selects the calls to keep among the events of one id, each with the event that answers it
/// (`None`: no result).
///
/// - Calls of one turn are answered in their order, also if they have one id. Calls with one short
///   id in several turns of a message are, too, if as many results follow the message.
/// - Otherwise an id that looks unique is unique: a second call repeats the first and is removed.
/// - A short id may return in later turns. There a second call with other arguments is another
///   call. A result then belongs to the nearest call before the result, because the first call may
///   have been interrupted.
/// - A second call with equal arguments is kept only if both calls have a result.
fn select_calls(
    group: &[usize],
    events: &[ToolEvent],
    turns: &[Turn<'_>],
) -> Vec<(usize, Option<usize>)> {
    let group: Vec<&ToolEvent> = group.iter().filter_map(|at| events.get(*at)).collect();
    let id = group.first().and_then(|event| event.id.as_deref()).unwrap_or_default();
    let is_reusable = !is_unique_call_id(id);
    let answered_messages = find_answered_messages(&group);
    let mut kept = Vec::new();
    // The calls that wait for results or have just got them, and a result before all calls.
    let (mut open, mut early): (Vec<OpenCall<'_>>, Option<&ToolEvent>) = (Vec::new(), None);
    for (position, event) in group.iter().enumerate() {
        let rest = group.get(position + 1..).unwrap_or_default();
        let Some(last) = open.last() else {
            match event.is_call {
                true => open.push((event, None)),
                false => improve_answer(&mut early, event),
            }
            continue;
        };
        if !event.is_call {
            let waits = open.iter_mut().position(|(_, answer)| answer.is_none());
            if let Some((_, answer)) = open.get_mut(waits.unwrap_or(0)) {
                improve_answer(answer, event);
            }
        } else if last.0.turn == event.turn
            || (is_reusable
                && last.0.message == event.message
                && answered_messages.binary_search(&event.message).is_ok())
        {
            open.push((event, None));
        } else {
            let mut next = rest.iter().take_while(|event| !event.is_call);
            let follows = next.any(|event| event.is_real);
            let is_answered =
                open.iter().all(|(_, answer)| answer.is_some_and(|answer| answer.is_real));
            if is_reusable && ((is_answered && follows) || !is_same_call(turns, last.0, event)) {
                keep_calls(turns, &mut open, early.take(), &mut kept);
                open.push((event, None));
            }
        }
    }
    keep_calls(turns, &mut open, early, &mut kept);
    let at = |event: &ToolEvent| event.place;
    kept.into_iter().map(|(call, answer)| (at(call), answer.map(at))).collect()
}

/// A call with the result that answers it; `None`: no result yet.
type OpenCall<'e> = (&'e ToolEvent, Option<&'e ToolEvent>);

/// Takes a result if none is known, or if the known one is a placeholder and this one is not.
fn improve_answer<'e>(known: &mut Option<&'e ToolEvent>, event: &'e ToolEvent) {
    if known.is_none_or(|known| !known.is_real && event.is_real) {
        *known = Some(event);
    }
}

/// Returns the messages whose calls in a group are followed by as many results, in ascending order.
fn find_answered_messages(group: &[&ToolEvent]) -> Vec<usize> {
    let mut out = Vec::new();
    let (mut message, mut calls, mut results) = (0, 0, 0);
    for event in group {
        if event.is_call {
            // A call behind results of its message: these do not follow all its calls.
            out.pop_if(|answered| *answered == event.message);
            calls = if event.message == message { calls + 1 } else { 1 };
            (message, results) = (event.message, 0);
        } else {
            results += 1;
            if results == calls {
                out.push(message);
            }
        }
    }
    out
}

/// Moves calls with their results from `open` to `kept`. An `early` result answers the first call
/// if that has no other. A call without a result that repeats the call before it is removed.
fn keep_calls<'e>(
    turns: &[Turn<'_>],
    open: &mut Vec<OpenCall<'e>>,
    early: Option<&'e ToolEvent>,
    kept: &mut Vec<OpenCall<'e>>,
) {
    if let (Some((_, answer)), Some(early)) = (open.first_mut(), early) {
        improve_answer(answer, early);
    }
    let mut before = None;
    for (call, answer) in core::mem::take(open) {
        let is_repeated = before.is_some_and(|before| is_same_call(turns, before, call));
        if answer.is_some() || !is_repeated {
            kept.push((call, answer));
        }
        before = Some(call);
    }
}

/// Returns whether two calls have the same name and arguments.
fn is_same_call(turns: &[Turn<'_>], one: &ToolEvent, other: &ToolEvent) -> bool {
    let content = |event: &ToolEvent| match &turns.get(event.turn)?.blocks.get(event.block)?.body {
        BlockBody::Call(call) => Some((&*call.name, call.input)),
        _ => None,
    };
    content(one) == content(other)
}

/// Copies the result of each event (`None`: a call), and marks the turns of results as emptied.
fn take_answers<'a>(turns: &mut [Turn<'a>], events: &[ToolEvent]) -> Vec<Option<TurnAnswer<'a>>> {
    let mut take = |event: &ToolEvent| {
        let turn = turns.get_mut(event.turn)?;
        let BlockBody::Answer(answer) = &turn.blocks.get(event.block)?.body else { return None };
        let answer = answer.clone();
        turn.is_emptied = true;
        Some(answer)
    };
    events.iter().map(&mut take).collect()
}

/// Sets the id of each kept call and attaches its result, or a placeholder.
fn attach_answers<'a>(
    dialect: Dialect,
    turns: &mut [Turn<'a>],
    events: &[ToolEvent],
    answers: &mut [Option<TurnAnswer<'a>>],
    notes: &mut RenderNotes,
) {
    // A call must not share its id with a server tool call.
    let mut used = BTreeMap::new();
    for block in turns.iter().flat_map(|turn| &turn.blocks) {
        if let BlockBody::ServerTool { id, .. } = &block.body {
            used.insert(String::from(&**id), 0);
        }
    }
    for event in events.iter().filter(|event| event.is_call) {
        let Some(turn) = turns.get_mut(event.turn) else { continue };
        let (entry, seq) = (turn.entry, turn.seq);
        let Some(BlockBody::Call(call)) =
            turn.blocks.get_mut(event.block).map(|block| &mut block.body)
        else {
            continue;
        };
        let CallFate::Kept(answered) = event.fate else {
            notes.add_note(entry, RenderNote::DuplicateCall);
            turn.is_emptied = true;
            continue;
        };
        call.id = accepted_call_id(dialect, event, seq, &mut used);
        let is_renamed = call.given_id.as_deref().is_some_and(|given| given != call.id);
        if is_renamed || provider_limits::sanitize_tool_name(dialect, &call.name) != call.name {
            notes.add_note(entry, RenderNote::RenamedCall);
        }
        // Gemini accepts calls without an id, and matches them by name and order.
        let is_bare = dialect == Dialect::Gemini && call.given_id.is_none();
        let id = if is_bare { String::new() } else { call.id.clone() };
        let name = call.name.clone();
        let found = answered.and_then(|at| answers.get_mut(at)).and_then(Option::take);
        let is_of_call = |it: &TurnApproval<'_>| call.given_id.as_ref() == Some(&it.call_id);
        if found.is_some() {
            turn.approvals.retain(|approval| !is_of_call(approval));
        } else if let Some(approval) = turn.approvals.iter_mut().find(|it| is_of_call(it)) {
            // The host runs a call that waits for its result.
            approval.call_id = Cow::Owned(call.id.clone());
            continue;
        } else {
            notes.add_note(entry, RenderNote::SyntheticResult);
        }
        let answer = found.unwrap_or_else(|| missing_answer(entry));
        if answer.has_lost_media {
            notes.add_note(answer.entry, RenderNote::BlockLeftOut);
        }
        turn.answers.push(TurnAnswer { id, name, ..answer });
    }
}

/// Returns the placeholder of a missing result.
fn missing_answer<'a>(entry: usize) -> TurnAnswer<'a> {
    TurnAnswer {
        entry,
        given_id: None,
        id: String::new(),
        name: Cow::Borrowed(""),
        output: MISSING_JSON,
        is_error: true,
        native: None,
        has_lost_media: false,
    }
}

/// Returns an id that the dialect accepts and that is not in `used`: the call's own id if possible.
/// Adds the id to `used`.
fn accepted_call_id(
    dialect: Dialect,
    event: &ToolEvent,
    seq: u64,
    used: &mut BTreeMap<String, usize>,
) -> String {
    let id = event.id.as_deref().unwrap_or_default();
    if provider_limits::is_valid_call_id(dialect, id) && used.insert(id.into(), 0).is_none() {
        return id.into();
    }
    let plain = |c: char| if provider_limits::is_name_character(c) { c } else { '_' };
    let stem: String = id.chars().take(ID_STEM_CHARACTERS).map(plain).collect();
    let mut number = event.block;
    loop {
        let id = format!("{stem}_{seq}_{number}");
        if used.insert(id.clone(), 0).is_none() {
            return id;
        }
        number += 1;
    }
}

/// Replaces the block of a result without a call by its text, and adds `note`.
fn replace_with_text(
    turns: &mut [Turn<'_>],
    event: &ToolEvent,
    found: &TurnAnswer<'_>,
    note: RenderNote,
    notes: &mut RenderNotes,
) {
    let Some(block) = turns.get_mut(event.turn).and_then(|turn| turn.blocks.get_mut(event.block))
    else {
        return;
    };
    notes.add_note(found.entry, note);
    let text = format!("{ORPHAN_PREFIX}{}", tool_output::join_text(found.output).0);
    *block = TurnBlock { body: BlockBody::Text(Cow::Owned(text)), native: None };
}
