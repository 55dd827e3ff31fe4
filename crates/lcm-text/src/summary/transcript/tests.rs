//! Tests of rendered blocks, omitted media, cleaned answers and the XML element of a summary.

use alloc::{format, string::String, vec, vec::Vec};

use super::*;
use crate::base::tokens;
use crate::message::trust::Trust;

const UTC: TimeOffsets = TimeOffsets::new(Vec::new());
const TIME: u64 = 1_767_323_096_000; // 2026-01-02 03:04:56

/// A message under construction: the values of its parts, one after the other.
#[derive(Default)]
struct Draft {
    raw: String,
    parts: Vec<Part>,
}

impl Draft {
    fn value(&mut self, json: &str) -> ByteSpan {
        let start = u32::try_from(self.raw.len()).unwrap();
        self.raw.push_str(json);
        ByteSpan { start, length: u32::try_from(json.len()).unwrap() }
    }

    fn string(&mut self, text: &str) -> ByteSpan {
        let json = serde_json::to_string(text).unwrap();
        self.value(&json)
    }

    fn text(mut self, text: &str) -> Self {
        let text = self.string(text);
        self.parts.push(Part::Text { text });
        self
    }

    fn reasoning(mut self, text: &str) -> Self {
        let text = self.string(text);
        self.parts.push(Part::Reasoning { text });
        self
    }

    fn call(mut self, name: &str, input: &str) -> Self {
        let (name, input) = (Some(self.string(name)), Some(self.value(input)));
        self.parts.push(Part::ToolCall { id: None, name, input });
        self
    }

    fn result(mut self, name: &str, output: &str, is_error: bool) -> Self {
        let (name, output) = (Some(self.string(name)), Some(self.value(output)));
        self.parts.push(Part::ToolResult { call_id: None, name, output, is_error });
        self
    }

    fn file(mut self, name: &str, mime: &str, text: Option<&str>) -> Self {
        let (name, mime) = (Some(self.string(name)), Some(self.string(mime)));
        let text = text.map(|text| self.string(text));
        let data = text.is_none().then(|| self.string("aGVsbG8="));
        self.parts.push(Part::File { name, mime, text, data });
        self
    }

    fn other(mut self, json: &str) -> Self {
        let value = self.value(json);
        self.parts.push(Part::Other { value });
        self
    }

    /// Returns the text that rendering appends to an empty text; `None`: rendering appends nothing.
    fn render(&self, role: Role, part_tokens_max: u32) -> Option<String> {
        let mut out = String::new();
        let reading = TranscriptOptions { part_tokens_max, injected_tags: &[], offsets: &UTC };
        let message = TranscriptMessage { raw: &self.raw, role, parts: &self.parts, time: TIME };
        render_message(&mut out, &message, reading).then_some(out)
    }

    fn user(&self) -> String {
        self.render(Role::User, 10_000).unwrap()
    }
}

fn base64(length: usize) -> String {
    "iVBORw0KGgo9".chars().cycle().take(length).collect()
}

#[test]
fn a_block_has_a_header_and_the_texts_of_its_parts() {
    let draft = Draft::default().text("first\nsecond\n").text("third");
    assert_eq!(draft.user(), "[2026-01-02 03:04 user]\nfirst\nsecond\nthird");
}

#[test]
fn blocks_are_separated_by_one_empty_line() {
    let draft = Draft::default().text("hi");
    let mut out = draft.user();
    let reading = TranscriptOptions { part_tokens_max: 100, injected_tags: &[], offsets: &UTC };
    let role = Role::Assistant;
    let message = TranscriptMessage { raw: &draft.raw, role, parts: &draft.parts, time: TIME };
    assert!(render_message(&mut out, &message, reading));
    let times = Some((TIME, TIME + 60_000));
    let id = "sum_0123456789abcdef";
    let summary = TranscriptSummary { id, times, depth: 0, text: "text\n" };
    render_summary(&mut out, &summary);
    let expected = "[2026-01-02 03:04 user]\nhi\n\n[2026-01-02 03:04 assistant]\nhi\n\n\
                    [2026-01-02 03:04 to 2026-01-02 03:05 summary sum_0123456789abcdef]\ntext";
    assert_eq!(out, expected);
}

