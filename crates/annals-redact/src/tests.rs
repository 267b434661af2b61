//! What is masked, what is left alone, and that neither depends on luck.

use std::sync::LazyLock;

mod precision;
mod recall;

use super::rules::Check;
use super::scan::Scanner;
use super::*;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new([7; 32]));

/// Keys are assembled at run time, so that no scanner takes this file for a leak.
const MADE_UP: &str = "Fake0Key1Made2Up3For4Tests5Only6Not7Live8Not9Real0At1All2Truly3Made4Up5By6Hand7\
    Again8So9That0It1Is2Long3Enough4For5The6Longest7Of8Them9All0And1Some2More3Bytes4Too5";

/// Kind, prefix, length of the rest; `x` means hexadecimal, `^` means no lower-case letters.
const KEYS: &str = "anthropic sk-ant-api03- 40 | anthropic sk-ant-sid01- 60 | openai sk-proj- 48 |
    openai sk-svcacct- 48 | openai sk-admin- 48 | openai sk- 48 | openai sess- 40 | openrouter sk-or-v1- 64x |
    groq gsk_ 52 | perplexity pplx- 48 | xai xai- 80 | replicate r8_ 37 | nvidia nvapi- 60 | e2b e2b_ 40x |
    tavily tvly-dev- 32 | firecrawl fc- 32x | elevenlabs sk_ 48x | huggingface hf_ 34 | jina jina_ 50 |
    pinecone pcsk_ 60 | github ghp_ 36 | github gho_ 36 | github ghu_ 36 | github ghs_ 36 | github ghr_ 36 |
    github github_pat_ 70 | gitlab glpat- 20 | gitlab glptt- 40 | gitlab gldt- 20 | gitlab glrt- 20 |
    gitlab glcbt- 20 | gitlab glsoat- 20 | gitlab glft- 20 | gitlab glagent- 50 | gitlab GR1348941 20 |
    bitbucket ATBB 32 | atlassian ATATT3xFfGF0 80 | npm npm_ 36 | pypi pypi-AgEIcHlwaS5vcmc 60 |
    rubygems rubygems_ 48x | crates cio 32 | docker dckr_pat_ 27 | sonar sqp_ 40x | sonar squ_ 40x |
    sonar sqa_ 40x | sourcegraph sgp_ 40x | buildkite bkua_ 40x | google AIza 35 | google GOCSPX- 28 |
    google ya29.a0 60 | google 1//0 60 | aws IQoJb3JpZ2luX2Vj 104 | aws AKIA 16^ | aws ASIA 16^ |
    digitalocean dop_v1_ 64x | digitalocean doo_v1_ 64x | digitalocean dor_v1_ 64x | databricks dapi 32x |
    doppler dp.pt. 43 | doppler dp.st.dev. 43 | fly fm2_ 80 | heroku HRKU- 40 | netlify nfp_ 36 |
    supabase sbp_ 40x | supabase sb_secret_ 31 | planetscale pscale_tkn_ 43 | planetscale pscale_pw_ 43 |
    pulumi pul- 40x | tailscale tskey-auth- 30 | vault hvs. 60 | vault hvb. 60 | age AGE-SECRET-KEY-1 58^ |
    grafana glc_ 60 | newrelic NRAK- 27^ | sentry sntryu_ 64x | sentry sntrys_ 90 | posthog phx_ 43 |
    slack xoxb-000000000000- 24 | slack xoxp-000000000000- 24 | slack xapp-1-A0- 30 | mailgun key- 32x |
    facebook EAA 100 | stripe sk_live_ 24 | stripe sk_test_ 24 | stripe rk_live_ 24 | stripe whsec_ 32 |
    shopify shpat_ 32x | shopify shpss_ 32x | square sq0atp- 22 | square sq0csp- 43 | square EAAA 60 |
    linear lin_api_ 40 | notion secret_ 43 | notion ntn_ 46 | figma figd_ 40 | dropbox sl. 136 |
    contentful CFPAT- 43 | terraform 0Ab1Cd2Ef3Gh4I.atlasv1. 66 | telegram 123456789:AA 33";

