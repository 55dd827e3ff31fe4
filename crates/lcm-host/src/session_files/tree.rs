//! Finds the live branches of a session file whose entries form trees.
//!
//! In: entries in the order of the file, each with its id and its parent's id. Out: whether each
//! entry is live, the order in which no entry is before its parent, and the message before each
//! entry. The messages that are not live become branches.
//!
//! A file can have several trees, because a parent may be missing. Each tree has one live branch:
//! the last message of the tree in the file, and all ancestors of that message. Of trees with rival
//! roots, such as two wordings of the first prompt, only the one with the last message has one.

use std::collections::HashMap;

/// One entry, with its parent in the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// Id of the entry; `None`: no entry can have this entry as its parent.
    pub(super) id: Option<String>,
    /// Id of the parent; `None`, or an id that no entry has: the entry is a root.
    pub(super) continues: Option<String>,
    /// Whether the entry is a message, not a record of the program. A record may have any earlier
    /// entry as its parent, so the live branch ends with a record only in a tree without messages.
    pub(super) is_message: bool,
}

/// The trees of a file's entries.
#[derive(Debug)]
pub(super) struct Tree {
    /// Index of the parent of each entry; of several entries with the id of a parent, the first.
    parents: Vec<Option<usize>>,
    /// For each entry, the index of the first entry with its id, which has the place in the tree.
    firsts: Vec<usize>,
    is_message: Vec<bool>,
    /// Indexes of the roots that are rivals, in ascending order.
    rivals: Vec<usize>,
    /// For each recorded entry, the entry id of the newest message up to it.
    newest: HashMap<usize, Option<String>>,
}

impl Tree {
    /// Creates the trees of nodes in the order of the file.
    pub(super) fn new(nodes: &[Node]) -> Self {
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (index, node) in nodes.iter().enumerate() {
            if let Some(id) = &node.id {
                places.entry(id).or_insert(index);
            }
        }
        let place = |id: &Option<String>| id.as_deref().and_then(|id| places.get(id).copied());
        let first = |(index, node): (usize, &Node)| place(&node.id).unwrap_or(index);
        Self {
            parents: nodes.iter().map(|node| place(&node.continues)).collect(),
            firsts: nodes.iter().enumerate().map(first).collect(),
            is_message: nodes.iter().map(|node| node.is_message).collect(),
            rivals: Vec::new(),
            newest: HashMap::new(),
        }
    }

    /// Sets the roots of which one replaced the others. `rivals`: indexes in ascending order.
    pub(super) fn with_rivals(self, rivals: Vec<usize>) -> Self {
        Self { rivals, ..self }
    }

    /// Returns for each entry whether it is on the live branch of its tree. Of several entries with
    /// one id the first has a place in the tree, and the others get its result.
    pub(super) fn find_live(&self) -> Vec<bool> {
        let roots = find_roots(&self.parents);
        let mut live = vec![false; self.parents.len()];
        let mut decided = vec![false; self.parents.len()];
        let latest_first = || self.firsts.iter().copied().zip(&self.is_message).enumerate().rev();
        let messages = latest_first().filter(|(_, (_, is_message))| **is_message);
        for (index, (first, _)) in messages.chain(latest_first()) {
            if first != index {
                continue;
            }
            let Some(root) = roots.get(index).copied() else { continue };
            let is_rival = self.rivals.binary_search(&root).is_ok();
            let first_rival = self.rivals.first().copied().filter(|_| is_rival);
            let root = first_rival.unwrap_or(root);
            let Some(is_decided) = decided.get_mut(root) else { continue };
            // The latest entry of a tree ends the live branch of the tree.
            if !std::mem::replace(is_decided, true) {
                self.mark_ancestors(index, &mut live);
            }
        }
        let of_first = |first: &usize| live.get(*first).copied().unwrap_or_default();
        self.firsts.iter().map(of_first).collect()
    }

    /// Returns for each entry whether it is this entry or an ancestor of it.
    pub(super) fn find_ancestors(&self, index: usize) -> Vec<bool> {
        let mut live = vec![false; self.parents.len()];
        self.mark_ancestors(index, &mut live);
        live
    }

    /// Marks an entry and its ancestors, up to the first that is marked already.
    fn mark_ancestors(&self, index: usize, live: &mut [bool]) {
        let mut at = Some(index);
        while let Some(mark) = at.and_then(|at| live.get_mut(at)) {
            if std::mem::replace(mark, true) {
                break;
            }
            at = at.and_then(|at| self.parent(at));
        }
    }

    fn parent(&self, index: usize) -> Option<usize> {
        self.parents.get(index).copied().flatten()
    }

