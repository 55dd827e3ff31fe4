// Results of what reads a conversation or changes its life. Options are in verbs.d.ts.

import type { ArchiveCause, Debt, Grant, GrantSpent, Level, Usage } from "./index.js";

/** Who said a message. */
export type Role = "system" | "user" | "assistant" | "tool";

/** Whose word it is: that of the program and its user, or any other. */
export type Trust = "trusted" | "untrusted";

/** A message beside one that was found. */
export interface Neighbour {
  /** Its id. */
  id: string;
  /** Its place in the conversation, from 1. */
  seq: number;
  /** Who said it. */
  role: Role;
  /** When it was said, ISO 8601. */
  created_at: string;
  /** How it begins, on one line. */
  snippet: string;
}

/** A message, summary or file that was found. */
export interface Match {
  /** What it is. */
  type: "message" | "summary" | "file";
  /** Its id. */
  id: string;
  /** The same as `type`, or of a summary what it was made of. */
  kind: "message" | "leaf" | "condensed" | "file";
  /** The conversation that it is of. */
  conversation: string;
  /** The id that you gave the message; null: none, or a summary. */
  entry_id: string | null;
  /** Place of the message, or of the one that the file is in; null: a summary. */
  seq: number | null;
  /** Who said it; null: a summary. */
  role: Role | null;
  /** When it was said, or a summary was made, ISO 8601. */
  created_at: string;
  /** When the first message of a summary was said; null: no summary. Absent for a file. */
  earliest_at?: string | null;
  /** When the last message of a summary was said, by which it is searched and sorted. */
  latest_at?: string | null;
  /** 0 for a leaf; null: no summary. Absent for a file. */
  depth?: number | null;
  /** In thousandths; null: an expression was searched. */
  score: number | null;
  /** The best passage, on one line. */
  snippet: string;
  /** The same in parts, of which every second one is what was found. */
  snippet_parts: string[];
  /** Of a file: its name; null: it has none. */
  name?: string | null;
  /** Of a file: the line of the passage, from 1. */
  line?: number;
  /** Of a file: the byte at which the passage begins. */
  byte?: number;
  /** With `neighbours`: messages before it, oldest first. */
  neighbours_before?: Neighbour[];
  /** With `neighbours`: messages after it. */
  neighbours_after?: Neighbour[];
}

/** What a search found. */
export interface Found {
  /** The hits, in the order that was asked for. */
  matches: Match[];
  /** How many match in all. */
  total: number;
  /** Whether there are more than were returned. */
  truncated: boolean;
  /** How the pattern was taken, and what limited the search. */
  notes: string[];
  /** Where the same search goes on; null: it is over. */
  cursor: string | null;
  /** What was taken of the grant on which it was read. */
  grant?: GrantSpent;
}

/** What reading a summary costs. */
export interface Cost {
  /** Its id. */
  id: string;
  /** 0 for a leaf. */
  depth: number;
  /** Tokens of its text. */
  tokens: number;
  /** The same with all summaries under it. */
  subtree_tokens: number;
  /** Tokens of all of its messages. */
  message_tokens: number;
}

/** A message as it is stored. */
export interface StoredMessage {
  /** A message. */
  kind: "message";
  /** Its id. */
  id: string;
  /** The id that you gave it; absent: none. */
  entry_id?: string;
  /** Its place in the conversation, from 1. */
  seq: number;
  /** Who said it. */
  role: Role;
  /** When it was said, ISO 8601. */
  created_at: string;
  /** Estimated tokens. */
  tokens: number;
  /** Whose word it is. */
  trust: Trust;
  /** Its text as it came. */
  raw: string;
  /** What was taken of the grant on which it was read. */
  grant?: GrantSpent;
}

