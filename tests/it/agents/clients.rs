//! Clients' own files: changed only as shown, undone byte for byte, and never shown.

use std::fs;
use std::path::PathBuf;

use annals_testkit::Bench;

const SECRET: &str = "sk-ant-api03-planted-0123456789abcdefghijklmnopqrstuvwxyz";

/// The file of each client, and what may be in it before.
fn cases(bench: &Bench) -> Vec<(&'static str, PathBuf, Option<String>)> {
    let user = bench.user();
    let account =
        format!("{{\n  \"oauthAccount\": {{\"accessToken\": \"{SECRET}\"}},\n  \"mcpServers\": {{}}\n}}");
    let servers = format!(
        "{{\"mcpServers\":{{\"other\":{{\"command\":\"x\",\"env\":{{\"API_KEY\":\"{SECRET}\"}}}}}},\"projects\":{{}}}}\n"
    );
    let toml = format!(
        "model = \"m\" # mine\n\n[mcp_servers.other]\ncommand = \"x\"\nenv = {{ API_KEY = \"{SECRET}\" }}\n"
    );
    let claude = user.join(".claude.json");
    let (codex, gemini) = (user.join(".codex/config.toml"), user.join(".gemini/settings.json"));
    vec![
        ("claude", claude.clone(), None),
        ("claude", claude.clone(), Some(account)),
        ("claude", claude.clone(), Some(servers.clone())),
        ("claude", claude, Some(format!("{{\n\t\"userID\": \"{SECRET}\"\n}}\n"))),
        ("codex", codex.clone(), None),
        ("codex", codex.clone(), Some(toml)),
        ("codex", codex, Some(String::new())),
        ("gemini", gemini.clone(), Some(servers)),
        ("copilot", user.join(".copilot/mcp-config.json"), None),
        ("gemini", gemini, Some("{\n  // comments are allowed here\n  \"theme\": \"dark\"\n}\n".to_owned())),
    ]
}

#[test]
fn install_shows_its_change_and_remove_undoes_it() {
    let bench = Bench::new();
    for (client, file, before) in cases(&bench) {
        let what = format!("{client}: {before:?}");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        drop(fs::remove_file(&file));
        if let Some(before) = &before {
            fs::write(&file, before).unwrap();
            #[cfg(unix)]
            fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        }
        let read = || fs::read_to_string(&file).ok();
        // Nobody can be asked here.
        let refused = bench.run(&["mcp", "install", client]);
        assert_eq!((refused.code, read()), (2, before.clone()), "{what}: {}", refused.stderr);
        assert!(
            refused.stdout.contains("+ ") && refused.stderr.contains("--yes"),
            "{what}: {}",
            refused.stdout
        );
        let dry = bench.run(&["mcp", "install", client, "--dry-run"]);
        assert_eq!((dry.code, read()), (1, before.clone()), "{what}");
        let installed = bench.run(&["mcp", "install", client, "--yes"]);
        assert_eq!(installed.code, 0, "{what}: {}", installed.stderr);
        let now = read().unwrap();
        let program = annals_testkit::program().display().to_string();
        assert!(now.contains(&program) && now.contains("\"mcp\"") && now.contains("--home"), "{now}");
        #[cfg(unix)]
        if before.is_some() {
            let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600, "{what}");
        }
        let again = bench.json(&["mcp", "install", client, "--yes"]);
        assert_eq!((&again["state"], read()), (&"unchanged".into(), Some(now)), "{what}");
        let removed = bench.run(&["mcp", "remove", client, "--yes"]);
        assert_eq!((removed.code, read()), (0, before.clone()), "{what}: {}", removed.stderr);
        assert_eq!(bench.json(&["mcp", "remove", client])["state"], "unchanged", "{what}");
        for ran in [refused, dry, installed, removed] {
            assert!(!ran.stdout.contains("planted") && !ran.stderr.contains("planted"), "{}", ran.stdout);
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_is_left_alone() {
    let bench = Bench::new();
    let broken = [
        ("claude", bench.user().join(".claude.json"), format!("{{\"key\": \"{SECRET}\",, }}")),
        ("codex", bench.user().join(".codex/config.toml"), format!("key = {SECRET}\n")),
        ("gemini", bench.user().join(".gemini/settings.json"), format!("[\"{SECRET}\"]")),
    ];
    for (client, file, text) in broken {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &text).unwrap();
        for verb in ["install", "remove"] {
            let ran = bench.run(&["mcp", verb, client, "--yes"]);
            assert_eq!(ran.code, 2, "{client}");
            assert!(ran.stderr.contains("hint: ") && !ran.stderr.contains("planted"), "{}", ran.stderr);
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
    }
    let none = bench.run(&["mcp", "install", "pi"]);
    assert!(none.code == 2 && none.stderr.contains("hint: clients that have one: "), "{}", none.stderr);
}

#[test]
fn the_skill_comes_and_goes() {
    let bench = Bench::new();
    let user = bench.user();
    fs::create_dir_all(user.join(".claude")).unwrap();
    fs::create_dir_all(user.join(".codex/skills/mine")).unwrap();
    let files = [user.join(".claude/skills/annals/SKILL.md"), user.join(".codex/skills/annals/SKILL.md")];
    assert_eq!(bench.run(&["skill", "install"]).code, 2, "nobody can be asked here");
    assert!(files.iter().all(|file| !file.exists()));
    let installed = bench.json(&["skill", "install", "--yes"]);
    assert_eq!(installed["skills"].as_array().unwrap().len(), 2, "{installed}");
    let printed = bench.run(&["skill", "print"]).stdout;
    for file in &files {
        assert_eq!(fs::read_to_string(file).unwrap(), printed);
    }
    assert!(!user.join(".gemini").exists(), "a client that is not there gets no folder");
    // A skill of the same name that someone else wrote.
    fs::write(&files[1], "---\nname: mine\n---\n").unwrap();
    let refused = bench.run(&["skill", "remove", "codex", "--yes"]);
    assert!(refused.code == 2 && files[1].exists(), "{}", refused.stderr);
    assert_eq!(bench.run(&["skill", "remove", "claude", "--yes"]).code, 0);
    assert!(!user.join(".claude/skills").exists() && user.join(".codex/skills/mine").exists());
}
