//! What is masked, what is left alone, and that neither depends on luck.

use std::sync::LazyLock;

use super::*;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new([7; 32]));

/// Keys are put together only when a test runs, so that no scanner takes this file for a leak.
const MADE_UP: &str = "Fake0Key1Made2Up3For4Tests5Only6Not7Live8Not9Real0At1All2Truly3Made4Up5By6Hand7";

/// Kind, start, length of what follows.
const KEYS: &str = "anthropic-key sk-ant-api03- 40 | openai-key sk-proj- 48 | \
    openai-key sk-svcacct- 48 | openai-key sk-admin- 48 | openai-key sk- 48 | github-token ghp_ 36 | \
    github-token gho_ 36 | github-token ghu_ 36 | github-token ghs_ 36 | github-token ghr_ 36 | \
    github-token github_pat_ 70 | gitlab-token glpat- 20 | slack-token xoxb-000000000000- 24 | \
    slack-token xoxp-000000000000- 24 | slack-token xapp-1-A0- 30 | google-key AIza 35 | \
    stripe-key sk_live_ 24 | stripe-key sk_test_ 24 | stripe-key rk_live_ 24 | npm-token npm_ 36 | \
    pypi-token pypi-AgEIcHlwaS5vcmc 60 | huggingface-token hf_ 34";