/** A summary in a list. */
export interface ListedSummary {
  /** Its id. */
  id: string;
  /** `leaf`, of messages, or `condensed`, of summaries. */
  kind: "leaf" | "condensed";
  /** 0 for a leaf. */
  depth: number;
  /** With which prompt it was made, or `fallback`, without a model. */
  level: Level;
  /** Whether its text was cut to its limit. */
  capped: boolean;
  /** The model that wrote it. */
  model: string;
  /** Tokens of its text. */
  tokens: number;
  /** Tokens that were read to make it. */
  source_tokens: number;
  /** The summaries that it was made from. */
  source_ids: string[];
  /** Summaries under it. */
  descendant_count: number;
  /** Tokens of their texts. */
  descendant_tokens: number;
  /** The first message that it stands for. */
  seq_first: number;
  /** The last message that it stands for. */
  seq_last: number;
  /** When the first was said, ISO 8601. */
  earliest_at: string;
  /** When the last was said. */
  latest_at: string;
}

/** What a summary is. */
export interface DescribedSummary extends ListedSummary {
  /** Its text. */
  text: string;
  /** When it was made, ISO 8601. */
  created_at: string;
  /** The summary that was made from it, if any. */
  derived_ids: string[];
  /** Of a leaf: its messages, at most 1,000. */
  message_ids: string[];
  /** Files that its messages have. */
  file_ids: string[];
  /** Tokens of its messages. */
  message_tokens: number;
  /** What the check of its text found. */
  findings: string[];
  /** How the answer of the model ended; null: unknown. */
  finish: "stop" | "length" | "refusal" | null;
  /** Which prompt it was made with. */
  prompt_version: number;
  /** Whose words it was made from: the least trust of them. */
  trust: Trust;
  /** What it costs to read, and all that is under it, itself first. */
  subtree: Cost[];
  /** Whether that is all. */
  subtree_complete: boolean;
  /** What was taken of the grant on which it was read. */
  grant?: GrantSpent;
}

/** What a file is, and a range of it. */
export interface DescribedFile {
  /** A file, output of a tool or text that is too large for a context. */
  kind: "file";
  /** Its id. */
  id: string;
  /** Its name; null: it has none. */
  name: string | null;
  /** Its media type; null: unknown. */
  mime: string | null;
  /** Its size. */
  bytes: number;
  /** Its lines. */
  lines: number;
  /** What is in it, made without a model. */
  exploration: string;
  /** The range that was read; null: none was asked for. */
  content: string | null;
  /** Where the range begins. */
  start_byte: number;
  /** Where the next one begins. */
  end_byte: number;
  /** Whether there is more. */
  truncated: boolean;
  /** The message that it is in. */
  message_id: string;
  /** Place of that message. */
  seq: number;
  /** What was taken of the grant on which it was read. */
  grant?: GrantSpent;
}

/** That a conversation is archived. */
export interface Archived {
  /** Why. */
  cause: ArchiveCause;
  /** Where it goes on; null: nowhere. */
  successor: string | null;
  /** Since when, ISO 8601. */
  archived_at: string;
}

/** What a conversation has, and what its summaries cost to read. */
export interface DescribedConversation {
  /** A conversation. */
  kind: "conversation";
  /** Its id. */
  id: string;
  /** Its messages. */
  messages: number;
  /** Tokens of them. */
  message_tokens: number;
  /** Its summaries. */
  summaries: number;
  /** Tokens of its context. */
  context_tokens: number;
  /** When its first message was said; null: it has none. */
  earliest_at: string | null;
  /** When its last message was said. */
  latest_at: string | null;
  /** Key of its family; null: none. */
  family: string | null;
  /** Null: it is not. */
  archived: Archived | null;
  /** Summaries of its context, oldest first. */
  subtree: Cost[];
  /** Whether these are all. */
  subtree_complete: boolean;
  /** What was taken of the grant on which it was read. */
  grant?: GrantSpent;
}

/** What `describe` resolves to; `kind` says which. */
export type Described =
  | DescribedSummary
  | StoredMessage
  | DescribedFile
  | DescribedConversation;

/** A summary as an expansion has it. */
export interface ExpandedSummary {
  /** Its id. */
  id: string;
  /** `leaf`, of messages, or `condensed`, of summaries. */
  kind: "leaf" | "condensed";
  /** 0 for a leaf. */
  depth: number;
  /** The first message that it stands for. */
  seq_first: number;
  /** The last message that it stands for. */
  seq_last: number;
  /** Its text. */
  text: string;
  /** Tokens of its text. */
  tokens: number;
}