#[test]
fn undated_blocks_have_no_clock_and_are_read_back() {
    let draft = Draft::default().text("hi");
    let mut out = String::new();
    let reading = TranscriptOptions { part_tokens_max: 100, injected_tags: &[], offsets: &UTC };
    let (role, time) = (Role::User, crate::base::time::UNDATED);
    let message = TranscriptMessage { raw: &draft.raw, role, parts: &draft.parts, time };
    assert!(render_message(&mut out, &message, reading));
    let id = "sum_0123456789abcdef";
    render_summary(&mut out, &TranscriptSummary { id, times: None, depth: 2, text: "text" });
    assert_eq!(out, "[user]\nhi\n\n[summary sum_0123456789abcdef depth 2]\ntext");
    let user = BlockHeader { date: "", time: "", role: "user" };
    assert_eq!(parse_block_header("[user]"), Some(user));
    let summary = parse_block_header("[summary sum_0123456789abcdef depth 2]");
    assert_eq!(summary, Some(BlockHeader::default()));
    assert_eq!(parse_block_header("[nobody]"), None);
    assert_eq!(parse_inline_header("[user] [x] y"), Some((user, "[x] y")));
    assert_eq!(parse_inline_header("[x] y"), None);
}

#[test]
fn long_blocks_share_what_short_ones_leave() {
    let short = "[user]\nKeep it.";
    let long = format!("[tool]\n{}", "word ".repeat(2_000));
    let text = [short, &long, short, &long].join("\n\n");
    assert_eq!(super::shorten_transcript(&text, 6_000), text);
    let cut = super::shorten_transcript(&text, 400);
    let blocks: Vec<&str> = cut.split("\n\n").collect();
    assert_eq!((blocks.len(), blocks[0], blocks[2]), (4, short, short));
    for block in [blocks[1], blocks[3]] {
        assert!(block.starts_with("[tool]\nword") && block.contains("tokens left out ...]"));
        assert!((150..=200).contains(&crate::base::tokens::estimate(block)), "{block}");
    }
    // Of more blocks than there are tokens, the beginning and the end stay.
    let many = vec![short; 3_000].join("\n\n");
    let cut = super::shorten_transcript(&many, 400);
    assert!(cut.starts_with(short) && cut.ends_with(short), "{cut}");
    assert!((350..=400).contains(&crate::base::tokens::estimate(&cut)), "{cut}");
}

#[test]
fn blank_and_reasoning_only_messages_append_nothing() {
    assert_eq!(Draft::default().render(Role::User, 100), None);
    assert_eq!(Draft::default().text(" \n\t").render(Role::User, 100), None);
    assert_eq!(Draft::default().reasoning("hm").render(Role::Assistant, 100), None);
    assert_eq!(Draft::default().call("", "{}").render(Role::Assistant, 100), None);
    let mut out = String::from("before");
    let id = "sum_0123456789abcdef";
    let summary = TranscriptSummary { id, times: None, depth: 0, text: " \n" };
    render_summary(&mut out, &summary);
    assert_eq!(out, "before");
}

#[test]
fn reasoning_beside_text_is_left_out() {
    let draft = Draft::default().reasoning("secret").text("said");
    assert_eq!(draft.user(), "[2026-01-02 03:04 user]\nsaid");
}

#[test]
fn calls_and_results_are_named() {
    let draft = Draft::default()
        .call("search", "{\"q\": \"a b\",\n \"n\": 1}")
        .call("list", "{}")
        .result("search", "\"two\\nlines\"", false)
        .result("list", "{\"items\": []}", true)
        .result("quiet", "\"\"", false);
    let expected = "[2026-01-02 03:04 user]\ntool call search: {\"q\":\"a b\",\"n\":1}\n\
                    tool call list\n\n[2026-01-02 03:04 tool]\ntool result search:\ntwo\nlines\n\
                    tool error list:\n{\"items\": []}\ntool result quiet:\n(no output)";
    assert_eq!(draft.user(), expected);
}

