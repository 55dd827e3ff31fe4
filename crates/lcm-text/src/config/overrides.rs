//! Parses the overrides of a configuration, and finds the override that applies to a call.
//!
//! Input: rules as JSON; model, session and budget of a call. Output: the rules, and the index of
//! the rule that applies, if any.

use alloc::{format, string::String, vec::Vec};

use super::{
    config_override::{ConfigOverride, OverrideContext},
    decimal::scale_decimal,
    engine_config::Config,
};
use crate::base::{
    error::{Error, Result},
    json::{self, JsonFields, JsonKind},
};

/// Most rules of one configuration, because every call is compared with every rule.
const RULES_MAX: usize = 64;

impl Config {
    /// Returns the index of the rule that applies: of the rules whose conditions hold, the first
    /// with the greatest weight; `None`: no rule applies.
    #[must_use]
    pub fn find_override(&self, call: &OverrideContext<'_>) -> Option<usize> {
        let mut best: Option<(u32, usize)> = None;
        for (index, rule) in self.context_threshold_overrides.iter().enumerate() {
            if let Some(weight) = rule.match_weight(call)
                && best.is_none_or(|(greatest, _)| weight > greatest)
            {
                best = Some((weight, index));
            }
        }
        best.map(|(_, index)| index)
    }

    /// Returns whether any rule has a condition on the session.
    pub fn has_session_overrides(&self) -> bool {
        self.context_threshold_overrides.iter().any(|rule| rule.session.is_some())
    }
}

/// Parses the rules.
///
/// # Errors
///
/// `invalid-input`: more than [`RULES_MAX`] rules. Or, with the number of the rule from 1: no
/// object, an unknown field, a value out of bounds, no condition, no setting, or `window_min` above
/// `window_max`.
///
/// The conditions may also be in an object `match`, under the names of the reference system, and a
/// rule may have a `name`, which has no effect.
pub(super) fn read_overrides(raw: &str, list: &[json::JsonValue]) -> Result<Vec<ConfigOverride>> {
    if list.len() > RULES_MAX {
        return Err(Error::invalid_input(format_args!(
            "the array must have at most {RULES_MAX} rules, got {}",
            list.len()
        )));
    }
    let mut rules = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let name = format!("rule {}", index + 1);
        if value.kind != JsonKind::Object {
            return Err(Error::invalid_input(format_args!("{name}: must be an object")));
        }
        rules.push(read_rule(&name, JsonFields::new(raw, json::list_members(raw, value.span)))?);
    }
    Ok(rules)
}

fn read_rule(name: &str, mut fields: JsonFields<'_>) -> Result<ConfigOverride> {
    fields.take_optional_text("name");
    let nested = read_match(name, &mut fields)?;
    let rule = ConfigOverride {
        model: fields.take_optional_text("model").or(nested.model),
        session: fields.take_optional_text("session").or(nested.session),
        window_min: fields.take_optional_u32("window_min").or(nested.window_min),
        window_max: fields.take_optional_u32("window_max").or(nested.window_max),
        context_threshold_permille: read_permille(&mut fields),
        fresh_tail_messages_max: read_aliased_number(
            &mut fields,
            ["fresh_tail_messages_max", "freshTailCount"],
        ),
        leaf_chunk_tokens_max: read_aliased_number(
            &mut fields,
            ["leaf_chunk_tokens_max", "leafChunkTokens"],
        ),
    };
    let blank = |text: &Option<String>| text.as_ref().is_some_and(String::is_empty);
    let window_bounds = [rule.window_min, rule.window_max].iter().flatten().count();
    let sets =
        [rule.context_threshold_permille, rule.fresh_tail_messages_max, rule.leaf_chunk_tokens_max];
    let fault = if blank(&rule.model) || blank(&rule.session) {
        Some("`model` and `session` must not be empty")
    } else if rule.model.is_none() && rule.session.is_none() && window_bounds == 0 {
        Some("must have `model`, `session`, `window_min` or `window_max`")
    } else if sets.iter().all(Option::is_none) {
        Some(
            "must set `context_threshold_permille`, `fresh_tail_messages_max` or \
             `leaf_chunk_tokens_max`",
        )
    } else if rule.leaf_chunk_tokens_max == Some(0) {
        Some("`leaf_chunk_tokens_max` must be at least 1, got 0")
    } else if rule.window_min.zip(rule.window_max).is_some_and(|(min, max)| min > max) {
        Some("`window_min` must be at most `window_max`")
    } else {
        None
    };
    fields.finish(name)?;
    match fault {
        Some(fault) => Err(Error::invalid_input(format_args!("{name}: {fault}"))),
        None => Ok(rule),
    }
}

/// Takes the conditions in `match`, the form of the reference system; without it no condition.
fn read_match(name: &str, fields: &mut JsonFields<'_>) -> Result<ConfigOverride> {
    const MATCH: &str = "match";
    let Some((text, kind)) = fields.take_any(MATCH) else { return Ok(ConfigOverride::default()) };
    if kind != JsonKind::Object {
        fields.reject_field(MATCH, "an object");
        return Ok(ConfigOverride::default());
    }
    let mut fields = JsonFields::parse_argument(MATCH, &text)?;
    let conditions = ConfigOverride {
        model: fields.take_optional_text("model"),
        session: fields.take_optional_text("sessionPattern"),
        window_min: fields.take_optional_u32("modelContextWindowMin"),
        window_max: fields.take_optional_u32("modelContextWindowMax"),
        ..ConfigOverride::default()
    };
    fields.finish(&format!("{name}: `{MATCH}`"))?;
    Ok(conditions)
}

