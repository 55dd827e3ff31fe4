//! The facts, the questions about them, and the conversation that contains them.

use lcm_testing::simulation::random::Random;
use serde_json::json;

/// Kinds of facts about a person: two wordings of the fact and one of the question.
const THINGS: [[&str; 3]; 20] = [
    [
        "the locker number of {e} is {v}",
        "for the record, {v} is the locker number of {e}",
        "What is the locker number of {e}?",
    ],
    [
        "{e} is allergic to {v}",
        "do not forget that {e} is allergic to {v}",
        "What is {e} allergic to?",
    ],
    [
        "{e} parks the car in bay {v}",
        "bay {v} is where {e} parks the car",
        "In which bay does {e} park the car?",
    ],
    [
        "the badge of {e} has the code {v}",
        "I gave {e} a new badge, its code is {v}",
        "Which code does the badge of {e} have?",
    ],
    ["{e} grew up in {v}", "before the move {e} grew up in {v}", "Where did {e} grow up?"],
    [
        "the dog of {e} is called {v}",
        "{e} has a dog now and called the dog {v}",
        "What is the dog of {e} called?",
    ],
    [
        "{e} ordered the chair {v}",
        "the chair that {e} ordered is {v}",
        "Which chair did {e} order?",
    ],
    [
        "{e}'s dentist is doctor {v}",
        "the dentist of {e} is a doctor {v}",
        "Who is the dentist of {e}?",
    ],
    [
        "{e}'s flight home is {v}",
        "the flight that {e} takes home is {v}",
        "Which flight does {e} take home?",
    ],
    [
        "{e} keeps the spare key under {v}",
        "the spare key of {e} is kept under {v}",
        "Where does {e} keep the spare key?",
    ],
    [
        "{e}'s thesis is about {v}",
        "in the thesis {e} writes about {v}",
        "What is the thesis of {e} about?",
    ],
    [
        "the invoice for {e} has the number {v}",
        "{e} got the invoice number {v}",
        "What is the number of the invoice for {e}?",
    ],
    [
        "{e} plays the instrument {v}",
        "the instrument that {e} plays is a {v}",
        "Which instrument does {e} play?",
    ],
    [
        "the router at {e}'s place has the password {v}",
        "{v} is the password of the router at {e}'s place",
        "What is the password of the router at {e}'s place?",
    ],
    [
        "{e} wants a {v} as a present",
        "as a present {e} wants a {v}",
        "What does {e} want as a present?",
    ],
    [
        "the tent of {e} stands on pitch {v}",
        "pitch {v} is where the tent of {e} stands",
        "On which pitch does the tent of {e} stand?",
    ],
    [
        "{e}'s supplier of coffee is {v}",
        "the coffee of {e} comes from the supplier {v}",
        "Who is {e}'s supplier of coffee?",
    ],
    [
        "the recipe of {e} needs a spoon of {v}",
        "a spoon of {v} belongs into the recipe of {e}",
        "What does the recipe of {e} need a spoon of?",
    ],
    [
        "{e}'s boat lies at mooring {v}",
        "the mooring of {e}'s boat is {v}",
        "At which mooring does {e}'s boat lie?",
    ],
    [
        "{e} was assigned to shift {v}",
        "the shift that {e} was assigned to is {v}",
        "Which shift was {e} assigned to?",
    ],
];
const FIRST_NAMES: [&str; 25] = [
    "Marta", "Jonas", "Ines", "Tobias", "Leila", "Anton", "Freya", "Mateo", "Nadia", "Oskar",
    "Priya", "Ruben", "Selma", "Viktor", "Wanda", "Yusuf", "Zora", "Bruno", "Clara", "Dario",
    "Elif", "Goran", "Hanna", "Igor", "Katya",
];
const LAST_NAMES: [&str; 20] = [
    "Lindholm", "Berger", "Okafor", "Moreau", "Castelli", "Novak", "Sandberg", "Ferreira",
    "Haddad", "Jensen", "Kowalski", "Lambert", "Meyer", "Nakamura", "Petrov", "Quist", "Romano",
    "Svensson", "Tanaka", "Weiss",
];
/// Texts around the facts.
const TALK: [&str; 24] = [
    "that reminds me of something else",
    "I will look at it in the afternoon",
    "the weather is supposed to turn on Thursday",
    "we still have to decide about the room",
    "nobody answered the phone at the office",
    "the second draft reads much better",
    "let us keep it simple this time",
    "the printer is out of order again",
    "I had hoped for a little more time",
    "the numbers of last week look fine",
    "she said that the meeting was long",
    "we can take the early train",
    "there is soup left in the kitchen",
    "the order has not come yet",
    "he wants to talk about the plan first",
    "it was quieter than I thought",
    "the list is on the table by the door",
    "somebody left the window open",
    "I would rather wait for the answer",
    "the road is closed until Monday",
    "they have changed the opening hours",
    "it works on my machine at least",
    "the new version is easier to read",
    "we should ask for a second offer",
];

/// The kind of message that contains a fact.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Shape {
    Sentence,
    Chat,
    LongAnswer,
    ToolResult,
}

