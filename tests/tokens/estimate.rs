//! Prints the estimated tokens of texts: `estimate <TEXTS`
//!
//! Input: lines of JSON with a member `text`. Output: for each the estimate, in a line of its own.
//! `tests/tokens/run` compares the estimates with the counts of tokenizers.

use std::{error::Error, io};

use lcm_text::base::tokens;
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    for line in io::stdin().lines() {
        let line: Value = serde_json::from_str(&line?)?;
        let text = line.get("text").and_then(Value::as_str).ok_or("a line without `text`")?;
        println!("{}", tokens::estimate(text));
    }
    Ok(())
}
