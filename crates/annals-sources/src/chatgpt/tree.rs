//! The tree of a conversation: the order of its nodes, and which are on the current branch.

use std::collections::{HashMap, HashSet};

use annals_core::{ContentKey, Time};

/// What the tree needs of a node.
#[derive(Debug, Clone)]
pub struct Twig {
    pub key: ContentKey,
    pub name: String,
    pub parent: Option<ContentKey>,
    /// The client's order of the nodes below; some exports have none.
    pub children: Vec<ContentKey>,
    pub at: Option<Time>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Branching {
    /// Parents before their children, siblings in their order.
    pub order: Vec<usize>,
    /// The parent of each, where it has one that can be reached.
    pub parents: Vec<Option<usize>>,
    /// On the branch that is shown.
    pub current: Vec<bool>,
    /// Nodes whose parent is nowhere.
    pub orphans: usize,
    /// Nodes that were their own ancestors.
    pub cycles: usize,
    pub leaves: usize,
}

/// `parent` is the truth; the lists of children only order siblings. Whatever the links say, every node comes once.
pub fn branching(twigs: &[Twig], shown: Option<ContentKey>) -> Branching {
    let by_key: HashMap<ContentKey, usize> =
        twigs.iter().enumerate().map(|(at, twig)| (twig.key, at)).collect();
    let mut tree = Branching {
        parents: twigs
            .iter()
            .map(|twig| twig.parent.and_then(|parent| by_key.get(&parent).copied()))
            .collect(),
        current: vec![false; twigs.len()],
        orphans: 0,
        ..Branching::default()
    };
    for (at, twig) in twigs.iter().enumerate() {
        tree.orphans += usize::from(twig.parent.is_some() && tree.parents[at].is_none());
    }
    tree.cycles = cut_cycles(&mut tree.parents);
    let below = children(twigs, &tree.parents);
    let mut stack: Vec<usize> =
        sorted(twigs, None, (0..twigs.len()).filter(|at| tree.parents[*at].is_none()));
    stack.reverse();
    while let Some(at) = stack.pop() {
        tree.order.push(at);
        tree.leaves += usize::from(below[at].is_empty());
        stack.extend(below[at].iter().rev());
    }
    let leaf = shown.and_then(|key| by_key.get(&key).copied()).or_else(|| latest_leaf(twigs, &tree, &below));
    let mut at = leaf;
    while let Some(node) = at {
        tree.current[node] = true;
        at = tree.parents[node];
    }
    tree
}

/// Where a walk up comes back to itself, the node that it began with loses its parent.
fn cut_cycles(parents: &mut [Option<usize>]) -> usize {
    let (mut done, mut cut) = (vec![false; parents.len()], 0);
    for start in 0..parents.len() {
        let mut walked = HashSet::new();
        let mut at = start;
        while !done[at] && walked.insert(at) {
            match parents[at] {
                Some(parent) if walked.contains(&parent) => {
                    parents[at] = None;
                    cut += 1;
                }
                Some(parent) => at = parent,
                None => {}
            }
        }
        for node in walked {
            done[node] = true;
        }
    }
    cut
}

fn children(twigs: &[Twig], parents: &[Option<usize>]) -> Vec<Vec<usize>> {
    let mut below = vec![Vec::new(); twigs.len()];
    for (at, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent {
            below[*parent].push(at);
        }
    }
    for (parent, nodes) in below.iter_mut().enumerate() {
        if nodes.len() > 1 {
            *nodes = sorted(twigs, Some(parent), std::mem::take(nodes).into_iter());
        }
    }
    below
}

/// As the client ordered them, then by time, then by name.
fn sorted(twigs: &[Twig], parent: Option<usize>, nodes: impl Iterator<Item = usize>) -> Vec<usize> {
    let places: HashMap<ContentKey, usize> = parent
        .map(|parent| twigs[parent].children.iter().enumerate().map(|(at, key)| (*key, at)).collect())
        .unwrap_or_default();
    let mut nodes: Vec<usize> = nodes.collect();
    nodes.sort_by_cached_key(|at| {
        let twig = &twigs[*at];
        let place = places.get(&twig.key).copied().unwrap_or(usize::MAX);
        (place, twig.at.map_or(i64::MAX, Time::micros), twig.name.clone())
    });
    nodes
}

/// The leaf on whose branch the last message is.
fn latest_leaf(twigs: &[Twig], tree: &Branching, below: &[Vec<usize>]) -> Option<usize> {
    let mut latest: Vec<Option<Time>> = vec![None; twigs.len()];
    let mut best: Option<usize> = None;
    for at in tree.order.iter().copied() {
        let above = tree.parents[at].and_then(|parent| latest[parent]);
        latest[at] = twigs[at].at.max(above);
        let is_better =
            best.is_none_or(|best| (latest[at], &twigs[at].name) > (latest[best], &twigs[best].name));
        if below[at].is_empty() && is_better {
            best = Some(at);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::{Twig, branching};
    use annals_core::{ContentKey, Time};
    use proptest::prelude::*;

    fn key(name: &str) -> ContentKey {
        ContentKey::of(&[name.as_bytes()])
    }

    fn twig(name: &str, parent: Option<&str>, children: &[&str], seconds: i64) -> Twig {
        Twig {
            key: key(name),
            name: name.into(),
            parent: parent.map(key),
            children: children.iter().map(|name| key(name)).collect(),
            at: (seconds > 0).then(|| Time::from_seconds(seconds)),
        }
    }

    fn branches_of(twigs: &[Twig], shown: Option<&str>) -> (String, String) {
        let tree = branching(twigs, shown.map(key));
        let names = |at: &usize| twigs[*at].name.clone();
        let order: Vec<String> = tree.order.iter().map(names).collect();
        let current: Vec<String> = tree.order.iter().filter(|at| tree.current[**at]).map(names).collect();
        (order.join(" "), current.join(" "))
    }

    #[test]
    fn parents_come_first_and_siblings_in_their_order() {
        let twigs = [
            twig("c", Some("a"), &[], 1),
            twig("b", Some("a"), &["d"], 9),
            twig("a", None, &["b", "c"], 5),
            twig("d", Some("b"), &[], 2),
        ];
        assert_eq!(branches_of(&twigs, Some("c")), ("a b d c".into(), "a c".into()));
        // Not a leaf: the branch ends there. Unknown or missing: where the last message is.
        assert_eq!(branches_of(&twigs, Some("b")).1, "a b");
        assert_eq!(branches_of(&twigs, Some("nowhere")).1, "a b d");
        assert_eq!(branches_of(&twigs, None).1, "a b d");
        let unordered: Vec<Twig> =
            twigs.iter().map(|twig| Twig { children: Vec::new(), ..twig.clone() }).collect();
        assert_eq!(branches_of(&unordered, None).0, "a c b d");
    }

    #[test]
    fn cycles_and_orphans_are_told_once() {
        let twigs = [
            twig("self", Some("self"), &[], 1),
            twig("x", Some("y"), &[], 2),
            twig("y", Some("x"), &[], 3),
            twig("lost", Some("gone"), &[], 4),
        ];
        let tree = branching(&twigs, None);
        assert_eq!((tree.order.len(), tree.orphans, tree.cycles), (4, 1, 2));
    }

    proptest! {
        #[test]
        fn every_node_comes_once_behind_its_parent(links in proptest::collection::vec(0..40usize, 0..40), shown in 0..40usize) {
            let name = |at: usize| format!("n{at}");
            let twigs: Vec<Twig> = links.iter().enumerate()
                .map(|(at, parent)| twig(&name(at), Some(&name(*parent)), &[], at as i64)).collect();
            let tree = branching(&twigs, Some(key(&name(shown))));
            let mut seen = vec![false; twigs.len()];
            for at in &tree.order {
                prop_assert!(!seen[*at]);
                prop_assert!(tree.parents[*at].is_none_or(|parent| seen[parent]));
                seen[*at] = true;
            }
            prop_assert_eq!(tree.order.len(), twigs.len());
        }
    }
}
