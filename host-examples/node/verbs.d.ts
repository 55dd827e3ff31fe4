// Options of what reads, and options and results of what counts money and answers. index.d.ts has
// all of them.

import type { CompletionFailure, Failure, Granted, Timed } from "./index.js";

/** What of a file is read: a range of lines (from 1, inclusive) or of bytes (from 0, exclusive). */
export interface DescribeOptions extends Granted {
  /** Look for the id in every conversation of the store. */
  all_conversations?: boolean;
  /** false: only what the file is. */
  include_content?: boolean;
  /** The most bytes of content. */
  bytes_max?: number;
  /** The first line. */
  start_line?: number;
  /** The last line. */
  end_line?: number;
  /** The first byte. */
  start_byte?: number;
  /** The byte behind the last one. */
  end_byte?: number;
}

/** What is searched, and how. */
export interface GrepOptions extends Granted {
  /** How the pattern is read; `auto` unless given. */
  mode?: "auto" | "regex" | "full-text";
  /** Where is searched; `both` unless given. */
  scope?: "messages" | "summaries" | "both" | "files";
  /** With the scope `files`: only these. */
  file_ids?: string[];
  /** Where to go on: the `cursor` of an answer to the same query. */
  cursor?: string;
  /** With the scope `files`: where to begin in the one file of `file_ids`. */
  start_byte?: number;
  /** Messages to show before and after each one that is found, 0 to 3. */
  neighbours?: number;
  /** In which order hits come; `relevance` unless given. */
  sort?: "recency" | "relevance" | "hybrid";
  /** From when on, ISO 8601. */
  since?: string;
  /** Until when, ISO 8601. */
  before?: string;
  /** The most hits. */
  limit?: number;
  /** Every conversation of the store. */
  all_conversations?: boolean;
  /** Not the family of the conversation. */
  only?: boolean;
  /** An embedding of what is looked for, by the model of `embed`: what is near is found, too. */
  vector?: Vector;
  /** The name of the model that made it. */
  model?: string;
}

/** An embedding: 8 to 4,096 finite numbers that are not all zero. */
export type Vector = readonly number[] | Float32Array | Float64Array;

/** The vector of one message or summary. */
export interface Embedding {
  /** Of which message or summary. */
  id: string;
  /** Null: it is to have none. */
  vector: Vector | null;
}

/** What `embed` takes; nothing: it only says what has no vector. */
export interface EmbedOptions {
  /** At most 256. */
  vectors?: Embedding[];
  /** The name of the model that made them. */
  model?: string;
  /** Removes vectors; to be called until `stored` is 0. */
  forget?: boolean;
}

/** What has vectors. */
export interface Embedded {
  /** Numbers of each vector; null: there is none. */
  dimensions: number | null;
  /** Entries that were taken, from the first on. */
  kept: number;
  /** Messages and summaries of which nothing is known. */
  missing_count: number;
  /** The model that was named with them. */
  model: string | null;
  /** Ids of some of them, to go on with. */
  missing_ids: string[];
  /** Vectors of the conversation. */
  stored: number;
}

/** Whether something is done or only said. */
export interface VerbOptions extends Timed {
  /** Only says what would be done. */
  dry_run?: boolean;
}

/** What one answer of a model took. */
export interface UsageReport extends VerbOptions {
  /** What the answer was for. */
  purpose: "turn" | "summary";
  /** Tokens of the whole prompt, those in the provider's cache included. */
  input_tokens?: number;
  /** Of them those that were read from the cache. */
  cache_read_tokens?: number;
  /** Of them those that were written to it. */
  cache_write_tokens?: number;
  /** Tokens of the answer. */
  output_tokens?: number;
  /** Millionths of the one currency that all reports count in. */
  cost_micros?: number;
}

/** What some answers of models took, summed. */
export interface Spent {
  /** Answers. */
  calls: number;
  /** Tokens of their prompts. */
  input_tokens: number;
  /** Of them those from the provider's cache. */
  cache_read_tokens: number;
  /** Of them those that were written to it. */
  cache_write_tokens: number;
  /** Tokens of the answers. */
  output_tokens: number;
  /** What they cost, in millionths. */
  cost_micros: number;
}

/** What `usage` resolves to; `changed`: this report was new. */
export interface Reported {
  /** Whether this report was new. */
  changed: boolean;
  /** Which one. */
  conversation: string;
  /** The sums so far. */
  usage: Usage;
}

/** Sums of a conversation. */
export interface Usage {
  /** Of answers to the agent. */
  turns: Spent;
  /** Of summaries. */
  summaries: Spent;
}

