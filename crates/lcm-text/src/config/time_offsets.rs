//! Parses the value of `time_offsets`.
//!
//! Input: a JSON array. Output: [`TimeOffsets`].

use alloc::{format, string::String, vec::Vec};

use crate::base::{
    json::{self, JsonFields, JsonKind, JsonMember},
    time_offsets::{TimeOffset, TimeOffsets},
};

/// Most offsets of a list.
const OFFSETS_MAX: usize = 512;
/// Greatest distance to UTC in minutes.
const MINUTES_MAX: u32 = 1_439;
/// The rule for `time_offsets` in error messages.
const RULE: &str = "an array of at most 512 objects with `since` and `minutes`";

/// Parses the value of `time_offsets`. The error is the rule that the value breaks.
pub(super) fn read_offsets(raw: &str, value: &JsonMember) -> Result<TimeOffsets, String> {
    if value.kind != JsonKind::Array {
        return Err(RULE.into());
    }
    let elements = json::list_elements(raw, value.value);
    if elements.len() > OFFSETS_MAX {
        return Err(format!("{RULE}; it has {}", elements.len()));
    }
    let mut offsets: Vec<TimeOffset> = Vec::new();
    for (index, element) in elements.iter().enumerate() {
        let name = format!("offset {}", index + 1);
        let fault = |message: &str| format!("{RULE}; {name}: {message}");
        if element.kind != JsonKind::Object {
            return Err(fault("must be an object"));
        }
        let mut fields = JsonFields::new(raw, json::list_members(raw, element.span));
        let since = fields.take_u64("since");
        let minutes = read_minutes(&mut fields);
        fields.finish(&name).map_err(|error| format!("{RULE}; {}", error.message))?;
        if offsets.last().is_some_and(|last| last.since >= since) {
            return Err(fault("`since` must be later than that of the offset before"));
        }
        offsets.push(TimeOffset { since, offset_ms: minutes * 60_000 });
    }
    Ok(TimeOffsets::new(offsets))
}

/// Takes the minutes ahead of UTC, a whole number that may be negative.
fn read_minutes(fields: &mut JsonFields<'_>) -> i64 {
    const KEY: &str = "minutes";
    let given = fields.take_any(KEY);
    let text = given.filter(|(_, kind)| *kind == JsonKind::Number).map(|(text, _)| text);
    let minutes = text.and_then(|text| text.parse::<i64>().ok());
    let minutes = minutes.filter(|minutes| minutes.unsigned_abs() <= MINUTES_MAX.into());
    if minutes.is_none() {
        fields.reject_field(KEY, "a whole number from -1439 to 1439");
    }
    minutes.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crate::{base::time, config::parse};

    fn local(offsets: &str, at: &str) -> alloc::string::String {
        let config = parse(&alloc::format!("{{\"time_offsets\":{offsets}}}")).unwrap().0;
        time::iso_minutes(config.time_offsets.to_local(time::parse(at).unwrap()))
    }

    #[test]
    fn a_time_has_the_offset_that_began_last() {
        // Central European Time, and its summer of 2026.
        let berlin = r#"[{"since":0,"minutes":60},{"since":1774746000000,"minutes":120},
            {"since":1792890000000,"minutes":60}]"#;
        assert_eq!(local(berlin, "2026-03-29T00:59"), "2026-03-29 01:59");
        assert_eq!(local(berlin, "2026-03-29T01:00"), "2026-03-29 03:00");
        assert_eq!(local(berlin, "2026-12-31T23:30"), "2027-01-01 00:30");
        assert_eq!(local("[]", "2026-03-29T00:59"), "2026-03-29 00:59");
        let west = r#"[{"since":1774746000000,"minutes":-480}]"#;
        assert_eq!(local(west, "1970-01-01T09:00"), "1970-01-01 01:00");
        assert_eq!(local(west, "1970-01-01T00:00"), "1970-01-01 00:00");
    }

    #[test]
    fn a_list_that_is_none_is_refused_by_its_place() {
        for (offsets, wanted) in [
            ("{}", "must be an array of at most 512 objects"),
            ("[1]", "offset 1: must be an object"),
            (r#"[{"since":0}]"#, "`minutes` must be a whole number from -1439 to 1439"),
            (r#"[{"since":0,"minutes":1440}]"#, "from -1439 to 1439, got 1440"),
            (r#"[{"since":0,"minutes":0.5}]"#, "got 0.5"),
            (r#"[{"since":5,"minutes":0},{"since":5,"minutes":1}]"#, "offset 2: `since` must be"),
            (r#"[{"since":0,"minutes":0,"zone":"UTC"}]"#, "`zone` is not a known field"),
        ] {
            let error = parse(&alloc::format!("{{\"time_offsets\":{offsets}}}")).unwrap_err();
            assert!(error.message.contains(wanted), "{offsets}: {}", error.message);
        }
    }
}
