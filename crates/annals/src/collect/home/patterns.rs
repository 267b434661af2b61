//! Patterns of footprints: `*` matches anything within a component of a path, `**` any number of components, `{a,b}`
//! either alternative. Every file of a home is matched against all patterns, so this has to be fast.

use std::collections::HashMap;

pub struct Patterns {
    /// Expanded patterns in order, each with the index of the original.
    all: Vec<(usize, Vec<Part>)>,
    /// Patterns by the first component that a path must have, and patterns that any path may match.
    by_first: HashMap<String, Vec<usize>>,
    others: Vec<usize>,
}

#[derive(Debug)]
enum Part {
    /// `**`
    Any,
    Plain(String),
    /// The text before, between and after stars.
    Starred(Vec<String>),
}

impl Patterns {
    pub fn of<'p>(patterns: impl Iterator<Item = &'p str>) -> Patterns {
        let mut all: Vec<(usize, Vec<Part>)> = Vec::new();
        for (number, pattern) in patterns.enumerate() {
            all.extend(expand(pattern).iter().map(|text| (number, text.split('/').map(Part::of).collect())));
        }
        let first = |at: usize| match all[at].1.first() {
            Some(Part::Plain(name)) => Some(name.as_str()),
            Some(Part::Any | Part::Starred(_)) | None => None,
        };
        let fitting = |name: Option<&str>| -> Vec<usize> {
            (0..all.len()).filter(|at| first(*at).is_none_or(|first| Some(first) == name)).collect()
        };
        let names = (0..all.len()).filter_map(first);
        let by_first = names.map(|name| (name.to_owned(), fitting(Some(name)))).collect();
        let others = fitting(None);
        Patterns { all, by_first, others }
    }

    /// The first pattern that matches a path with `/` between its components.
    pub fn first(&self, path: &str) -> Option<usize> {
        let parts: Vec<&str> = path.split('/').collect();
        let may_fit = self.by_first.get(parts[0]).unwrap_or(&self.others);
        may_fit
            .iter()
            .map(|at| &self.all[*at])
            .find(|(_, pattern)| matches_parts(pattern, &parts))
            .map(|(at, _)| *at)
    }
}

/// Expands `a{b,c}d` to `abd` and `acd`.
fn expand(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else { return vec![pattern.to_owned()] };
    let Some((within, behind)) = rest.split_once('}') else { return vec![pattern.to_owned()] };
    let behind = expand(behind);
    within
        .split(',')
        .flat_map(|choice| behind.iter().map(move |behind| format!("{before}{choice}{behind}")))
        .collect()
}

fn matches_parts(pattern: &[Part], path: &[&str]) -> bool {
    let Some((first, others)) = pattern.split_first() else { return path.is_empty() };
    if !matches!(first, Part::Any) {
        let Some((name, rest)) = path.split_first() else { return false };
        return first.is(name) && matches_parts(others, rest);
    }
    // `folder/**` matches what is below the folder, not the folder.
    let least = others.len().max(1);
    let Some(most) = path.len().checked_sub(least) else { return false };
    match others.iter().any(|part| matches!(part, Part::Any)) {
        true => (0..path.len()).any(|skipped| matches_parts(others, &path[skipped..])),
        // The remaining parts must match the end of the path.
        false => others.is_empty() || matches_parts(others, &path[most..]),
    }
}

impl Part {
    fn of(text: &str) -> Part {
        match text {
            "**" => Part::Any,
            _ if text.contains('*') => Part::Starred(text.split('*').map(str::to_owned).collect()),
            _ => Part::Plain(text.to_owned()),
        }
    }

    fn is(&self, name: &str) -> bool {
        let pieces = match self {
            Part::Any => return true,
            Part::Plain(text) => return text == name,
            Part::Starred(pieces) => pieces,
        };
        let [first, middle @ .., last] = pieces.as_slice() else { return false };
        let Some(mut rest) = name.strip_prefix(first.as_str()) else { return false };
        for piece in middle {
            let Some(at) = rest.find(piece.as_str()) else { return false };
            rest = &rest[at + piece.len()..];
        }
        rest.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
    use proptest::prelude::*;

    use super::*;
    use annals_sources::registry;

    fn declared() -> Vec<&'static str> {
        let footprints = registry().iter().map(|source| &source.manifest().footprint);
        footprints
            .flat_map(|footprint| footprint.rules.iter().chain(footprint.repository_rules))
            .map(|rule| rule.pattern)
            .collect()
    }

    fn as_globs(patterns: &[&str]) -> GlobSet {
        let mut builder = GlobSetBuilder::new();
        for pattern in patterns {
            builder.add(GlobBuilder::new(pattern).literal_separator(true).build().unwrap());
        }
        builder.build().unwrap()
    }

    #[test]
    fn patterns_match_as_documented() {
        let table = [
            ("a/*.json", "a/b.json", true),
            ("a/*.json", "a/b/c.json", false),
            ("a/*.json", "a/.json", true),
            ("a/**", "a/b/c", true),
            ("a/**", "a", false),
            ("**/x.key", "x.key", true),
            ("**/*.key", "a/b/c.key", true),
            ("a/**/b.txt", "a/b.txt", true),
            ("a/**/b.txt", "a/c/d/b.txt", true),
            ("{a,b}/c{1,2}", "b/c2", true),
            ("{a,b}/c{1,2}", "b/c3", false),
            ("rollout-*-*.jsonl", "rollout-1-2.jsonl", true),
            ("rollout-*-*.jsonl", "rollout-1.jsonl", false),
            ("a*a", "a", false),
        ];
        for (pattern, path, expected) in table {
            let fits = Patterns::of([pattern].into_iter()).first(path).is_some();
            assert_eq!(fits, expected, "{pattern} {path}");
            assert_eq!(as_globs(&[pattern]).is_match(path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn declared_patterns_say_nothing_else() {
        for pattern in declared() {
            assert!(!pattern.contains(['?', '[', ']', '!', '\\']), "{pattern}");
            let nested = pattern.split('{').skip(1).any(|part| part.split_once('}').is_none());
            assert!(!nested, "{pattern}");
            let odd = pattern.split('/').any(|part| part.contains("**") && part != "**");
            assert!(!odd, "{pattern}");
        }
    }

    proptest! {
        /// Paths built from parts of the patterns match the same as with globset.
        #[test]
        fn all_declared_patterns_match_like_globs(picks in proptest::collection::vec((0..4000_usize, "[a-z.]{0,3}"), 1..6)) {
            let patterns = declared();
            let words: Vec<String> = patterns
                .iter()
                .flat_map(|pattern| expand(pattern))
                .flat_map(|choice| choice.split('/').map(str::to_owned).collect::<Vec<_>>())
                .collect();
            let part = |(pick, noise): &(usize, String)| words[pick % words.len()].replace('*', noise);
            let parts: Vec<String> = picks.iter().map(part).filter(|part| !part.is_empty()).collect();
            prop_assume!(!parts.is_empty());
            let path = parts.join("/");
            let expected = as_globs(&patterns).matches(&path).first().copied();
            prop_assert_eq!(Patterns::of(patterns.iter().copied()).first(&path), expected, "{}", path);
        }
    }
}