/** Prices of a million tokens, in millionths of a currency. */
export interface Prices {
  /** Of tokens of a prompt. */
  input: number;
  /** Of tokens of an answer. */
  output: number;
  /** Absent: as `input`, as without a cache. */
  cache_read?: number;
  /** Of tokens that are written to a cache; absent: as `input`. */
  cache_write?: number;
  /** Of the model that summarises; absent: as `input` and `output`. */
  summary_input?: number;
  /** Of an answer of that model. */
  summary_output?: number;
}

/** What advice rests on. */
export interface AdviseOptions extends Timed {
  /** Tokens that a context may have. */
  budget: number;
  /** What tokens cost. */
  prices: Prices;
  /** How long the provider keeps a prefix; absent: 5 minutes. */
  cache_ms?: number;
  /** Prompts to come; absent: as many as there were. */
  turns?: number;
  /** Tokens of the whole prompt as the provider counted them last. */
  observed_tokens?: number;
  /** After `calibrate`: the model whose tokens `budget` and `observed_tokens` are. */
  model?: string;
}

/** Whether compacting now costs less than waiting. */
export interface Advice {
  /** Whether something was written; nothing is. */
  changed: boolean;
  /** What costs less. */
  advice: "compact" | "wait";
  /** Why. */
  reason:
    | "saves-more-than-it-costs"
    | "costs-more-than-it-saves"
    | "nothing-to-compact"
    | "over-budget";
  /** Whether the provider's cache still has the prompt. */
  cache: "warm" | "cold" | "unknown";
  /** What all turns to come cost when compaction is now. */
  cost_now_micros: number;
  /** What they cost when it is later. */
  cost_wait_micros: number;
  /** Of the first, what the summaries cost. */
  completions_cost_micros: number;
  /** After how many turns compaction cannot wait; null: it can. */
  forced_in_turns: number | null;
  /** After how many turns it would cost least; null: now. */
  wait_turns: number | null;
  /** Tokens of the context now. */
  tokens: number;
  /** Tokens of the context when compacted. */
  tokens_after: number;
  /** Tokens that a turn adds. */
  turn_tokens: number;
  /** Prompts to come that were reckoned with. */
  turns: number;
  /** Which one. */
  conversation: string;
}

/** Why a conversation is archived. */
export type ArchiveCause =
  | "manual-reset"
  | "deleted"
  | "session-end"
  | "rollover"
  | "cron-rotation"
  | "idle";

/** Limits of a grant. */
export interface GrantOptions extends Timed {
  /** Conversations that it covers, 1 to 16; absent: the one. */
  conversations?: string[];
  /** Summaries that it covers with what lies below, 1 to 64; absent: everything. */
  summary_ids?: string[];
  /** Most steps of one expansion, 1 to 10; absent: 3. */
  depth_max?: number;
  /** Tokens of text that may be read, 1 to 1,000,000; absent: `expand_tokens_max`. */
  tokens_max?: number;
  /** How long it is, at most a day; absent: five minutes. */
  ttl_ms?: number;
  /** A grant that it inherits from. */
  parent?: string;
}

/** A limited right to read. */
export interface Grant {
  /** Pass it on as `grant`. */
  id: string;
  /** Conversations that it covers. */
  conversations: string[];
  /** Null: all of the conversations. */
  summary_ids: string[] | null;
  /** Most steps of one expansion. */
  depth_max: number;
  /** Tokens of text that may be read in all. */
  tokens_max: number;
  /** Tokens that may still be read. */
  tokens_left: number;
  /** Since when it is. */
  issued_at: string;
  /** Until when it is. */
  expires_at: string;
  /** The grant that it inherits from; null: none. */
  parent: string | null;
  /** Whether it was ended before. */
  revoked: boolean;
}

/** How far back a summary is followed. */
export interface ExpandOptions extends Granted {
  /** Most steps; absent: one, or with `include_messages` all. */
  depth_max?: number;
  /** Whether original messages are part of the answer. */
  include_messages?: boolean;
  /** Tokens of one page; absent: everything, without pages. */
  tokens_max?: number;
  /** `cursor` of the page before. */
  cursor?: string;
}

/** From what a question is answered. */
export interface QuestionOptions extends Granted {
  /** What to search for; absent: the question. */
  query?: string;
  /** Summaries to answer from; without `query` only what they stand for is read. */
  summary_ids?: string[];
  /** Tokens of the answer, 1 to 8,000; absent: 2,000. */
  answer_tokens_max?: number;
  /** Tokens of what is read; absent, and at most: `expand_tokens_max`. */
  tokens_max?: number;
  /** Every conversation of the store. */
  all_conversations?: boolean;
  /** Not the family of the conversation. */
  only?: boolean;
}

