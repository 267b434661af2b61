//! A realistic archive: months of made-up work of one person with both clients, always the same for a seed, for
//! screenshots and page tests.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};
use std::{fs, io};

use serde_json::{Value, json};

mod claude;
mod codex;

use crate::corpora::generator::{DAY, Random};

/// The sources whose clients the person uses.
pub const CLIENTS: [&str; 2] = ["codex_cli", "claude_code"];
const SCENES: &str = include_str!("story.txt");
const SEED: u64 = 20_261_115;
const PERSON: &str = "/home/mira/code";
/// A key of the right shape that opens nothing.
const KEY: [&str; 3] = ["SG.", "Zm9ycGljdHVyZXNvbmx5AA", ".bWFkZXVwbWFkZXVwbWFkZXVwbWFkZXVwbWFkZXVwMDA"];

/// What happened, in order.
#[derive(Debug, Clone)]
enum Act {
    Prompt(String),
    Think(String),
    Answer(String),
    Run {
        command: String,
        output: String,
        exit: i64,
    },
    Read {
        file: String,
        text: String,
    },
    /// Lines of a diff: ` `, `+` and `-`, and `@@` between two hunks.
    Edit {
        file: String,
        lines: Vec<String>,
    },
    Plan(Vec<(String, String)>),
    Agent {
        title: String,
        task: String,
        acts: Vec<Act>,
        answer: String,
    },
}

/// One session to write.
struct Scene {
    project: String,
    client: String,
    branch: String,
    title: String,
    acts: Vec<Act>,
}

/// The time and identity a session is written with.
struct Stage {
    id: String,
    cwd: String,
    branch: String,
    title: String,
    /// Milliseconds since 1970; advances with each act.
    now: u64,
    random: Random,
}

/// Writes both homes below `user` as they are at `now`, with `months` of work in them. `before` is called after the
/// first version of the library was written, so that a caller can capture both versions.
pub fn write(user: &Path, now: Duration, months: u64, mut before: impl FnMut()) -> io::Result<usize> {
    let (mut random, now) = (Random(SEED), now.as_millis() as u64);
    write_library(user, now - 50 * DAY, false)?;
    before();
    write_library(user, now - 6 * DAY, true)?;
    let scenes: Vec<&str> = SCENES.split("\n@ ").skip(1).collect();
    let (mut count, mut turn) = (0, 0);
    let mut day = months * 30;
    while day > 0 {
        day -= 1;
        // Weekends are quiet, and so are some weeks.
        let weekday = (now / DAY - day + 3) % 7;
        let busy = [3, 4, 3, 4, 2, 0, 1][weekday as usize] * [1, 2, 2, 1, 0, 2][(day / 7 % 6) as usize];
        for _ in 0..random.below(busy + 1).max(u64::from(day < 3)) {
            turn += 1;
            let at = now - day * DAY - now % DAY + 8 * 3_600_000 + random.below(9 * 3_600_000);
            // Whatever the hour: before the last two.
            let at = at.min(now - 4 * 3_600_000 - random.below(3_600_000));
            // Scenes without variations happened a few times; the others repeat.
            let rare = turn % 60 == 7;
            let varied = |scene: &&&str| scene.contains("\n% ") != rare;
            let choice: Vec<&&str> = scenes[2..].iter().filter(varied).collect();
            Scene::read(choice[turn % choice.len()], turn).write(user, at, &mut random)?;
            count += 1;
        }
    }
    // The best two scenes are the last two.
    for (scene, ago) in [(1, 95 * 60_000), (0, 25 * 60_000)] {
        Scene::read(scenes[scene], 0).write(user, now - ago, &mut random)?;
        count += 1;
    }
    Ok(count)
}

impl Scene {
    fn read(text: &str, turn: usize) -> Scene {
        let (head, rest) = text.split_once('\n').unwrap_or((text, ""));
        let mut heads = head.split(", ").map(str::to_owned);
        let mut part = || heads.next().unwrap_or_default();
        let (project, client, branch) = (part(), part(), part());
        let (slots, lines): (Vec<&str>, Vec<&str>) = rest.lines().partition(|line| line.starts_with("% "));
        let mut body = lines.join("\n");
        for (slot, values) in slots.iter().filter_map(|slot| slot[2..].split_once(": ")) {
            let values: Vec<&str> = values.split("; ").collect();
            body = body.replace(&format!("%{slot}"), values[turn / 7 % values.len()]);
        }
        let body = body.replace("KEY", &KEY.concat());
        let mut blocks = blocks(&body);
        let title = blocks.remove(0).1.join(" ");
        Scene { project, client, branch, title, acts: acts(&mut blocks.into_iter().peekable()) }
    }

    fn write(&self, user: &Path, at: u64, random: &mut Random) -> io::Result<()> {
        let id = if self.client == "codex" { random.uuid(at) } else { random.uuid4() };
        let mut stage = Stage {
            id,
            cwd: format!("{PERSON}/{}", self.project),
            branch: self.branch.clone(),
            title: self.title.clone(),
            now: at,
            random: Random(random.next()),
        };
        match self.client.as_str() {
            "codex" => codex::write(&user.join(".codex"), &mut stage, &self.acts),
            _ => claude::write(&user.join(".claude"), &mut stage, &self.acts),
        }
    }
}