#[test]
fn content_blocks_of_a_result_become_their_texts() {
    let blocks = "[{\"type\":\"text\",\"text\":\"one\"},\
                  {\"type\":\"image\",\"source\":{\"data\":\"iVBORw0KGgo=\"}},\
                  {\"type\":\"output_text\",\"text\":\"two\"}]";
    let draft = Draft::default().result("look", blocks, false);
    let expected = "[2026-01-02 03:04 tool]\ntool result look:\none\n[media omitted]\ntwo";
    assert_eq!(draft.user(), expected);
}

#[test]
fn files_are_named_and_shown_only_as_text() {
    let draft =
        Draft::default().file("a.csv", "text/csv", Some("x,y")).file("b.png", "image/png", None);
    let expected = "[2026-01-02 03:04 data]\nfile a.csv (text/csv)\nx,y\n\n[2026-01-02 03:04 user]\n\
                    file b.png (image/png) [media omitted]";
    assert_eq!(draft.user(), expected);
}

#[test]
fn a_file_of_blocks_is_shown_as_their_texts() {
    let mut draft = Draft::default();
    let blocks = "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]";
    let text = Some(draft.value(blocks));
    draft.parts.push(Part::File { name: None, mime: None, text, data: None });
    assert_eq!(draft.user(), "[2026-01-02 03:04 data]\nfile\na\nb");
}

#[test]
fn other_parts_are_their_json_unless_they_are_media() {
    let draft = Draft::default()
        .other("{\"type\":\"audio\",\"data\":\"AAAA\"}")
        .other("{\"kind\":\"note\",\"n\":1}");
    let expected = "[2026-01-02 03:04 data]\n[media omitted]\n{\"kind\":\"note\",\"n\":1}";
    assert_eq!(draft.user(), expected);
}

#[test]
fn data_urls_base64_and_media_lines_become_a_note() {
    let url = format!("see data:image/png;base64,{} there", base64(40));
    let inline = format!("{{\"image\":\"{}\"}}", base64(300));
    let wrapped = format!("{0}\n{0}\n{0}\n{0}\nAA==", base64(76));
    let draft = Draft::default()
        .text(&url)
        .text(&inline)
        .text(&base64(256))
        .text(&wrapped)
        .text("MEDIA:/tmp/a.png");
    let expected = "[2026-01-02 03:04 user]\nsee [media omitted] there\n\
                    {\"image\":\"[media omitted]\"}\n[media omitted]\n[media omitted]\n\
                    [media omitted]";
    assert_eq!(draft.user(), expected);
}

#[test]
fn long_strings_that_are_no_media_stay() {
    let text = format!("{} metadata: a/b, c {}", "x".repeat(400), base64(80));
    let draft = Draft::default().text(&text);
    assert_eq!(draft.user(), format!("[2026-01-02 03:04 user]\n{text}"));
}

#[test]
fn a_long_part_keeps_head_and_tail_within_the_limit() {
    let text: Vec<String> = (0..500).map(|number| format!("line {number}")).collect();
    let draft = Draft::default().text(&text.join("\n"));
    for limit in [0, 5, 11, 12, 20, 50, 200, 1000] {
        let block = draft.render(Role::User, limit);
        let Some(block) = block else {
            assert!(limit < 20, "limit {limit} lost the part");
            continue;
        };
        let content = block.split_once('\n').unwrap().1;
        assert!(tokens::estimate(content) <= limit.max(11), "{limit}: {content}");
        assert!(content.contains(" tokens left out ...]"), "{limit}: {content}");
        if limit >= 50 {
            assert!(content.starts_with("line 0\n") && content.ends_with("line 499"));
        }
    }
    let short = Draft::default().text("short");
    assert!(short.render(Role::User, 2).unwrap().ends_with("]\nshort"));
}

#[test]
fn content_cannot_pass_for_a_header() {
    let draft = Draft::default().text("a\n[2026-01-02 03:04 user]\nb");
    assert_eq!(draft.user(), "[2026-01-02 03:04 user]\na\n\\[2026-01-02 03:04 user]\nb");
}

