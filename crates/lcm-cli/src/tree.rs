//! Draws the tree of summaries for `lcm summaries --tree`.
//!
//! In: summaries with the ids of their source summaries. Out: lines with box characters.

use std::collections::{BTreeMap, BTreeSet};

/// A summary in the tree.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) id: String,
    /// Text of the summary's line.
    pub(crate) label: String,
    /// Ids of the source summaries, in order.
    pub(crate) sources: Vec<String>,
}

/// Draws the tree: a summary that is no source of another summary is a root, above its sources.
pub(crate) fn draw(nodes: &[Node]) -> String {
    let by_id: BTreeMap<&str, &Node> = nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let used: BTreeSet<&str> =
        nodes.iter().flat_map(|node| node.sources.iter().map(String::as_str)).collect();
    let mut out = String::new();
    // Depth first. The stack has the prefix of a node's line, the prefix of the lines below the
    // node, and the node.
    let mut stack: Vec<(String, String, &Node)> = nodes
        .iter()
        .rev()
        .filter(|node| !used.contains(node.id.as_str()))
        .map(|node| (String::new(), String::new(), node))
        .collect();
    while let Some((line, below, node)) = stack.pop() {
        out.push_str(&line);
        out.push_str(&node.label);
        out.push('\n');
        let sources: Vec<&&Node> =
            node.sources.iter().filter_map(|id| by_id.get(id.as_str())).collect();
        for (index, source) in sources.iter().enumerate().rev() {
            let (branch, under) =
                if index + 1 == sources.len() { (LAST, NOTHING) } else { (BRANCH, TRUNK) };
            stack.push((format!("{below}{branch}"), format!("{below}{under}"), source));
        }
    }
    out
}

const BRANCH: &str = "\u{251c}\u{2500} ";
const LAST: &str = "\u{2514}\u{2500} ";
const TRUNK: &str = "\u{2502}  ";
const NOTHING: &str = "   ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_stand_below_what_was_made_from_them() {
        let node = |id: &str, sources: &[&str]| Node {
            id: id.into(),
            label: id.into(),
            sources: sources.iter().map(|id| (*id).into()).collect(),
        };
        let nodes = [
            node("a", &[]),
            node("b", &[]),
            node("top", &["mid", "c"]),
            node("mid", &["a", "b"]),
            node("c", &[]),
            node("alone", &[]),
        ];
        let picture = draw(&nodes);
        let expected = "top\n\u{251c}\u{2500} mid\n\u{2502}  \u{251c}\u{2500} a\n\
            \u{2502}  \u{2514}\u{2500} b\n\u{2514}\u{2500} c\nalone\n";
        assert_eq!(picture, expected);
    }
}
