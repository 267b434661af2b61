//! The help pages: verbs in groups, own options before global ones, two examples for each verb.

use clap::Command;

use annals_sources::registry;

/// Every verb in the group in which `annals --help` lists it.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Daily", &["up", "search", "sessions", "show", "resume", "usage", "day", "week", "month", "tools"]),
    ("Arrange", &["star", "tag", "name", "note", "hide", "searches"]),
    ("Understand", &["blame", "library", "sources", "records", "manifest"]),
    ("Export", &["export", "tape", "record", "restore"]),
    ("Agents", &["mcp", "skill"]),
    ("Trust", &["audit", "doctor", "repair", "secrets", "gaps", "forget", "trash", "retain"]),
    (
        "Admin",
        &[
            "sync", "watch", "service", "import", "connect", "serve", "push", "pull", "members", "access",
            "config", "rebuild",
        ],
    ),
    ("Terminal", &["statusline", "completions", "man", "help", "version"]),
];

/// `{source}`, `{client}`, `{live}` and `{format}` are replaced by names from the registry of sources.
const EXAMPLES: &[(&str, [&str; 2])] = &[
    ("up", ["annals up --open", "annals up --no-serve"]),
    (
        "search",
        ["annals search connection pool timeout", "annals search \"retry policy\" since:30d --sort recent"],
    ),
    ("sessions", ["annals sessions --since 7d", "annals sessions --project . --include-subagents"]),
    ("show", ["annals show 0199c2f4 --view prompts", "annals show 0199c2f4 --follow"]),
    ("resume", ["annals resume", "annals resume connection pool --print"]),
    ("usage", ["annals usage --days 7", "annals usage --days all --by model"]),
    ("tools", ["annals tools --days 90", "annals tools --source {source} --json"]),
    ("star", ["annals star 0199c2f4", "annals star 0199c2f4 --remove"]),
    ("tag", ["annals tag 0199c2f4 refactoring to-do", "annals tag --project . work"]),
    ("name", ["annals name 0199c2f4 Retry policy of the queue", "annals name 0199c2f4 --remove"]),
    ("note", ["annals note 0199c2f4 \"See the *second* answer.\"", "annals note 0199c2f4 --file note.md"]),
    ("hide", ["annals hide 0199c2f4", "annals hide --project scratch --remove"]),
    ("searches", ["annals searches", "annals searches --remove failures"]),
    ("blame", ["annals blame src/main.rs:10-40", "annals blame --stat src"]),
    ("library", ["annals library --as-of 2026-03-01", "annals library --kind skills"]),
    ("sources", ["annals sources", "annals sources --files --json"]),
    ("records", ["annals records {source}/messages --limit 10", "annals records {source}/sessions --jsonl"]),
    ("manifest", ["annals manifest {source}", "annals manifest {source} --json"]),
    (
        "export",
        ["annals export 0199c2f4 --to session.html", "annals export --all --format parquet --to tables"],
    ),
    ("tape", ["annals tape 0199c2f4", "annals tape --all --to tapes"]),
    (
        "record",
        [
            "annals record session.jsonl --format {format}",
            "annals record --stdin --format {format} --strict < session.jsonl",
        ],
    ),
    ("restore", ["annals restore --to restored", "annals restore --source {source} --to restored"]),
    ("mcp", ["annals mcp install {client}", "annals mcp remove {client}"]),
    ("skill", ["annals skill install", "annals skill print"]),
    ("audit", ["annals audit", "annals audit --fail-under 100"]),
    ("doctor", ["annals doctor", "annals doctor --deep"]),
    ("repair", ["annals repair --dry-run", "annals repair"]),
    ("secrets", ["annals secrets --since 30d", "annals secrets --project ."]),
    ("gaps", ["annals gaps --all", "annals gaps retry"]),
    ("forget", ["annals forget 0199c2f4 --dry-run", "annals forget --text Lighthouse --verify"]),
    ("retain", ["annals retain --dry-run", "annals retain --apply"]),
    ("trash", ["annals trash", "annals trash restore 3"]),
    ("sync", ["annals sync", "annals sync {source} --since 7d"]),
    ("watch", ["annals watch", "annals watch --quiet"]),
    ("service", ["annals service install", "annals service install --no-http --print"]),
    ("import", ["annals import export.zip", "annals import --git ."]),
    ("connect", ["annals connect {live}", "annals connect {live} --remove"]),
    ("serve", ["annals serve --open", "annals serve --listen 127.0.0.1:8080 --no-sync"]),
    (
        "push",
        [
            "annals push https://hub.example.org --token-file token --dry-run",
            "annals push https://hub.example.org --token-file token --watch",
        ],
    ),
    (
        "pull",
        [
            "annals pull https://hub.example.org --token-file token",
            "annals pull https://10.0.0.7:4848 --token-file token --ca ca.pem",
        ],
    ),
    ("members", ["annals members add ada", "annals members token ada --rotate --expires 90d"]),
    ("access", ["annals access --member ada", "annals access https://hub.example.org --token-file token"]),
    ("config", ["annals config", "annals config path"]),
    ("rebuild", ["annals rebuild", "annals rebuild --json"]),
    ("day", ["annals day", "annals day yesterday"]),
    ("week", ["annals week", "annals week last week --json"]),
    ("month", ["annals month", "annals month march"]),
    ("statusline", ["annals statusline", "annals statusline --json"]),
    ("completions", ["annals completions bash", "annals completions fish"]),
    ("man", ["annals man show", "annals man --to ~/.local/share/man/man1"]),
    ("help", ["annals help", "annals help sessions"]),
    ("version", ["annals version", "annals version --json"]),
];

