//! What was probably meant by a word that is not valid.

/// The name that is most likely meant, if one is close.
pub fn nearest<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    close(word, names).into_iter().next()
}

/// The names that may be meant, the most likely first, at most three.
pub fn nearest_few<'n>(word: &str, names: &[&'n str]) -> Vec<&'n str> {
    let mut close = close(word, names);
    close.truncate(3);
    close
}

fn close<'n>(word: &str, names: &[&'n str]) -> Vec<&'n str> {
    let word = word.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&word, &name.to_lowercase());
    let mut close: Vec<(f64, &str)> = names.iter().map(|name| (likeness(name), *name)).collect();
    close.retain(|(likeness, _)| *likeness >= 0.8);
    // Later names win among equals, as they always did in messages about settings.
    close.reverse();
    close.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    close.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::{nearest, nearest_few};

    #[test]
    fn nearest_is_a_slip_or_a_beginning_and_nothing_far() {
        let names = ["home", "listen", "projects", "acme_code", "acme_cli"];
        for (name, meant) in [
            ("hoome", Some("home")),
            ("hmoe", Some("home")),
            ("lisen", Some("listen")),
            ("project", Some("projects")),
            ("acme_cod", Some("acme_code")),
            ("Acme", Some("acme_cli")),
            ("port", None),
            ("database", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &names), meant, "{name}");
        }
        assert_eq!(nearest_few("acme", &names), ["acme_cli", "acme_code"]);
    }
}
