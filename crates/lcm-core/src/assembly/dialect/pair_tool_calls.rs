//! Calls and results find each other, so that every call is answered at once and by one result.
//!
//! In: turns with calls and results anywhere. Out: turns whose calls have ids that the dialect
//! accepts, each with its answer in [`Turn::answers`]; no results are left among the blocks.
//! A result is looked for behind its call first, then before it, in everything that was chosen.

use alloc::{borrow::Cow, collections::BTreeMap, format, string::String, vec::Vec};

use super::{
    RenderNote, RenderNotes,
    normalize::{BlockBody, MISSING_JSON, Turn, TurnAnswer, TurnBlock},
    tool_output,
};
use lcm_text::{
    base::sort,
    message::{Role, is_unique_call_id, provider_limits},
    types::api::Dialect,
};

/// Characters of an id that is replaced which stay in the new one: enough to know it again in a
/// log, and with what is added below the 40 characters that the strictest provider takes.
const ID_STEM_CHARACTERS: usize = 16;

/// Stands before the text of a result whose call is not in the context, which may be in a summary.
const ORPHAN_PREFIX: &str = "[a tool returned this; its call is not shown]\n";

/// A call or a result.
struct ToolEvent {
    turn: usize,
    block: usize,
    id: Option<String>,
    name: String,
    is_call: bool,
    is_real: bool,
}

/// What becomes of a call: removed, or kept with the event that answers it.
#[derive(Clone, Copy, Default)]
enum CallFate {
    #[default]
    Removed,
    Kept(Option<usize>),
}