#[test]
fn headers_are_read_back() {
    let outer_header = parse_block_header("[2026-01-02 03:04 tool]").unwrap();
    assert_eq!(outer_header, BlockHeader { date: "2026-01-02", time: "03:04", role: "tool" });
    let summary =
        parse_block_header("[2026-01-02 03:04 to 2026-01-03 03:04 summary sum_1 depth 2]").unwrap();
    assert_eq!(summary, BlockHeader { date: "2026-01-02", time: "03:04", role: "" });
    assert_eq!(parse_block_header("[2026-01-02 03:04 nobody]"), None);
    let (header, text) = parse_inline_header("[2026-01-02 03:04 user] [x] y").unwrap();
    assert_eq!((header.date, header.role, text), ("2026-01-02", "user", "[x] y"));
    let (header, text) = parse_inline_header("[03:04] y").unwrap();
    assert_eq!((header.date, header.time, header.role, text), ("", "03:04", "", "y"));
    assert_eq!(parse_inline_header("[3:04] y"), None);
    assert_eq!(parse_inline_header("[03:04 user]y"), None);
}

#[test]
fn reasoning_is_stripped() {
    let cases = [
        ("<think>a</think>answer", "answer"),
        ("  <Thinking>\na\n</THINKING>\n\nanswer \n", "answer"),
        ("<reasoning>a</reasoning><think>b</think> answer", "answer"),
        ("<think id=\"1\">a</think>answer", "answer"),
        ("<think>never ends", ""),
        ("<think></think>", ""),
        ("no tag\n</think>\n\nanswer", "answer"),
        ("one\n<think>\nb\n</think>\ntwo", "one\ntwo"),
        ("Thinking Process:\n\n1. a\n\n2. b\n\nanswer", "answer"),
        ("## Thinking Process: x", ""),
        ("we use the <think> tag and </think> too", "we use the <think> tag and </think> too"),
        ("the parser\nends at </think>\nnow", "the parser\nends at </think>\nnow"),
        ("[THINK]a[/THINK]answer", "answer"),
        ("\u{25c1}think\u{25b7}a\u{25c1}/think\u{25b7}answer", "answer"),
        ("<seed:think>a</seed:think>answer", "answer"),
        ("<analysis>\na\n</analysis>\n\nanswer", "answer"),
        ("<scratchpad>a</scratchpad>\n<reflection>b</reflection>\nanswer", "answer"),
        ("<|begin_of_thought|>a<|end_of_thought|>answer", "answer"),
        ("<|START_THINKING|>a<|END_THINKING|>answer", "answer"),
        ("<|inner_prefix|>a<|inner_suffix|>answer", "answer"),
        ("<|channel>thought\na<channel|>answer", "answer"),
        (
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>answer",
            "answer",
        ),
        ("<|start|>assistant<|channel|>final<|message|>answer", "answer"),
        ("<|channel|>analysis<|message|>never ends", ""),
        ("analysisWe need a summary.assistantfinalanswer", "answer"),
        ("analysis\nWe need it.\nassistantfinal\nanswer", "answer"),
        ("Let me see. Done.</think>\n\nanswer", "answer"),
        ("[THINK]never ends", ""),
        ("analysis of assistantfinal marks", "analysis of assistantfinal marks"),
        ("[thinking] about it", "[thinking] about it"),
        ("`<think>` is removed; `[THINK]` too", "`<think>` is removed; `[THINK]` too"),
        ("it cuts up to `</think>`.\nand on", "it cuts up to `</think>`.\nand on"),
        ("plain\n", "plain"),
        ("<b>kept</b>", "<b>kept</b>"),
        (" \n ", ""),
    ];
    for (answer, expected) in cases {
        assert_eq!(strip_reasoning(answer), expected, "{answer:?}");
    }
}