/// The command line with the help pages of this file.
pub fn with_help(command: Command) -> Command {
    let template = template(&command);
    let command = command.mut_subcommands(|verb| {
        let examples = examples(&verb);
        let text = match verb.get_after_help() {
            Some(more) => format!("{more}\n\n{examples}"),
            None => examples,
        };
        verb.after_help(text)
    });
    command.help_template(template)
}

fn template(command: &Command) -> String {
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, verbs) in GROUPS {
        text.push_str(&format!("\n{header}{title}:{header:#}\n"));
        for verb in verbs.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            let name = verb.get_name();
            text.push_str(&format!("  {literal}{name:<11}{literal:#} {about}\n"));
        }
    }
    text.push_str(&format!("\n{header}Global options:{header:#}\n{{options}}{{after-help}}"));
    text
}

fn examples(verb: &Command) -> String {
    let styles = verb.get_styles();
    let header = styles.get_header();
    let mut text = format!("{header}Examples:{header:#}");
    let own = EXAMPLES.iter().find(|(name, _)| *name == verb.get_name());
    for example in own.iter().flat_map(|(_, examples)| examples) {
        text.push_str(&format!("\n  {}", fill_in(example)));
    }
    text
}

fn fill_in(example: &str) -> String {
    let name = |found: Option<&str>| found.unwrap_or("SOURCE").to_owned();
    let mut sources = registry().iter();
    let source = name(sources.clone().map(|source| source.manifest().source).next());
    let live =
        name(sources.clone().find(|source| source.live().is_some()).map(|source| source.manifest().source));
    let format = name(sources.find_map(|source| source.recorder()).map(|recorder| recorder.form().format));
    let client = source.split('_').next().unwrap_or(&source);
    example
        .replace("{client}", client)
        .replace("{source}", &source)
        .replace("{live}", &live)
        .replace("{format}", &format)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Arguments;

    #[test]
    fn every_verb_is_in_one_group() {
        let mut verbs: Vec<String> =
            Arguments::command().get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        verbs.sort();
        grouped.sort_unstable();
        assert_eq!(verbs, grouped);
        let help = with_help(Arguments::command()).render_help().to_string();
        for verb in verbs {
            assert!(help.contains(&format!("\n  {verb} ")), "{verb} is missing in\n{help}");
        }
    }

    #[test]
    fn every_verb_has_examples_that_parse() {
        let command = with_help(Arguments::command());
        for verb in command.get_subcommands() {
            let own = EXAMPLES.iter().find(|(name, _)| *name == verb.get_name());
            let (_, examples) = own.unwrap_or_else(|| panic!("{} has no examples", verb.get_name()));
            for example in examples {
                let example = fill_in(example);
                let arguments = example.split(" < ").next().unwrap_or_default().replace('"', "");
                let parsed = command.clone().try_get_matches_from(arguments.split_whitespace());
                let parsed = parsed.unwrap_or_else(|error| panic!("{example}: {error}"));
                assert_eq!(parsed.subcommand_name(), Some(verb.get_name()), "{example}");
            }
        }
    }

    #[test]
    fn own_options_come_before_global_ones() {
        let mut command = with_help(Arguments::command());
        command.build();
        let help = command.find_subcommand_mut("sessions").map(|verb| verb.render_help().to_string());
        let help = help.unwrap_or_default();
        let (own, global) = (help.find("--since"), help.find("Global options:"));
        assert!(own.is_some() && own < global, "{help}");
    }
}