    /// Returns the indexes of the entries in the order of the file, but each entry behind its
    /// parent.
    pub(super) fn order_entries(&self) -> Vec<usize> {
        let parents = &self.parents;
        let mut order = Vec::with_capacity(parents.len());
        let mut waiting: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut is_placed = vec![false; parents.len()];
        for (index, parent) in parents.iter().enumerate() {
            let later = parent.filter(|parent| *parent > index);
            let behind = parent.filter(|parent| is_placed.get(*parent) == Some(&false));
            if let Some(parent) = later.or(behind.filter(|parent| *parent != index)) {
                waiting.entry(parent).or_default().push(index);
                continue;
            }
            let mut stack = Vec::from([index]);
            while let Some(next) = stack.pop() {
                order.push(next);
                is_placed.get_mut(next).into_iter().for_each(|placed| *placed = true);
                let children = waiting.remove(&next).unwrap_or_default();
                stack.extend(children.into_iter().rev());
            }
        }
        // Entries whose ancestors form a cycle.
        let rest = is_placed.iter().enumerate().filter(|(_, placed)| !**placed);
        order.extend(rest.map(|(index, _)| index));
        order
    }

    /// Returns the entry id of the newest message among the ancestors of an entry. Every entry is
    /// recorded after its parent, so this takes one step, except in a cycle.
    pub(super) fn message_before(&self, index: usize) -> Option<String> {
        let mut at = index;
        // A cycle has at most as many entries as the file.
        for _ in 0..self.parents.len() {
            at = self.parent(at)?;
            if let Some(newest) = self.newest.get(&at) {
                return newest.clone();
            }
        }
        None
    }

    /// Records the entry id of the last message of an entry; `None`: the entry has no message.
    pub(super) fn record_message(&mut self, index: usize, id: Option<String>) {
        let newest = id.or_else(|| self.message_before(index));
        self.newest.insert(index, newest);
    }
}

/// Returns the index of the root of each entry. Entries whose ancestors form a cycle are one tree.
fn find_roots(parents: &[Option<usize>]) -> Vec<usize> {
    let mut roots: Vec<Option<usize>> = vec![None; parents.len()];
    let mut walked: Vec<bool> = vec![false; parents.len()];
    for start in 0..parents.len() {
        let mut path = Vec::new();
        let mut at = start;
        let root = loop {
            if let Some(root) = roots.get(at).copied().flatten() {
                break root;
            }
            match walked.get_mut(at) {
                Some(walked) if !*walked => *walked = true,
                _ => break at,
            }
            path.push(at);
            match parents.get(at).copied().flatten() {
                Some(next) => at = next,
                None => break at,
            }
        };
        for index in path {
            if let Some(slot) = roots.get_mut(index) {
                *slot = Some(root);
            }
        }
    }
    roots.into_iter().enumerate().map(|(index, root)| root.unwrap_or(index)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(edges: &[(&str, &str)]) -> Vec<Node> {
        let some = |id: &str| (!id.is_empty()).then(|| id.to_owned());
        edges
            .iter()
            .map(|(id, on)| Node { id: some(id), continues: some(on), is_message: true })
            .collect()
    }

    fn live_of(edges: &[(&str, &str)]) -> String {
        let live = Tree::new(&nodes(edges)).find_live();
        edges.iter().zip(live).filter(|(_, live)| *live).map(|((id, _), _)| *id).collect()
    }

    #[test]
    fn the_branch_of_the_latest_entry_is_live() {
        assert_eq!(live_of(&[("a", ""), ("b", "a"), ("c", "b"), ("d", "a"), ("e", "d")]), "ade");
    }

    #[test]
    fn going_back_to_a_branch_makes_it_live_again() {
        assert_eq!(live_of(&[("a", ""), ("b", "a"), ("c", "a"), ("d", "b")]), "abd");
    }

    #[test]
    fn every_tree_has_a_live_branch() {
        assert_eq!(live_of(&[("a", ""), ("b", "a"), ("c", "gone"), ("d", "c")]), "abcd");
    }

    #[test]
    fn an_entry_that_comes_again_is_where_it_was() {
        assert_eq!(live_of(&[("a", ""), ("b", "a"), ("c", "a"), ("b", "a")]), "ac");
    }

    fn order_of(edges: &[(&str, &str)]) -> String {
        let order = Tree::new(&nodes(edges)).order_entries();
        order.into_iter().map(|index| edges[index].0).collect()
    }

    #[test]
    fn an_entry_is_behind_its_parent() {
        assert_eq!(order_of(&[("a", ""), ("b", "a"), ("c", "b")]), "abc");
        assert_eq!(order_of(&[("c", "b"), ("a", ""), ("d", "c"), ("b", "a")]), "abcd");
        assert_eq!(order_of(&[("a", "b"), ("b", "a"), ("c", "c")]), "cab");
    }

    #[test]
    fn of_rival_roots_the_last_one_is_live() {
        let edges = [("a", ""), ("b", "a"), ("x", ""), ("c", ""), ("d", "c")];
        let live = Tree::new(&nodes(&edges)).with_rivals(Vec::from([0, 3])).find_live();
        assert_eq!(live, [false, false, true, true, true]);
    }

    #[test]
    fn circles_end() {
        assert_eq!(live_of(&[("a", "b"), ("b", "a"), ("c", "c")]), "abc");
    }
}