impl Shape {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sentence => "a sentence of its own",
            Self::Chat => "a chat message",
            Self::LongAnswer => "a long answer",
            Self::ToolResult => "the output of a tool",
        }
    }
}

/// A fact, which is in one message only.
pub(crate) struct Fact {
    pub(crate) person: usize,
    pub(crate) thing: usize,
    pub(crate) shape: Shape,
    pub(crate) sentence: String,
    pub(crate) question: String,
    /// A word that occurs nowhere else.
    pub(crate) value: String,
}

/// Returns a made-up word or code, which is different for each number.
fn value(number: usize) -> String {
    const SYLLABLES: [&str; 10] = ["ba", "ke", "li", "mo", "ru", "sa", "te", "vi", "zo", "ny"];
    // The factor has no common divisor with 100,000, so near numbers get unlike values.
    let spread = (number * 27_143 + 31_337) % 100_000;
    let digits: Vec<usize> = (0..5).map(|place| spread / 10_usize.pow(place) % 10).collect();
    if number.is_multiple_of(2) {
        format!("K{}-{:05}", (b'A' + (digits[0] as u8)) as char, spread)
    } else {
        let word: String = digits.iter().map(|digit| SYLLABLES[*digit]).collect();
        format!("{word}x")
    }
}

/// Returns `count` facts about as many people as this needs, in the order of the conversation:
/// similar facts follow each other.
pub(crate) fn all(count: usize) -> Vec<Fact> {
    let mut random = Random::new(5);
    let people = FIRST_NAMES.len() * LAST_NAMES.len();
    // Each block is one thing of five people in a row, or five things of one.
    let mut places: Vec<Vec<(usize, usize)>> = Vec::new();
    let used = count.div_ceil(THINGS.len()).min(people);
    for group in 0..used.div_ceil(5) {
        for row in 0..THINGS.len() {
            let member = |at: usize| group * 5 + at;
            let block = if group % 2 == 0 {
                (0..5).map(|at| (member(at), row)).collect()
            } else {
                let person = member(row % 5);
                (0..5).map(|at| (person, row / 5 * 5 + at)).collect()
            };
            places.push(block);
        }
    }
    for at in (1..places.len()).rev() {
        places.swap(at, (random.next() % (at as u64 + 1)) as usize);
    }
    let fact = |(number, (person, thing)): (usize, (usize, usize))| {
        let name = format!(
            "{} {}",
            FIRST_NAMES[person / LAST_NAMES.len()],
            LAST_NAMES[person % LAST_NAMES.len()]
        );
        let value = value(number);
        let [said, said_otherwise, asked] = THINGS[thing];
        let said = if random.chance(700) { said } else { said_otherwise };
        Fact {
            person,
            thing,
            shape: match random.between(0, 9) {
                0..4 => Shape::Sentence,
                4..7 => Shape::Chat,
                7..9 => Shape::LongAnswer,
                _ => Shape::ToolResult,
            },
            sentence: said.replace("{v}", &value).replace("{e}", &name),
            question: asked.replace("{e}", &name),
            value,
        }
    };
    places.into_iter().flatten().take(count).enumerate().map(fact).collect()
}

fn talk(random: &mut Random, sentences: u64) -> String {
    let sentences: Vec<&str> = (0..sentences).map(|_| *random.pick(&TALK)).collect();
    sentences.join(". ")
}

/// Returns the conversation: facts with other texts between and around them, in sessions of forty
/// messages.
pub(crate) fn messages(facts: &[Fact]) -> Vec<String> {
    let mut random = Random::new(6);
    let mut out: Vec<serde_json::Value> = Vec::new();
    for (number, fact) in facts.iter().enumerate() {
        let Fact { sentence, .. } = fact;
        let (before, behind) = (random.between(1, 4), random.between(1, 4));
        let message = match fact.shape {
            Shape::Sentence => json!({"role": "user", "content": format!("{sentence}.")}),
            Shape::Chat => json!({"role": "user", "content": format!("{}. {sentence}. {}",
                talk(&mut random, before), talk(&mut random, behind))}),
            Shape::LongAnswer => {
                json!({"role": "assistant", "content": format!("{}. {sentence}. {}",
                talk(&mut random, 5 * before), talk(&mut random, 5 * behind))})
            }
            Shape::ToolResult => {
                out.push(json!({"role": "assistant", "parts": [{"type": "tool_call",
                    "id": format!("t{number}"), "name": "read_notes", "input": {"page": number}}]}));
                let (before, behind) = (talk(&mut random, before), talk(&mut random, behind));
                json!({"role": "tool", "parts": [{"type": "tool_result",
                    "call_id": format!("t{number}"), "name": "read_notes",
                    "output": format!("{before}\n{sentence}\n{behind}")}]})
            }
        };
        out.push(message);
        if random.chance(600) {
            let sentences = random.between(1, 3);
            out.push(json!({"role": "assistant", "content": talk(&mut random, sentences)}));
        }
    }
    let begin = super::NOW_MS - 300 * 86_400_000;
    for (number, message) in out.iter_mut().enumerate() {
        let number = number as u64;
        message["timestamp"] = json!(begin + number * 60_000 + number / 40 * 3_600_000);
    }
    out.iter().map(serde_json::Value::to_string).collect()
}