/// Pairs the calls and results of all turns; returns the entries of a call and of its result, where
/// they are two.
pub(super) fn pair_calls(
    dialect: Dialect,
    turns: &mut Vec<Turn<'_>>,
    notes: &mut RenderNotes,
) -> Vec<(usize, usize)> {
    let mut events = collect_events(turns);
    assign_ids(turns, &mut events);
    let mut ids: BTreeMap<String, usize> = BTreeMap::new();
    // The events of each id, and whether one of them is a call.
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
    let mut fates: Vec<CallFate> = Vec::new();
    fates.resize_with(events.len(), CallFate::default);
    for (group, _) in &groups {
        let first = group.first().and_then(|at| events.get(*at));
        if let Some(id) = first.and_then(|event| event.id.as_deref()) {
            decide_fates(id, group, &events, turns, &mut fates);
        }
    }
    let is_called =
        |id: &String| ids.get(id).and_then(|at| groups.get(*at)).is_some_and(|(_, called)| *called);
    let mut answers = take_answers(turns, &events);
    settle_calls(dialect, turns, &events, &fates, &mut answers, notes);
    let pairs = turns.iter().flat_map(|turn| {
        let apart = turn.answers.iter().filter(|answer| answer.entry != turn.entry);
        apart.map(|answer| (turn.entry, answer.entry))
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
        // What a tool says beside its results is said by the assistant that called it.
        if turn.role == Role::Tool {
            turn.role = Role::Assistant;
            turn.native = None;
        }
    }
    // Chat Completions has the results of a message right behind it.
    if dialect != Dialect::OpenaiChat {
        move_answers_behind(dialect, turns);
    }
    pairs
}

/// Moves the answers of items behind the last item that its response put out before them.
fn move_answers_behind(dialect: Dialect, turns: &mut [Turn<'_>]) {
    let mut moved: Vec<TurnAnswer<'_>> = Vec::new();
    let mut follows = turns
        .iter()
        .skip(1)
        .map(|turn| turn.is_item && turn.role == Role::Assistant && !turn.blocks.is_empty());
    let follows: Vec<bool> = turns
        .iter()
        .map(|turn| {
            let next = follows.next().unwrap_or(false);
            next && turn.is_item && turn.role == Role::Assistant && !turn.blocks.is_empty()
        })
        .collect();
    for (turn, goes_on) in turns.iter_mut().zip(follows) {
        if goes_on {
            moved.append(&mut turn.answers);
        } else if !moved.is_empty() {
            moved.append(&mut turn.answers);
            turn.answers = core::mem::take(&mut moved);
            if dialect == Dialect::OpenaiResponses {
                // Their order is free, and the one in which they came is the tool's.
                sort::sort_by(&mut turn.answers, &mut |a, b| a.entry.cmp(&b.entry));
            }
        }
    }
}

fn collect_events(turns: &[Turn<'_>]) -> Vec<ToolEvent> {
    let mut out = Vec::new();
    for (turn, Turn { role, blocks, .. }) in turns.iter().enumerate() {
        for (block, TurnBlock { body, .. }) in blocks.iter().enumerate() {
            let event = |id: &Option<Cow<'_, str>>, name: &str, is_call, is_real| ToolEvent {
                turn,
                block,
                id: id.as_deref().map(String::from),
                name: String::from(name),
                is_call,
                is_real,
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

/// Names calls without an id, and gives results without one to a call of the turn before them that
/// no other result answers: of the same name if they have one, else in order.
fn assign_ids(turns: &[Turn<'_>], events: &mut [ToolEvent]) {
    let mut answered: BTreeMap<String, usize> = BTreeMap::new();
    for id in events.iter().filter(|event| !event.is_call).filter_map(|event| event.id.as_ref()) {
        answered.insert(id.clone(), 0);
    }
    // The calls of the last turn that has some: id and name.
    let mut open: Vec<(String, String)> = Vec::new();
    let mut open_turn = usize::MAX;
    for event in events.iter_mut() {
        if event.is_call {
            let seq = turns.get(event.turn).map_or(0, |turn| turn.seq);
            let number = event.block;
            let id = event.id.get_or_insert_with(|| format!("call_{seq}_{number}"));
            if open_turn != event.turn {
                open_turn = event.turn;
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

/// The number of an id: they are counted in the order of their first occurrence.
pub(super) fn number_id(ids: &mut BTreeMap<String, usize>, id: &str) -> usize {
    if let Some(number) = ids.get(id) {
        return *number;
    }
    let number = ids.len();
    ids.insert(id.into(), number);
    number
}

/// Decides the fates of the calls of one id.
///
/// Ids that look unique are: a second call is the first one again. Short ids come again in later
/// turns. There a second call that says something else is another one, and what returns belongs to
/// the nearest call before it: the first may have been broken off without a result. One that says
/// the same counts when the first is answered before it and it is answered itself.
fn decide_fates(
    id: &str,
    group: &[usize],
    events: &[ToolEvent],
    turns: &[Turn<'_>],
    fates: &mut [CallFate],
) {
    let is_weak = !is_unique_call_id(id);
    let event = |at: usize| events.get(at);
    let is_real = |at: usize| event(at).is_some_and(|event| event.is_real);
    let better = |slot: &mut Option<usize>, at: usize| {
        if slot.is_none_or(|known| !is_real(known) && is_real(at)) {
            *slot = Some(at);
        }
    };
    let mut settle = |call: usize, answer: Option<usize>| {
        if let Some(fate) = fates.get_mut(call) {
            *fate = CallFate::Kept(answer);
        }
    };
    let (mut current, mut answer, mut early) = (None, None, None);
    for (position, &at) in group.iter().enumerate() {
        let is_call = event(at).is_some_and(|event| event.is_call);
        match (is_call, current) {
            (true, None) => current = Some(at),
            (true, Some(call)) => {
                let follows = group
                    .iter()
                    .skip(position + 1)
                    .take_while(|&&next| event(next).is_some_and(|event| !event.is_call))
                    .any(|&next| is_real(next));
                let is_answered = answer.is_some_and(is_real);
                if is_weak && ((is_answered && follows) || !is_same_call(turns, events, call, at)) {
                    settle(call, answer.or_else(|| early.take()));
                    (current, answer) = (Some(at), None);
                }
            }
            (false, Some(_)) => better(&mut answer, at),
            (false, None) => better(&mut early, at),
        }
    }
    if let Some(call) = current {
        if let Some(early) = early {
            better(&mut answer, early);
        }
        settle(call, answer);
    }
}

/// Whether two calls ask for the same.
fn is_same_call(turns: &[Turn<'_>], events: &[ToolEvent], one: usize, other: usize) -> bool {
    let said = |at: usize| {
        let event = events.get(at)?;
        match &turns.get(event.turn)?.blocks.get(event.block)?.body {
            BlockBody::Call(call) => Some((&*call.name, call.input)),
            _ => None,
        }
    };
    said(one) == said(other)
}

/// Takes the results out of the turns, in the order of the events.
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

/// Gives the kept calls their ids and answers.
fn settle_calls<'a>(
    dialect: Dialect,
    turns: &mut [Turn<'a>],
    events: &[ToolEvent],
    fates: &[CallFate],
    answers: &mut [Option<TurnAnswer<'a>>],
    notes: &mut RenderNotes,
) {
    // No id of a call is that of one which the provider answers itself.
    let mut used = BTreeMap::new();
    for block in turns.iter().flat_map(|turn| &turn.blocks) {
        if let BlockBody::ServerTool { id, .. } = &block.body {
            used.insert(String::from(&**id), 0);
        }
    }
    for (event, fate) in events.iter().zip(fates).filter(|(event, _)| event.is_call) {
        let Some(turn) = turns.get_mut(event.turn) else { continue };
        let (entry, seq) = (turn.entry, turn.seq);
        let Some(BlockBody::Call(call)) =
            turn.blocks.get_mut(event.block).map(|block| &mut block.body)
        else {
            continue;
        };
        let CallFate::Kept(answered) = *fate else {
            notes.add_note(entry, RenderNote::DuplicateCall);
            turn.is_emptied = true;
            continue;
        };
        call.id = accepted_call_id(dialect, event, seq, &mut used);
        let is_renamed = call.given_id.as_deref().is_some_and(|given| given != call.id);
        if is_renamed || provider_limits::sanitize_tool_name(dialect, &call.name) != call.name {
            notes.add_note(entry, RenderNote::RenamedCall);
        }
        // Gemini takes calls without an id, by their names and order.
        let is_bare = dialect == Dialect::Gemini && call.given_id.is_none();
        let id = if is_bare { String::new() } else { call.id.clone() };
        let name = call.name.clone();
        let found = answered.and_then(|at| answers.get_mut(at)).and_then(Option::take);
        if found.is_none() {
            notes.add_note(entry, RenderNote::SyntheticResult);
        }
        let answer = found.unwrap_or_else(|| missing_answer(entry));
        if answer.has_lost_media {
            notes.add_note(answer.entry, RenderNote::BlockLeftOut);
        }
        turn.answers.push(TurnAnswer { id, name, ..answer });
    }
}

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

/// The id of a call as the dialect takes it: its own if that will do and no earlier call has it.
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

/// Puts a result without a call in its place as text.
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
    let (mut text, _) = tool_output::text(found.output);
    if note == RenderNote::OrphanResult {
        text = format!("{ORPHAN_PREFIX}{text}");
    }
    *block = TurnBlock { body: BlockBody::Text(Cow::Owned(text)), native: None };
}