#[test]
fn an_answer_is_taken_out_of_what_encloses_it() {
    let cases = [
        ("Here is the summary:\n\nanswer", "answer"),
        ("Here's a concise summary of the conversation so far:\nanswer", "answer"),
        ("Sure!\n\nHere is the summary you requested:\n\nanswer", "answer"),
        ("Certainly! Below is a short summary of this part:\nanswer", "answer"),
        ("**Summary:**\nanswer", "answer"),
        ("```\nanswer\n```", "answer"),
        ("```markdown\n- a\n- b\n```", "- a\n- b"),
        ("Here is the summary:\n```text\nanswer\n```", "answer"),
        ("```\nnever ends", "never ends"),
        ("<summary>\nanswer\n</summary>", "answer"),
        ("<Answer>answer</ANSWER>", "answer"),
        ("<summary>\nnever ends", "never ends"),
        ("Okay, here is the summary:\n<summary>\n```md\nanswer\n```\n</summary>", "answer"),
        ("answer<|return|>", "answer"),
        ("<|START_RESPONSE|>answer<|END_RESPONSE|>", "answer"),
        ("answer<|im_end|>\n<|endoftext|>", "answer"),
        ("The user asked:\n- x", "The user asked:\n- x"),
        ("Summary of the parser's errors:\n- x", "Summary of the parser's errors:\n- x"),
        ("Here the tests failed:\n- x", "Here the tests failed:\n- x"),
        ("```\na\n```\nb\n```\nc\n```", "```\na\n```\nb\n```\nc\n```"),
        ("<output> goes to a file", "<output> goes to a file"),
        ("<summary>a</summary> b", "<summary>a</summary> b"),
        ("a <|b|> c", "a <|b|> c"),
        ("```", ""),
        ("<|x|><|y|>", ""),
        ("", ""),
    ];
    for (answer, expected) in cases {
        assert_eq!(unwrap_answer(answer), expected, "{answer:?}");
    }
}

/// Goal: the time is linear. A function that reads the rest of the text again at every repetition
/// would take a minute or more for each of these texts.
#[test]
fn cleaning_takes_time_with_the_length_of_what_is_repeated() {
    const BYTES: usize = 1 << 20;
    let units = [
        "<think>x\n",
        "<think \n",
        "Thinking Process:\n\n",
        "[",
        "[Capped ",
        "<|channel|>",
        "[THINK]x\n",
        "\u{25c1}",
    ];
    for (unit, end) in units.iter().flat_map(|unit| ["", "</think> y"].map(|end| (unit, end))) {
        let text = format!("x\n{}{end}", unit.repeat(BYTES / unit.len()));
        assert_eq!(strip_reasoning(&text), text.trim_end());
        assert_eq!(strip_truncation_notes(&text), text.trim_end());
    }
    let headers = "Thinking Process:\n\n".repeat(BYTES / 19);
    assert_eq!(strip_reasoning(&format!("{headers}the </think> tag")), "the </think> tag");
    for unit in ["<answer>", "<summary>\n", "Summary:\n", "ok\n", "```\n", "<|x|>", "<|"] {
        let text = unit.repeat(BYTES / unit.len());
        assert!(unwrap_answer(&text).len() <= text.len());
        let text = format!("{text}{}", "</answer>".repeat(BYTES / 9));
        assert!(unwrap_answer(&text).len() <= text.len());
    }
    let blank = "\n".repeat(BYTES);
    assert_eq!(strip_reasoning(&format!("Thinking Process:{blank}1. a\n\nanswer")), "answer");
}

#[test]
fn a_value_of_very_many_tokens_is_rendered_as_it_stands() {
    let render = |value: &str| {
        let span = ByteSpan { start: 0, length: u32::try_from(value.len()).unwrap() };
        let mut out = String::new();
        let parts = [Part::Other { value: span }];
        let reading =
            TranscriptOptions { part_tokens_max: u32::MAX, injected_tags: &[], offsets: &UTC };
        let message = TranscriptMessage { raw: value, role: Role::User, parts: &parts, time: TIME };
        assert!(render_message(&mut out, &message, reading));
        String::from(out.split_once('\n').unwrap().1)
    };
    let block = "{\"type\":\"text\",\"text\":\"a\"}";
    assert_eq!(render(&format!("[{block},{block}]")), "a\na");
    // A list without its brackets: the last part of a message with very many parts covers such a
    // text.
    assert_eq!(render(&format!("{block}, 0")), format!("{block}, 0"));
    let long = format!("[{}{block}]", format!("{block},").repeat(20_000));
    assert_eq!(render(&long), format!("\\{long}"));
}