/// Where keys stand, in place of `§`.
const PLACES: &str = r#"§ | see §. | (§) | "§" | a\n§\nb | x=%22§%22 | -§ | \u0022§ | ü§ü
    Bearer § | API_KEY=§ | export TOKEN="§" | {\"token\": \"§\"} | x-api-key: §
    Authorization: token § | https://me:§@example.com/ | ?key=§&page=2"#;

/// `«kind secret»` is what a mark takes the place of; `§` and `¤` stand for something made up.
const MASKED: &str = r##"
twilio sid «twilio-key SK¤» ¦ TWILIO_API_KEY=«twilio-key SK¤»
Authorization: Bearer «bearer abcd1234» ¦ 'authorization': 'bearer «bearer §»'
Authorization: Basic «basic bWFkZTp1cA==» ¦ Proxy-Authorization: Basic «basic bWFkZXVwOm9r»
authorization: «authorization §» ¦ send `Bearer «bearer §»`.
Cookie: sid=«cookie §»; theme=dark; b=«cookie §» ¦ Set-Cookie: a=«cookie §»; Path=/; Max-Age=100000000
-H 'cookie: sid=«cookie §»' -X GET ¦ X-Api-Key: «key §» ¦ X-Auth-Token: «token §»
postgres://me:«url-password s3cr3t»@db.example:5432/x ¦ redis://:«url-password pa55»@cache
https:\/\/me:«url-password pa55»@host\/x ¦ amqp://me:«url-password p@ss»@host
DB_PASSWORD=«password hunter22» ¦ GITHUB_TOKEN=«token ¤»
DB_PASSWORD=«password correct_horse_battery» ¦ ADMIN_PASSWD='«password 12345678»'
mysql --password=«password hunter22» -u me ¦ aws_secret_access_key = «key Made/Up+0000000000/NotLive00»
{"client_secret": "«secret ab-12-cd-34»"} ¦ {\"apiKey\":\"«key abcd1234»\",\"a\":1}
{\\\"apiKey\\\":\\\"«key abcd1234»\\\"} ¦ "password": "«password ab\"cd12345»"
The password: «password hunter22». ¦ **Password:** «password hunter22» ¦ token: **«token abcd1234»**
My API key: `«key abcd-1234-efgh»` ¦ const TOKEN: &str = "«token abcd1234»";
token: str = b'«token abcd1234»' ¦ os.environ["API_KEY"] = "«key abcd1234»"
if token == '«token abcd1234»' { ¦ password := "«password P@ssw0rd!»"
?access_token=«token abcd1234»&user=me ¦ Server=db;Password=«password abcd!1234»;Database=x
//registry.example/:_authToken=«token abcd-1234» ¦ AccountKey=«key Made0Up1NotLive2==»;x
credentials: «credential abcd1234efgh» ¦ password: "«password abcd1234»
"password": "«password correct-horse-battery-staple»" ¦ secret: «secret abcdefghijklmnopqrst»
signing_key: «key 550e8400-e29b-41d4-a716-446655440000» ¦ my_key = "«key Made0Up1NotLive2Key3»""##;

const LEFT_ALONE: &str = r##"
k|ke|key|key=|token:|secret: "|://|https://a:|Bearer |cookie:|[secret:|-----|-----BEGIN
commit 3f2a9c0d4e5b6a7988c7d6e5f4a3b2c1d0e9f8a7|550e8400-e29b-41d4-a716-446655440000
call_00aBcDeFgH1234567890abcd|"id":"msg_01AbCdEfGh1234567890"|"key":"toolu_01AbCdEfGh1234567890"
"data":"iVBORw0KGgoAAAANSUhEUgAA§§§§§key="|tokens: 1234|max_tokens=4096|"input_tokens": 6700
token_count: 12345678|"token": 12345678|token: 2026-01-01T00:00:00Z|AUTH_KEY: c_int = 0x00000002
API_KEY=${API_KEY}|token: $GITHUB_TOKEN|api_key: <your-api-key>|password=********|token: null, x
secret = true;|"password": "${{ secrets.PASSWORD }}"|password: "{{ password }}"|API_KEY=sk-...abcd
token: Option<String>,|token: &'static str,|token: String|token: Uint8Array|secret: [u8; 32],
token: Vec<Token2026>|let token = get_token();|"token": "get_token()"|token = self.lexer.next_token()?;
token: crate::lexer::token|api_key=os.environ["OPENAI_API_KEY"]|password=args.password
api_key=openai_api_key,|token=f"prefix-{name}-12"|password: process.env.DB_PASSWORD
token: TokenKind::Identifier2,|let secret = configurationServiceSecret;|"api_key": "OPENAI_API_KEY"
password: optional|secret: well-known|"password": "current-password"|token = 'refresh_token'
"password": "Must have at least 8 characters"|password: /run/secrets/db_password|token: "^[a-z0-9]{20}$"
GOOGLE_APPLICATION_CREDENTIALS=/home/pat/key.json|secret: op://vault/item/field|key: value-123456789
"cache_key": "conversation:1234567890"|primary_key=¤
publicKey: "§"|monkey: §|keyboard=§
Authorization: Bearer $TOKEN|Authorization: Bearer <token>|Authorization: Bearer YOUR_TOKEN
authorization: required|bearer authentication is used|Bearer ${TOKEN}|the basic idea
a bearer of news-from-2026|cookie: a small text file|Cookie: theme=dark
Set-Cookie: id=<session-id>; Path=/|https://example.com:8080/@scope/package|ssh://git@example.com:22/x
https://user:${PASSWORD}@host|http://[::1]:80/a@b|http://localhost:3000?mail=me@example.com
https://user:<password>@host|SK¤
class="sk-folding-cube-with-a-very-long-name"|task-sk-aaaa|xox|hf_hub_download_with_a_very_long_name
AKIAnotanid|npm_config_registry|eyJhbGciOi.x.y|The secret: nobody knows; the token: a word.
password: 密码密码密码密码"##;

fn key(start: &str, length: usize) -> String {
    format!("{start}{}", &MADE_UP[..length])
}

fn made_up(text: &str) -> String {
    text.replace('§', &MADE_UP[..32]).replace('¤', &"0123456789abcdef".repeat(2))
}

fn block(label: &str, newline: &str) -> String {
    let body = [&MADE_UP[..64], &MADE_UP[10..74], "Made0Up="].join(newline);
    format!("-----{} {label}-----{newline}{body}{newline}-----{} {label}-----", "BEGIN", "END")
}

fn kinds(text: &str) -> String {
    let masked = REDACTOR.mask(text).into_owned();
    let mut parts = masked.split("[secret:");
    let first = parts.next().unwrap().to_string();
    parts.fold(first, |all, part| match part.split_once(':') {
        Some((kind, rest)) => format!("{all}[{kind}]{}", &rest[5..]),
        None => format!("{all}[secret:{part}"),
    })
}

#[test]
fn every_pattern_compiles() {
    for rule in rules() {
        let broken =
            matches!(rule.check, Check::Shape { rest: None, .. } | Check::Surrounding { rest: None, .. });
        assert!(!broken, "{}", rule.anchor);
    }
    assert_eq!((REDACTOR.stand_ins.len(), REDACTOR.plain.len()), (STAND_INS.len(), PLAIN.len()));
    assert!(
        REDACTOR.annotation.is_some() && REDACTOR.word_starts.len() == 1 && REDACTOR.key_names.len() == 3
    );
}

#[test]
fn masks_secrets_by_shape() {
    let jwt = format!("{}.{}.{}", key("eyJ", 20), key("eyJ", 30), key("", 43));
    let mut keys = vec![
        ("github-token", format!("ghs_123456_{jwt}")),
        ("gitlab-token", key("glpat-", 27) + ".01.0fake1234"),
        ("aws-key-id", ["AKIA", "FAKEFAKEFAKE2345"].concat()),
        ("aws-key-id", ["ASIA", "FAKEFAKEFAKE2345"].concat()),
        ("sendgrid-key", key("SG.", 22) + "." + &MADE_UP[..43]),
        ("jwt", jwt),
    ];
    keys.extend(KEYS.split(" | ").map(|row| {
        let [kind, start, length] = row.split(' ').collect::<Vec<_>>()[..] else { panic!("{row}") };
        (kind, key(start, length.parse().unwrap()))
    }));
    let places = PLACES.lines().flat_map(|line| line.trim_start().split(" | "));
    for place in places.chain(["\u{1b}[32m§\u{1b}[0m", "\0§\0"]) {
        for (kind, key) in &keys {
            assert_eq!(kinds(&place.replace('§', key)), place.replace('§', &format!("[{kind}]")));
        }
    }
}

#[test]
fn masks_private_keys() {
    for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        for newline in ["\n", "\r\n", "\\n", "\\\\n", "\n   12\u{2192}", "\n+"] {
            let whole = block(label, newline);
            assert_eq!(kinds(&format!("a {whole} b")), "a [private-key] b");
            assert_eq!(kinds(&format!("'private_key': '{whole}'")), "'private_key': '[private-key]'");
            let cut = whole.split(&format!("{newline}-----{}", "END")).next().unwrap();
            assert_eq!(kinds(cut), "[private-key]");
        }
    }
    let dots = block("PRIVATE KEY", "\n").replace(|letter: char| letter.is_ascii_lowercase(), ".");
    let prose = format!("First comes -----{} RSA PRIVATE KEY----- and that line tells nothing.", "BEGIN");
    for text in [block("CERTIFICATE", "\n"), block("PUBLIC KEY", "\n"), dots, prose] {
        assert_eq!(kinds(&text), text);
    }
}

#[test]
fn masks_what_surroundings_give_away() {
    for row in MASKED.lines().flat_map(|line| line.trim_start().split(" ¦ ")) {
        let (mut text, mut expected) = (String::new(), String::new());
        for part in row.split('»') {
            let (before, secret) = part.split_once('«').unwrap_or((part, ""));
            let (kind, secret) = secret.split_once(' ').unwrap_or_default();
            text += &[before, &made_up(secret)].concat();
            expected += &[before, &format!("[{kind}]").replace("[]", "")].concat();
        }
        assert_eq!(kinds(&text), expected);
    }
}

#[test]
fn leaves_the_rest_alone() {
    let texts = LEFT_ALONE.lines().flat_map(|line| line.trim_start().split('|'));
    for text in texts.chain(["", "\0\u{1b}[0m"]).map(made_up) {
        assert!(matches!(REDACTOR.mask(&text), Cow::Borrowed(_)), "{text}: {}", kinds(&text));
    }
}

#[test]
fn masked_text_stays_as_it_is() {
    let texts = [
        MASKED,
        LEFT_ALONE,
        "secret=[secret:key:0a1b] [secret:secret:ffff]: x",
        &block("PRIVATE KEY", "\\n"),
    ];
    for text in texts.iter().flat_map(|text| text.lines().chain([*text])) {
        let once = REDACTOR.mask(text).into_owned();
        assert!(matches!(REDACTOR.mask(&once), Cow::Borrowed(_)), "{once}");
    }
}

#[test]
fn the_same_secret_has_the_same_mark() {
    let (key, other) = (key("ghp_", 36), key("ghp_", 37));
    let text = format!("{key} TOKEN={key} https://{key}:{other}@host");
    let masked = REDACTOR.mask(&text).into_owned();
    let marks: Vec<&str> = masked.match_indices("[secret:").map(|(at, _)| &masked[at..at + 26]).collect();
    assert_eq!((marks[0], marks[0]), (marks[1], marks[2]));
    assert_ne!(marks[0], marks[3]);
    assert_ne!(Redactor::new([8; 32]).mask(&key), REDACTOR.mask(&key));
}