/// Takes a number by its own name, or else by its alias, the name of the reference system.
fn read_aliased_number(fields: &mut JsonFields<'_>, [ours, alias]: [&str; 2]) -> Option<u32> {
    let aliased = fields.take_optional_u32(alias);
    fields.take_optional_u32(ours).or(aliased)
}

/// Takes a threshold in thousandths by its own name, or else a decimal from 0 to 1 by its alias,
/// the name of the reference system.
fn read_permille(fields: &mut JsonFields<'_>) -> Option<u32> {
    const OURS: &str = "context_threshold_permille";
    const ALIAS: &str = "contextThreshold";
    let mut found = None;
    if let Some((text, kind)) = fields.take_any(ALIAS) {
        let decimal =
            scale_decimal(&text, 3).filter(|s| kind == JsonKind::Number && s.floor <= 1000);
        match decimal.filter(|s| s.floor < 1000 || s.exact) {
            Some(s) => found = u32::try_from(s.floor + u64::from(s.rounds_up)).ok(),
            None => fields.reject_field(ALIAS, "a number from 0 to 1"),
        }
    }
    if let Some(ours) = fields.take_optional_u32(OURS) {
        if ours > 1000 {
            fields.reject_field(OURS, "a whole number from 0 to 1000");
        }
        found = Some(ours);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{budget_policy::BudgetPolicy, parse};

    fn config(rules: &str) -> Config {
        parse(&format!("{{\"contextThresholdOverrides\":{rules}}}")).unwrap().0
    }

    fn policy(config: &Config, model: Option<&str>, session: &str, budget: u32) -> BudgetPolicy {
        let rule = config.find_override(&OverrideContext { model, session, budget });
        config.derive_policy_with(budget, rule).unwrap()
    }

    #[test]
    fn the_rule_that_names_most_wins_and_of_equal_ones_the_first() {
        let config = config(
            r#"[{"window_min":1000,"context_threshold_permille":100},
                {"session":"agent:*","context_threshold_permille":200},
                {"session":"agent:b*","context_threshold_permille":300},
                {"window_min":5000,"window_max":6000,"contextThreshold":0.4},
                {"model":"big-*","contextThreshold":0.5,"freshTailCount":3,"leafChunkTokens":77}]"#,
        );
        let threshold = |session, budget| policy(&config, None, session, budget).threshold;
        assert_eq!(threshold("agent:b", 1_000), 200);
        assert_eq!(threshold("other", 1_000), 100);
        assert_eq!(threshold("other", 999), 749);
        assert_eq!(threshold("other", 5_000), 2_000);
        assert_eq!(threshold("other", 7_000), 700);
        let of_model = policy(&config, Some("big-2"), "agent:b", 1_000);
        assert_eq!((of_model.threshold, of_model.fresh_tail_messages_max), (500, 3));
        assert_eq!(of_model.leaf_chunk_tokens_max, 77);
        assert_eq!(policy(&config, Some("small"), "other", 500).threshold, 375);
    }

    #[test]
    fn conditions_may_be_nested_as_in_the_reference() {
        let config = config(
            r#"[{"name":"large","match":{"modelContextWindowMin":900},"contextThreshold":0.15,
                 "freshTailCount":16},
                {"name":"phone","match":{"sessionPattern":"agent:*:phone:**"},
                 "contextThreshold":0.3},
                {"match":{"model":"big","modelContextWindowMax":2000},"leafChunkTokens":5}]"#,
        );
        let large = policy(&config, None, "agent:a", 1_000);
        assert_eq!((large.threshold, large.fresh_tail_messages_max), (150, 16));
        assert_eq!(policy(&config, None, "agent:a:phone:1:2", 1_000).threshold, 300);
        assert_eq!(policy(&config, Some("big"), "agent:a", 1_000).leaf_chunk_tokens_max, 5);
        assert_eq!(policy(&config, Some("big"), "agent:a", 3_000).threshold, 450);
    }

    #[test]
    fn a_rule_that_is_none_is_refused_by_its_place() {
        for (rules, wanted) in [
            ("{}", "`contextThresholdOverrides` must be an array of rules"),
            ("[1]", "rule 1: must be an object"),
            (r#"[{"model":"m","leafChunkTokens":1},{"model":"m"}]"#, "rule 2: must set"),
            (r#"[{"leafChunkTokens":1}]"#, "rule 1: must have `model`"),
            (r#"[{"model":"m","leafChunkTokens":0}]"#, "rule 1: `leaf_chunk_tokens_max`"),
            (r#"[{"model":"","leafChunkTokens":1}]"#, "must not be empty"),
            (r#"[{"model":"m","contextThreshold":1.5}]"#, "rule 1: `contextThreshold` must be"),
            (r#"[{"model":"m","context_threshold_permille":1001}]"#, "from 0 to 1000"),
            (r#"[{"window_min":2,"window_max":1,"leafChunkTokens":1}]"#, "must be at most"),
            (r#"[{"match":5,"leafChunkTokens":1}]"#, "rule 1: `match` must be an object, got 5"),
            (r#"[{"match":{},"leafChunkTokens":1}]"#, "rule 1: must have `model`"),
            (
                r#"[{"match":{"session":"a"},"leafChunkTokens":1}]"#,
                "rule 1: `match`: `session` is not a known field",
            ),
            (
                r#"[{"match":{"modelContextWindowMin":2,"modelContextWindowMax":1},
                    "leafChunkTokens":1}]"#,
                "must be at most",
            ),
            (r#"[{"model":"m","leafChunkTokens":1,"x":1}]"#, "rule 1: `x` is not a known field"),
        ] {
            let json = format!("{{\"contextThresholdOverrides\":{rules}}}");
            let error = parse(&json).unwrap_err().into_failure().message;
            assert!(error.contains(wanted), "{rules}: {error}");
        }
    }
}