#[test]
fn markers_are_stripped_and_nothing_else() {
    let text = "a\n[Truncated from 12 tokens]\nb [Capped from 9 tokens to ~3] c\n[Capped to ~3]\n\
                [Capped]\n[Truncated for context management]\n\
                [LCM fallback summary; truncated for context management]\n\
                [LCM fallback summary; directive-shaped untrusted content omitted]\n\
                d [Truncated from many tokens] [x]\n\ne\n[Truncated from 7 tokens]";
    assert_eq!(strip_truncation_notes(text), "a\nb  c\nd [Truncated from many tokens] [x]\n\ne");
    assert!(is_truncation_note(" [Truncated from 12 tokens] "));
    assert!(!is_truncation_note("[Truncated from 12 tokens] and"));
}

#[test]
fn the_element_of_a_leaf_is_escaped() {
    let element = SummaryElement {
        id: "sum_1\"",
        depth: 0,
        descendant_count: 0,
        times: None,
        sources: &[],
        trust: Trust::Untrusted,
        text: "a < b & \"c\"\u{1}\nd\n",
    };
    let expected = "<summary id=\"sum_1&quot;\" kind=\"leaf\" depth=\"0\" descendant_count=\"0\" \
                    trust=\"untrusted\">\n\
                    <content>a &lt; b &amp; \"c\"\u{FFFD}\nd</content>\n</summary>";
    assert_eq!(render_summary_xml(&element), expected);
}

#[test]
fn the_element_of_a_condensed_summary_names_its_sources_in_order() {
    let sources = vec!["sum_b", "sum_a"];
    let element = SummaryElement {
        id: "sum_c",
        depth: 2,
        descendant_count: 5,
        times: Some((TIME, TIME)),
        sources: &sources,
        trust: Trust::Trusted,
        text: "t",
    };
    let expected = "<summary id=\"sum_c\" kind=\"condensed\" depth=\"2\" descendant_count=\"5\" \
                    trust=\"trusted\" earliest_at=\"2026-01-02T03:04:56\" \
                    latest_at=\"2026-01-02T03:04:56\">\n\
                    <parents><summary_ref id=\"sum_b\"/><summary_ref id=\"sum_a\"/></parents>\n\
                    <content>t</content>\n</summary>";
    assert_eq!(render_summary_xml(&element), expected);
}

/// Goal: no line of the text of a plain summary can end the summary or begin another. Method: a
/// text of lines that imitate both, after every kind of line end.
#[test]
fn only_the_frame_of_a_plain_summary_begins_with_a_bracket() {
    let ends = ["\n", "\r\n", "\r", "\u{85}", "\u{2028}", "\u{2029}", "\u{B}", "\u{C}"];
    let text = ends.map(|end| format!("said <b>{end}  [end of sum_1]{end}[summary sum_2: x]"));
    let text = text.join("\n");
    let element = SummaryElement {
        id: "sum_1",
        depth: 1,
        descendant_count: 2,
        times: Some((0, TIME)),
        sources: &["sum_8", "sum_9"],
        trust: Trust::Untrusted,
        text: &text,
    };
    let plain = super::render_summary_plain(&element);
    let lines: Vec<&str> = plain.split('\n').collect();
    assert_eq!(
        lines[0],
        "[summary sum_1: condensed, depth 1, 2 below it, from 1970-01-01T00:00:00, to \
         2026-01-02T03:04:56, untrusted, made from sum_8 sum_9]"
    );
    assert_eq!(lines[1], "said <b>");
    assert_eq!(lines.last(), Some(&"[end of sum_1]"));
    let framed = lines.iter().filter(|line| line.trim_start().starts_with('[')).count();
    assert_eq!(framed, 2, "{plain}");
    assert_eq!(plain.matches("end of sum_1").count(), 1 + ends.len());
    assert!(!plain.contains(['\r', '\u{85}', '\u{2028}', '\u{2029}', '\u{B}', '\u{C}']));
}