/** What did not fit the cap of an expansion. */
export interface LeftOut {
  /** Which message or summary. */
  id: string;
  /** The cap that it takes. */
  tokens: number;
}

/** What a summary was made from. */
export interface Expanded {
  /** The summary. */
  id: string;
  /** Its sources, in the order of the conversation. */
  summaries: ExpandedSummary[];
  /** With `include_messages`: its messages. */
  messages: StoredMessage[];
  /** Tokens of all of them. */
  tokens: number;
  /** Whether there is more. */
  truncated: boolean;
  /** Where the next page begins; null: there is none. */
  cursor: string | null;
  /** What came next and did not fit `tokens_max`. */
  left_out: LeftOut | null;
  /** What was taken of the grant on which it was read. */
  grant?: GrantSpent;
}

/** Bytes that are stored, by what they are; keys included. */
export interface StoredBytes {
  /** Of messages as they came, without what they are stored in. */
  raw: number;
  /** Packs of messages. */
  packs: number;
  /** Summaries. */
  summaries: number;
  /** The search index. */
  index: number;
  /** Large payloads. */
  blobs: number;
  /** By what messages are known again. */
  identities: number;
  /** What was done when. */
  journal: number;
  /** All else. */
  other: number;
  /** All of it. */
  total: number;
}

/** What the whole store has. */
export interface StoreStatus {
  /** Its conversations. */
  conversations: number;
  /** Its keys. */
  entries: number;
  /** How much that is. */
  bytes: StoredBytes;
}

/** What a provider's counts have to do with estimates. */
export interface Calibration {
  /** Which model. */
  model: string;
  /** What an estimate is multiplied with, in thousandths. */
  factor_permille: number;
  /** Reports that it rests on. */
  reports: number;
}

/** A brief that stands for older summaries. */
export interface Focus {
  /** Its id. */
  id: string;
  /** The last message that it stands for. */
  seq_last: number;
  /** When it was set, ISO 8601. */
  created_at: string;
  /** Its tokens. */
  tokens: number;
}

/** What summaries took, and what they saved. */
export interface Ledger {
  /** Completions. */
  completions: number;
  /** Tokens of their prompts. */
  input_tokens: number;
  /** Tokens of their answers. */
  output_tokens: number;
  /** Tokens that contexts are shorter by. */
  saved_tokens: number;
  /** Tokens that new sessions withdrew. */
  withdrawn_tokens: number;
  /** Completions of the current window. */
  window_completions: number;
  /** Of them those that were in vain. */
  window_rejected: number;
  /** Their tokens. */
  window_tokens: number;
  /** Until when no model is asked; absent: one is. */
  paused_until?: string;
}

/** Summaries of one depth. */
export interface DepthCount {
  /** 0 for leaves. */
  depth: number;
  /** How many. */
  count: number;
  /** Tokens of their texts. */
  tokens: number;
}

/** What stands for the messages of a conversation. */
export interface ContextSize {
  /** Summaries, and runs of messages. */
  items: number;
  /** Tokens of all of it. */
  tokens: number;
}

/** The newest messages, which stay as they are. */
export interface FreshTail {
  /** How many at most, as configured. */
  messages_max: number;
  /** Place of the newest message of the user; null: there is none. */
  newest_user_seq: number | null;
}

/** A model that refused its key. */
export interface ModelBreaker {
  /** Which one, as configured. */
  scope: string;
  /** How often in a row. */
  failures: number;
  /** Until when it is not asked, in milliseconds since the epoch. */
  open_until: number;
}