/** How a question is answered. */
export interface AskOptions extends QuestionOptions {
  /** How long all of it may take, 1 to 600,000; absent: 150,000. */
  deadline_ms?: number;
  /** How often a failing model is asked again; 2 unless given. */
  retries?: number;
  /** How long one answer is waited for; 60,000 unless given. */
  timeout_ms?: number;
  /** Aborted: the model is not waited for any more, and the call rejects with its reason. */
  signal?: AbortSignal;
}

/** How a question ended. */
export type AskStatus =
  | "answered"
  | "uncited"
  | "not-found"
  | "no-evidence"
  | "no-answer"
  | "model-failed"
  | "timed-out"
  | "busy";

/** What a question found in one conversation. */
export interface AskedConversation {
  /** Which one. */
  conversation: string;
  /** Messages and summaries that were found. */
  candidates: number;
  /** Summaries that the question named. */
  named: number;
  /** Whether something of it was read. */
  status: "used" | "skipped";
  /** Tokens that were read of it. */
  tokens: number;
}

/** What one call took of its grant. */
export interface GrantSpent {
  /** Tokens that were read. */
  tokens: number;
  /** Tokens that may still be read. */
  tokens_left: number;
  /** Whether the grant ended what would have been read. */
  truncated: boolean;
}

/** How a question ended, with what it rests on. */
export interface Asked {
  /** How it ended. */
  status: AskStatus;
  /** The answer; null: there is none. */
  answer: string | null;
  /** Ids in the answer that the model was shown. */
  cited_ids: string[];
  /** Of each cited id the conversation that it is of. */
  cited_conversations: string[];
  /** Ids in the answer that the model was not shown. */
  rejected_ids: string[];
  /** Conversations that it rests on. */
  source_conversations: string[];
  /** Summaries that were expanded for it. */
  expanded_summaries: number;
  /** Tokens that the model was shown. */
  source_tokens: number;
  /** Whether something that was found was not read, or the answer was cut. */
  truncated: boolean;
  /** What was found where. */
  conversations: AskedConversation[];
  /** How often a model was asked. */
  completions: number;
  /** How the model failed, when it did. */
  failure: CompletionFailure | null;
  /** What was taken of the grant on which it was read. */
  grant?: GrantSpent;
  /** When `busy`: until when the other question is open. */
  expires_at?: string;
}

/** What a question would read of one conversation. */
export interface PlannedConversation {
  /** Which one. */
  conversation: string;
  /** Messages and summaries to read. */
  ids: string[];
  /** Tokens that may be read of it. */
  tokens_max: number;
  /** Messages and summaries that were found. */
  candidates: number;
  /** Summaries that the question named. */
  named: number;
  /** Tokens that would be read of it. */
  tokens: number;
  /** Whether something of it would be read. */
  status: "used" | "skipped";
}

/** Whether reading is worth it, and how. */
export interface Routing {
  /** What to do. */
  action: "answer-directly" | "expand-shallow" | "delegate-traversal";
  /** Tokens that it takes. */
  estimated_tokens: number;
  /** Why. */
  reasons: string[];
  /** How likely it is that something is missed or takes too much. */
  risk: "low" | "moderate" | "high";
}

/** What a question would read. */
export interface Planned {
  /** Nothing is asked and nothing is written. */
  status: "planned";
  /** What of which conversation. */
  conversations: PlannedConversation[];
  /** Whether that is worth it. */
  routing: Routing;
  /** Tokens of what would be read. */
  source_tokens: number;
  /** Whether something that was found would not be read. */
  truncated: boolean;
  /** What would be taken of the grant on which it would be read. */
  grant?: GrantSpent;
}

/** What an import stored. */
export interface Imported {
  /** Conversations of the export. */
  conversations: number;
  /** Messages of the export. */
  messages: number;
  /** Messages that are new. */
  ingested: number;
  /** Summaries that are new. */
  summaries: number;
  /** Conversations whose context was replaced by that of the export. */
  contexts: number;
}

/** How a tool is called. */
export interface ToolOptions extends Timed {
  /** The grant of a sub-agent; absent: the main agent calls. */
  grant?: string;
  /** How often a failing model is asked again; 2 unless given. */
  retries?: number;
  /** How long one answer is waited for; 60,000 unless given. */
  timeout_ms?: number;
  /** Aborted: no model is waited for any more, and the call rejects with its reason. */
  signal?: AbortSignal;
}

/** The answer to a tool call, for the agent's model. */
export interface ToolAnswer {
  /** What the model is shown. */
  text: string;
  /** Whether the call was wrong, and `text` says why. */
  is_error: boolean;
  /** How a model that was asked for it failed; null: it did not. */
  failure: Failure | null;
}
