//! Generated transcripts, so that the smallest shares are also asserted without real data.

/// Smallest kept shares, in percent.
#[derive(Clone, Copy)]
pub(crate) struct Floors {
    pub(crate) facts: u32,
    pub(crate) errors: u32,
}

/// Transcripts of one kind.
pub(crate) struct Generated {
    pub(crate) name: &'static str,
    pub(crate) make: fn() -> Vec<Vec<String>>,
    pub(crate) floors: Floors,
}

/// One set for each kind of text for which the summariser has its own rules.
pub(crate) const SETS: [Generated; 3] = [
    // Most facts of this set are identifiers, which take much of the limit: 63 of 100 fit.
    Generated { name: "desk", make: desk, floors: Floors { facts: 60, errors: 60 } },
    Generated { name: "coding", make: coding, floors: Floors { facts: 95, errors: 60 } },
    Generated { name: "chinese", make: chinese, floors: Floors { facts: 90, errors: 60 } },
];

const TURNS: usize = 240;

/// A small generator, so that texts are varied and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    fn words(&mut self, list: &[&str], count: usize) -> String {
        (0..count).map(|_| self.pick(list)).collect::<Vec<_>>().join(" ")
    }

    /// Returns `count` ideographs and a full stop.
    fn sentence(&mut self, count: usize) -> String {
        let mut ideograph = || char::from_u32(0x4e00 + u32::try_from(self.below(4000)).unwrap());
        (0..count).map(|_| ideograph().unwrap()).chain(['\u{3002}']).collect()
    }

    fn letters(&mut self, count: usize) -> String {
        (0..count).map(|_| char::from(b'A' + u8::try_from(self.below(26)).unwrap())).collect()
    }
}

fn message(number: usize, role: &str, text: &str) -> String {
    let (hour, minute) = (number / 60 % 24, number % 60);
    let time = format!("2026-03-02T{hour:02}:{minute:02}:00Z");
    serde_json::json!({
        "role": role,
        "timestamp": time,
        "parts": [{"type": "text", "text": text}],
    })
    .to_string()
}

fn result(number: usize, name: &str, output: &str) -> String {
    let part = serde_json::json!({
        "type": "tool_result", "call_id": format!("c{number}"), "name": name, "output": output,
    });
    let time = format!("2026-03-02T{:02}:{:02}:30Z", number / 60 % 24, number % 60);
    serde_json::json!({"role": "tool", "timestamp": time, "parts": [part]}).to_string()
}

const PLAIN: [&str; 28] = [
    "the", "order", "was", "sent", "with", "another", "parcel", "because", "it", "had", "been",
    "returned", "before", "and", "we", "would", "like", "to", "keep", "this", "record", "open",
    "until", "they", "answer", "about", "costs", "again",
];

/// Makes transcripts of a service desk: short requests, records in JSON, polite answers.
fn desk() -> Vec<Vec<String>> {
    let mut random = Random(11);
    let mut out = Vec::new();
    for number in 0..TURNS {
        let order = format!("{}{}", random.letters(3), 1000 + random.below(9000));
        let plain = random.words(&PLAIN, 9);
        out.push(message(
            number,
            "user",
            &format!("Hello! Can you check {order}? I think {plain}."),
        ));
        let records: Vec<String> = (0..4 + random.below(4))
            .map(|_| {
                let (item, amount) = (random.letters(5), 100 + random.below(90_000));
                let note = random.words(&PLAIN, 8);
                format!(
                    "{{\"item\": \"{item}\", \"amount\": {amount}, \"status\": \"shipped\", \
                     \"note\": \"{note}\"}}"
                )
            })
            .collect();
        out.push(result(number, "find_order", &format!("[{}]", records.join(", "))));
        let plain = random.words(&PLAIN, 24);
        out.push(message(
            number,
            "assistant",
            &format!(
                "Thank you for waiting, I am happy to help you with that. As far as I can see \
                 {plain}. I have refunded {order} to the account of {}{}. Is there anything else?",
                random.pick(&["Miller", "Okafor", "Tanaka", "Silva"]),
                random.below(100),
            ),
        ));
    }
    vec![out]
}

const CODE: [&str; 14] = [
    "let", "value", "return", "self", "match", "none", "index", "buffer", "while", "break",
    "length", "result", "count", "default",
];

/// Makes transcripts of a coding agent: listings, builds with warnings and errors, reports.
fn coding() -> Vec<Vec<String>> {
    let mut random = Random(12);
    let mut out = Vec::new();
    for number in 0..TURNS {
        let file = format!("src/{}{}.rs", random.pick(&CODE), random.below(500));
        let plain = random.words(&PLAIN, 8);
        let request = format!("Please fix the build of {file}. It seems that {plain}.");
        if number % 3 == 0 {
            out.push(message(number, "user", &request));
        }
        let plain = random.words(&PLAIN, 14);
        out.push(message(
            number,
            "assistant",
            &format!("I look into {file} now, because {plain}."),
        ));
        let listing: Vec<String> = (1..12 + random.below(20))
            .map(|line| {
                let words = random.words(&CODE, 6);
                match random.below(12) {
                    0 => format!("{line:5}|    set_{}({words});", random.below(9000)),
                    _ => format!("{line:5}|    {words};"),
                }
            })
            .collect();
        out.push(result(number, "open", &listing.join("\n")));
        if number % 4 == 1 {
            let (code, at) = (random.below(900), random.below(400));
            let words = random.words(&CODE, 4);
            let output = format!(
                "   Compiling part v0.1.0\nwarning: unused {words}\nerror: E{code:04}: cannot find \
                 {words}\n  --> {file}:{at}\nnote: {}\n",
                random.words(&PLAIN, 20)
            );
            out.push(result(number, "run", &output));
        }
    }
    vec![out]
}

/// Makes a Chinese chat: a few phrases occur many times, with a new sentence now and then.
fn chinese() -> Vec<Vec<String>> {
    let mut random = Random(13);
    let phrases: Vec<String> = (0..24).map(|_| random.sentence(9)).collect();
    let phrases: Vec<&str> = phrases.iter().map(String::as_str).collect();
    let mut out = Vec::new();
    for number in 0..TURNS {
        for role in ["user", "assistant"] {
            let count = 3 + random.below(3);
            let mut text = random.words(&phrases, count);
            if random.below(4) == 0 {
                let length = 6 + random.below(8);
                text.push_str(&random.sentence(length));
                text.push_str(&(10 + random.below(9990)).to_string());
            }
            out.push(message(number, role, &text));
        }
    }
    vec![out]
}