/// Where keys appear, in place of `§`.
const PLACES: &str = r#"§ | see §. | (§) | "§" | a\n§\nb | x=%22§%22 | -§ | \u0022§ | ü§ü
    Bearer § | API_KEY=§ | export TOKEN="§" | {\"token\": \"§\"} | x-api-key: §
    Authorization: token § | https://me:§@example.com/ | ?key=§&page=2"#;

/// `«kind secret»` marks what is masked; `§` and `¤` represent made-up keys.
const MASKED: &str = r##"
twilio sid «twilio SK¤» ¦ TWILIO_API_KEY=«twilio SK¤»
Authorization: Bearer «bearer abcd1234» ¦ 'authorization': 'bearer «bearer §»'
Authorization: Basic «basic bWFkZTp1cA==» ¦ Proxy-Authorization: Basic «basic bWFkZXVwOm9r»
authorization: «authorization §» ¦ send `Bearer «bearer §»`.
Cookie: sid=«cookie §»; theme=dark; b=«cookie §» ¦ Set-Cookie: a=«cookie §»; Path=/; Max-Age=100000000
-H 'cookie: sid=«cookie §»' -X GET ¦ X-Api-Key: «key §» ¦ X-Auth-Token: «token §»
postgres://me:«url-password s3cr3t»@db.example:5432/x ¦ redis://:«url-password pa55»@cache
https:\/\/me:«url-password pa55»@host\/x ¦ amqp://me:«url-password p@ss»@host
DB_PASSWORD=«password hunter22» ¦ GITHUB_TOKEN=«token ¤»
DB_PASSWORD=«password correct_horse_battery» ¦ ADMIN_PASSWD='«password 12345678»'
mysql --password=«password hunter22» -u me ¦ aws_secret_access_key = «aws Made/Up+0000000000/NotLive00»
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
signing_key: «key 550e8400-e29b-41d4-a716-446655440000» ¦ my_key = "«key Made0Up1NotLive2Key3»"
vault login «vault s.Made0Up1NotLive2Key3Fak4» ¦ PRIVATE-TOKEN: «token abcd1234» ¦ Uid=me;Pwd=«password abcd!123»;
{"SecretAccessKey": "«aws Made/Up+0000000000/NotLive00»"} ¦ MYSQL_PWD=«password hunter22» ¦ DB_PASS=«password hunter22»
mysqldump -h db -u me -p«password hunter22» shop ¦ sshpass -p «password hunter22» ssh me@host
sshpass -p '«password word»' ssh ¦ curl -sS -u me:«password hunter22» https://x ¦ curl --user "me:«password hunter22»"
machine host login me password «password hunter22» ¦ login me\n  password «password hunter22»\n
tool --password «password hunter22» --port 1 ¦ tool --api-key '«key abcd-1234»' ¦ ["--token", "«token abcd1234»"]
{\"args\":[\"--token\",\"«token abcd1234»\"]} ¦ Connect -Password «password hunter22»
https://x-access-token:«url-password abcd1234efgh»@github.example/a ¦ https://«url-password §»@github.example/a
https://«url-password §»:@host/ ¦ https://«sentry ¤»@o1.ingest.sentry.io/42 ¦ smtp://me:«url-password pa55»@mail
mongodb+srv://me:«url-password p4ss»@c.example/x ¦ jdbc:oracle:thin:scott/«url-password t1ger»@//db:1521/x
jdbc:mysql://h/db?user=me&password=«password hunter22» ¦ ftp://me:«url-password p4ss»@host
https://hooks.slack.com/services/«slack T00000000/B00000000/Made0Up1NotLive2Key3Fake»
https://discord.com/api/webhooks/123456789012345678/«discord §§»
?X-Amz-Credential=«credential ABCD%2F20260101»&X-Amz-Signature=«signature ¤¤» ¦ ?code=«code abcd1234-ef»&state=x
https://x.blob.example/a?sv=2026&sig=«signature Made0Up1%2FNotLive2%3D» ¦ ?a=1\u0026sig=«signature Made0Up1NotLive2»
SharedAccessKeyName=x;SharedAccessKey=«key Made0Up1NotLive2=» ¦ PresharedKey = «key Made0Up1NotLive2Made0Up1=»
Authorization: Bot «token §» ¦ Authorization: AWS4-HMAC-SHA256 SignedHeaders=host, Signature=«aws ¤¤»
"auth": "«auth §»" ¦ PHPSESSID=«cookie abcd1234efgh» ¦ the password is `«password hunter22»` ¦ my token is «token §»
aws configure set aws_secret_access_key «aws §» ¦ AZURE_DEVOPS_PAT=«token abcdefghij234567klmnop»
<password>«password hunter22»</password> ¦ <s:apiKey>«key abcd-1234»</s:apiKey> ¦ <token>«token abcd1234»<\/token>
{"name":"DB_PASSWORD","value":"«password hunter22»"} ¦ - name: DB_PASSWORD\n  value: «password hunter22»\n
{\"name\":\"API_KEY\",\"value\":\"«key abcd-1234»\"} ¦ <add key="ApiKey" value="«key abcd-1234»"/>
?next=%2Fa%3Ftoken%3D«token abcd1234» ¦ {\\\\\\\"apiKey\\\\\\\":\\\\\\\"«key abcd1234»\\\\\\\"}
«aws AKIAFAKEFAKEFAKE2345»,«aws Made0Up1/NotLive2+Key3Fake4Made0Up1NotLi»"##;

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
token: annals::lexer::token|api_key=os.environ["OPENAI_API_KEY"]|password=args.password
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
password: 密码密码密码密码|pass: 12 of 14 tests|PWD=/home/Ada1/Build2|OLDPWD=/Users/Ada1Lovelace/x|--pass-through
the key is base64-encoded|the password is sha256-hashed|password is required|token is a String|--token <TOKEN>
use --password to log in|--password "$PASSWORD"|docker run -u 1000:1000 x|curl -u "$USER:$PASS" https://x
docker run -d mysql -p3306:3306|mysql -p shop|rsync -u host:/a/b x|curl -u me https://x|sshpass -p $PASS ssh
"integrity": "sha512-§§=="|checksum = "¤¤"|"signature":"§§"|image@sha256:¤¤|"token": "sha256:¤"
trace_id: ¤|01ARZ3NDEKTSV4RRFFQ69G5FAV|chatcmpl-§|resp_¤|req_011CFake4Made0Up
sk-ant-xxxxxxxxxxxxxxxxxxxxxxxx|sk-ant-your-api-key-goes-right-here|ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
secret: projects/my-project/secrets/my-secret/versions/2|arn:aws:secretsmanager:eu:1:secret:my-thing-12345678
"input_token": "ExclusiveStartBackupArn"|'secret': 'V1SecretVolumeSource'|"key": "storage_v1_client"
credentials: oauth2client.client.OAuth2Credentials, x|pKey = sqlite3KeyInfoAlloc(a, b)|iKey = Fts3GetVarint32Big[0]
pFrame->token = pProgram->token;|nToken = iEnd-iStart;|typedef struct Fts3DeferredToken Fts3DeferredToken;
passphrase: :py:data:`bytes`|[`Scm`]: annals::net::SendAncillaryMessage::ScmCredentials|GLOB_PAT = "some/**/needle.txt"
https://user:password@host/|https://me@example.com/a|https://deploy-user-production-1@host/x|?code=12345678
return code=12345abcde|exit code: abcdefgh12|status_code=§|sl.slice.length|s.someMethodNameOfTwentyFour
import { §x } from "./a"|.sk-chase-dot { }|data:image/png;base64,iVBORw0KGgo§§/EAA§§§§|"mappings":"AAAA,§§"
Vec<Token>::new_with_capacity|HashMap<String, Token>abcdefgh1|<token>a word</token>|<key>CFBundleIdentifier12</key>
"NextToken": "9f4d9f69-275a-41fe-b58e-2b837bd9ba48"|--client-request-token 91adc45q-12|pageToken=CAIQAA1234567
https://play.example/?code=fn+main()%7B%0A%7D|?code=%23!%5Ballow(unused)%5D%0Afn|f(startToken:Token=None, b)|A_PAT = "__factory_%s"
"name": "password", "value": ""|name: token, value: null|{"name":"token","value":"string"}|$2b$12$§|+  let token = next_token(&mut lexer);|-    "key": "value",|@@ -1,2 +3,4 @@ fn key(|const pk_live = "pk_live_§"
"key": "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE§"|ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI§ me@host"##;

fn key(start: &str, length: usize) -> String {
    format!("{start}{}", &MADE_UP[..length])
}

/// A key for a row of `KEYS`.
fn key_of(start: &str, length: &str) -> String {
    let rest = match length.split_at(length.trim_end_matches(['x', '^']).len()) {
        (length, "x") => "3f9a1c7e0b5d8246".repeat(4)[..length.parse().unwrap()].to_string(),
        (length, "^") => MADE_UP[..length.parse().unwrap()].to_uppercase(),
        (length, _) => MADE_UP[..length.parse().unwrap()].to_string(),
    };
    format!("{start}{rest}")
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
    let scanner = Scanner::new();
    for rule in &scanner.rules {
        let compiles = match &rule.check {
            Check::Shape(rest)
            | Check::Behind(_, rest)
            | Check::BlockEnd(rest)
            | Check::Surrounding { rest, .. } => rest.get().is_some(),
            Check::Name(_) | Check::Cookie => true,
        };
        assert!(compiles && rule.anchors.iter().all(|anchor| anchor.len() > 1), "{:?}", rule.anchors);
    }
    assert!(
        scanner.doubts.all_compiled() && scanner.annotation.get().is_some() && scanner.pair.get().is_some()
    );
}

#[test]
fn masks_secrets_by_shape() {
    let jwt = format!("{}.{}.{}", key("eyJ", 20), key("eyJ", 30), key("", 43));
    let hex = |length: usize| "3f9a1c7e0b5d8246".repeat(4)[..length].to_string();
    let mut keys = vec![
        ("github", format!("ghs_123456_{jwt}")),
        ("gitlab", key("glpat-", 27) + ".01.0fake1234"),
        ("sendgrid", key("SG.", 22) + "." + &MADE_UP[..43]),
        ("discord", format!("{}MTIz{}.Fake1-.{}", "", &MADE_UP[..22], &MADE_UP[..30])),
        ("mailchimp", hex(32) + "-us21"),
        ("azure", format!("aB18Q~{}", &MADE_UP[..34])),
        ("airtable", format!("pat{}.{}", &MADE_UP[..14], hex(64))),
        ("postman", format!("PMAK-{}-{}", hex(24), hex(34))),
        ("grafana", format!("glsa_{}_{}", &MADE_UP[..32], hex(8))),
        ("resend", format!("re_{}_{}", &MADE_UP[..8], &MADE_UP[8..32])),
        ("brevo", format!("xkeysib-{}-{}", hex(64), &MADE_UP[..16])),
        ("langsmith", format!("lsv2_pt_{}_{}", hex(32), hex(10))),
        (
            "dynatrace",
            format!("dt0c01.{0}.{0}{1}", MADE_UP[..24].to_uppercase(), MADE_UP[..40].to_uppercase()),
        ),
        ("jwt", jwt),
    ];
    keys.extend(KEYS.split('|').map(|row| {
        let [kind, start, length] = row.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{row}") };
        (kind, key_of(start, length))
    }));
    let places = PLACES.lines().flat_map(|line| line.trim_start().split(" | "));
    for place in places.chain(["\u{1b}[32m§\u{1b}[0m", "\0§\0"]) {
        for (kind, key) in &keys {
            assert_eq!(kinds(&place.replace('§', key)), place.replace('§', &format!("[{kind}]")), "{key}");
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
    let mut wrong = Vec::new();
    for row in MASKED.lines().flat_map(|line| line.trim_start().split(" ¦ ")) {
        let (mut text, mut expected) = (String::new(), String::new());
        for part in row.split('»') {
            let (before, secret) = part.split_once('«').unwrap_or((part, ""));
            let (kind, secret) = secret.split_once(' ').unwrap_or_default();
            text += &[before, &made_up(secret)].concat();
            expected += &[before, &format!("[{kind}]").replace("[]", "")].concat();
        }
        if kinds(&text) != expected {
            wrong.push(kinds(&text));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
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
fn finds_what_it_masks() {
    let key = key("ghp_", 36);
    let text = format!("ü {key}, PASSWORD=hunter22 and {key}");
    let mut found = Vec::new();
    REDACTOR.each(&text, &mut |secret| found.push((secret.kind, secret.to_string(), secret.range)));
    let kinds: Vec<&str> = found.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds, ["github", "password", "github"]);
    assert_eq!((&found[0].1, &text[found[0].2.clone()]), (&found[2].1, &*key));
    let by_hand = found.iter().rev().fold(text.clone(), |mut text, (_, mark, range)| {
        text.replace_range(range.clone(), mark);
        text
    });
    assert_eq!(REDACTOR.mask(&text), by_hand);
}

#[test]
fn the_same_secret_has_the_same_mark() {
    let (key, other) = (key("ghp_", 36), key("ghp_", 37));
    let text = format!("{key} TOKEN={key} https://{key}:{other}@host");
    let masked = REDACTOR.mask(&text).into_owned();
    let marks: Vec<&str> = masked.match_indices("[secret:").map(|(at, _)| &masked[at..at + 20]).collect();
    assert_eq!((marks[0], marks[0]), (marks[1], marks[2]));
    assert_ne!(marks[0], marks[3]);
    assert_ne!(Redactor::new([8; 32]).mask(&key), REDACTOR.mask(&key));
}

/// CPU time of this thread, in nanoseconds.
fn processor_time() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Four times the text may take little more than four times as long: each text is full of anchors.
#[test]
fn hostile_text_costs_linear_time() {
    let scanner = Scanner::new();
    let anchors = scanner.rules.iter().flat_map(|rule| rule.anchors.iter().map(|anchor| anchor.to_string()));
    let habits = [
        "key=",
        "token=key=",
        "password:",
        "password is ",
        "--token ",
        "secret=\"",
        "a://b:",
        "://a@",
        "cookie: a=",
        "a=b; ",
        "eyJaaaaaaaaaa.",
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nAAAAAAAA",
        "\\",
        "mysql -u a ",
        "curl -u a:",
        "login a password ",
        "?sig=",
        "bearer a",
        "authorization: bearer ",
        "[secret:",
        "/AKIA",
        "dp.pt.a.",
        "ya29.",
        "sl.",
        "12345678:AA",
        "key-",
        "token = a(",
        "\"token\": \"",
        "password='a\\'",
    ];
    let joined = |text: &str| ["", " ", "/", "=", "\n"].map(|end| format!("{text}{end}"));
    for piece in anchors.chain(habits.map(str::to_owned)).flat_map(|text| joined(&text)) {
        let took = |length: usize| {
            let text = piece.repeat(length / piece.len());
            let start = processor_time();
            REDACTOR.mask(&text);
            processor_time() - start
        };
        // CPU time of this thread only: the load of the machine does not count.
        let is_linear = || took(1 << 15) < took(1 << 13) * 8 + 10_000_000;
        assert!((0..3).any(|_| is_linear()), "{piece:?}");
    }
}