/// The marker of each block, and its lines.
fn blocks(text: &str) -> Vec<(String, Vec<String>)> {
    let mut blocks: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match (line.strip_prefix('|'), blocks.last_mut()) {
            (Some(more), Some((_, lines))) => lines.push(more.strip_prefix(' ').unwrap_or(more).to_owned()),
            _ => {
                let (mark, first) = line.split_once(' ').unwrap_or((line, ""));
                blocks.push((mark.to_owned(), vec![first.to_owned()]));
            }
        }
    }
    blocks
}

type Blocks = std::iter::Peekable<std::vec::IntoIter<(String, Vec<String>)>>;

fn acts(blocks: &mut Blocks) -> Vec<Act> {
    let mut acts = Vec::new();
    while let Some((mark, lines)) = blocks.next() {
        let text = lines.join("\n");
        let (first, rest) = (lines[0].clone(), lines[1..].to_vec());
        acts.push(match mark.as_str() {
            ">" => Act::Prompt(text),
            "~" => Act::Think(text),
            "<" => Act::Answer(text),
            "$" => {
                let exit = blocks.next_if(|(mark, _)| mark == "!");
                let exit = exit.and_then(|(_, lines)| lines[0].parse().ok()).unwrap_or(0);
                Act::Run { command: first, output: rest.join("\n"), exit }
            }
            "r" => Act::Read { file: first, text: rest.join("\n") },
            "e" => Act::Edit { file: first, lines: rest },
            "t" => {
                let task = |lines: &[String]| {
                    let (state, text) = lines[0].split_once(' ').unwrap_or((&lines[0], ""));
                    (state.to_owned(), text.to_owned())
                };
                let mut tasks = vec![task(&lines)];
                while let Some((_, lines)) = blocks.next_if(|(mark, _)| mark == "t") {
                    tasks.push(task(&lines));
                }
                Act::Plan(tasks)
            }
            "a" => {
                let mut inner = Vec::new();
                let mut answer = String::new();
                for (mark, lines) in blocks.by_ref() {
                    if mark == "z" {
                        answer = lines.join("\n");
                        break;
                    }
                    inner.push((mark, lines));
                }
                let inner = self::acts(&mut inner.into_iter().peekable());
                Act::Agent { title: first, task: rest.join("\n"), acts: inner, answer }
            }
            other => unreachable!("no act begins with {other}"),
        });
    }
    acts
}

impl Stage {
    /// Advances the clock by some seconds.
    fn later(&mut self, seconds: u64) -> String {
        self.now += 1_000 * (1 + self.random.below(seconds));
        self.time()
    }

    fn time(&self) -> String {
        let moment = jiff::Timestamp::from_millisecond(self.now as i64).unwrap_or_default();
        moment.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string()
    }

    fn file(&self, path: &str) -> String {
        format!("{}/{path}", self.cwd)
    }
}

fn save(path: &Path, text: &str, at: u64) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    fs::File::options().append(true).open(path)?.set_modified(UNIX_EPOCH + Duration::from_millis(at))
}

fn lines_of(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The text before and after an edit.
fn sides(lines: &[String]) -> (String, String) {
    let side = |sign: char| {
        let kept = lines.iter().filter(|line| line.starts_with([' ', sign]));
        kept.map(|line| line[1..].to_owned()).collect::<Vec<_>>().join("\n")
    };
    (side('-'), side('+'))
}

/// Skills, instructions, prompts and memory, in one of two versions.
fn write_library(user: &Path, at: u64, changed: bool) -> io::Result<()> {
    let more = |text: &str, rest: &str| if changed { format!("{text}{rest}") } else { text.to_owned() };
    let review = "---\nname: review\ndescription: Look at a change the way the next reader will\n---\n\n1. Read the \
                  difference from the end.\n2. Say what could be left out.\n";
    let tides = "---\nname: tides\ndescription: How levels, datum and tables belong together\n---\n\nLevels are \
                 relative to chart datum. Never compare raw metres.\n";
    let files = [
        (".claude/CLAUDE.md", more("Tests before fixes. Short answers.\n", "Never touch `vault.yml`.\n")),
        (".claude/skills/review/SKILL.md", more(review, "3. Run it once with wrong input.\n")),
        (".claude/skills/tides/SKILL.md", tides.to_owned()),
        (".claude/commands/release.md", "Write the notes of the release since the last tag.\n".to_owned()),
        (
            ".claude/agents/finder.md",
            "---\nname: finder\ndescription: Looks things up\n---\nList file and line.\n".to_owned(),
        ),
        (
            ".claude/projects/-home-mira-code-tidewatch/memory/MEMORY.md",
            more("- The harbour's datum is -1.42 m.\n", "- The estuary gauge is out on Sundays.\n"),
        ),
        (".codex/AGENTS.md", more("Prefer small commits.\n", "Say what was not tested.\n")),
        (".codex/prompts/profile.md", "Profile $1 and tell where the time goes.\n".to_owned()),
        (
            ".codex/rules/default.rules",
            "prefix_rule(pattern=[\"git\", \"push\"], decision=\"prompt\")\n".to_owned(),
        ),
        (".codex/config.toml", "model = \"gpt-5.3-codex\"\n".to_owned()),
    ];
    files.iter().try_for_each(|(path, text)| save(&user.join(path), text, at))
}

/// Tokens of one model response: fresh, cache read, cache write, output.
fn tokens(stage: &mut Stage, turn: u64) -> [u64; 4] {
    let random = &mut stage.random;
    [
        200 + random.below(2_000),
        9_000 + turn * 2_500 + random.below(4_000),
        600 + random.below(3_000),
        80 + random.below(900),
    ]
}