/** What a conversation has. */
export interface Status {
  /** Which one. */
  conversation: string;
  /** Commits so far. */
  revision: number;
  /** Its messages. */
  messages: number;
  /** Tokens of them. */
  message_tokens: number;
  /** Its summaries, by depth. */
  summaries: DepthCount[];
  /** What stands for the messages now. */
  context: ContextSize;
  /** Tokens of that as a share of those of the messages. */
  compression_ratio: number;
  /** The newest messages, which stay as they are. */
  fresh_tail: FreshTail;
  /** Compaction that was put off; null: none. */
  debt: Debt | null;
  /** What answers took, as it was reported. */
  usage: Usage;
  /** What summaries took. */
  ledger: Ledger;
  /** By model. */
  calibrations: Calibration[];
  /** The brief that stands for summaries; null: none. */
  focus: Focus | null;
  /** Models that refused their key. */
  breakers: ModelBreaker[];
  /** Key of its family; null: none. */
  family: string | null;
  /** Null: it is not. */
  archived: Archived | null;
  /** How much that is. */
  bytes: StoredBytes;
}

/** A conversation in a list. */
export interface ListedConversation {
  /** Which one. */
  conversation: string;
  /** Commits so far. */
  revision: number;
  /** Its messages. */
  messages: number;
  /** Tokens of them. */
  message_tokens: number;
  /** Tokens of its context. */
  context_tokens: number;
  /** Its summaries. */
  summaries: number;
  /** When it was written to last, ISO 8601. */
  updated_at: string;
  /** Key of its family; null: none. */
  family: string | null;
  /** Null: it is not. */
  archived: Archived | null;
}

/** What each kind of list has. */
export interface Listed {
  /** Of the store. */
  conversations: ListedConversation;
  /** Of a conversation. */
  summaries: ListedSummary;
  /** Of a conversation. */
  messages: StoredMessage;
  /** That a conversation issued. */
  grants: Grant;
}

/** One check of what is stored. */
export interface Check {
  /** What was checked. */
  name: string;
  /** How it ended. */
  status: "pass" | "fail";
  /** What is wrong; empty: nothing. */
  message: string;
}

/** Whether what is stored of a conversation agrees with itself. */
export interface Checked {
  /** Whether all checks passed. */
  ok: boolean;
  /** Each check. */
  checks: Check[];
  /** What there is. */
  metrics: Record<string, number>;
}

/** A key that was given under another name. */
export interface Alias {
  /** As it was given. */
  key: string;
  /** As the engine has it. */
  as: string;
}

/** What became of the keys of a configuration. */
export interface Configured {
  /** Those that count. */
  accepted: string[];
  /** Accepted, but nothing goes by them yet. */
  reserved: string[];
  /** Those that were not given. */
  defaulted: string[];
  /** Given under another name. */
  aliased: Alias[];
  /** Not to be used any more. */
  deprecated: string[];
  /** Of hosts, not of the engine. */
  host: string[];
  /** No keys. */
  unknown: string[];
}

/** What every change of a conversation's life says. */
export interface Changed {
  /** Whether something was written, or with `dry_run` would be. */
  changed: boolean;
  /** Which one. */
  conversation: string;
  /** Why nothing was: the configuration passes over the session. */
  warnings?: string[];
}

/** What `family` resolves to. */
export interface FamilyChanged extends Changed {
  /** Key of its family. */
  family: string;
}

/** What `archive` resolves to. */
export interface ArchiveChanged extends Changed {
  /** Since when and why. */
  archived: Archived;
}

/** What `reset` resolves to; `conversation` is the one to go on in. */
export interface ResetChanged extends Changed {
  /** The one that is archived; null: it has no messages. */
  archived_conversation: string | null;
}

/** What `newSession` resolves to. */
export interface SessionChanged extends Changed {
  /** Messages that leave the context. */
  messages: number;
  /** Summaries that leave the context. */
  summaries: number;
  /** Tokens of the context before. */
  tokens_before: number;
  /** Tokens of the context after. */
  tokens_after: number;
}

/** What `calibrate` resolves to. */
export interface CalibrationChanged extends Changed {
  /** What estimates are multiplied with now. */
  calibration: Calibration;
}

/** What `focus` resolves to. */
export interface FocusChanged extends Changed {
  /** The brief; null: there is none. */
  focus: Focus | null;
}
