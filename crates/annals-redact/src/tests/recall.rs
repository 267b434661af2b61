//! How many planted secrets are masked, by vendor, by form and by encoding. `--nocapture` prints the figures.

use super::{MADE_UP, REDACTOR, block, key_of, made_up};

/// Kinds of keys that `KEYS` does not have: prefix, length of the rest (`x` hexadecimal, `^` capitals, `u` a UUID), and
/// what follows. `§` in a prefix is a made-up key of 32 bytes, `¤` of 32 hexadecimal digits.
const MORE_KEYS: &str = "sha256~ 43 | pat-na1- u | pat-eu1- u | access_token$production$0a1b2c3d4e5f6a7b$ 32x | ATTA 64x |
    AAAAFakeKey:APA91b 134 | 00DFake0Key1Mad! 96 | access-sandbox- u | access-production- u | p8e- 32 |
    1/1200000000000001: 32x | 4b1d 38 | v1.0-0a1b2c3d4e5f6a7b8c9d0e1f-¤¤¤¤ 18x |
    dnkey-FAKE0KEY1MADE2UP3FOR4TESTS- 52^ | duffel_live_ 43 | duffel_test_ 43 | fio-u- 64 |
    pat.Fake0Key1Made2Up3For4T.0a1b2c3d4e5f6a7b8c9d0e1f. 20 | s-s4t2ud- 64x | cmVmd 59 | sdk- u | mob- u |
    live_ 35x lob | test_ 35x lob | sk.eyJ1Ijoi§§. 22 | Fake0K_Fake0Key1Made2Up3For4Tests5On_mmk 0 |
    API- 26^ | tk-us- 48 | sm_aat_ 16 | sm_pat_ 16 | sm_sat_ 16 | t1.9euel§. 86 | AQVN 36 yandex | YC 38 yandex | ddp_ 36 |
    ddo_ 36 | vercel_blob_rw_ 40 | vcp_ 56 | pdl_live_apikey_ 40 | pdl_sdbx_apikey_ 40 | hcaik_ 58 | xaat- u |
    xapt- u | tgp_v1_ 43 | fw_ 24 fireworks | esecret_ 40 | rpa_ 44 | apify_api_ 36 | bb_live_ 30 | mlsn. 64x | md- 22 mandrill |
    snyk_uat.§. 40 | nbp_ 36 | aivenv1 60 | mdb_sa_sk_ 40 | CCDB1_Fake0Key1Made2Up3For4T_ 40 | xau_ 40 | AKID 32 tencent |
    bce-v3/ALTAK-Fake0Key1Made2Up3For4/ 40x | AKLT 43 volcengine | SCW 17^ | EXO 24x exoscale | ucat_ 26^ |
    pina_ 60 | IGQV 120 | sktsec_ 40 | dsp_ 40x | pylf_v1_us_ 43 | wandb_v1_ 60 | figor_ 40 | lin_wh_ 32 | glwt- 20 |
    sgp_0a1b2c3d4e5f6a7b_ 40x | bkpt_ 40x | cfut_ 40 | cfat_ 40 | tr_prod_ 20 | tr_dev_ 20 |
    phs_ 43 | sq0csp- 43 | amzn.mws. u | amzn1.oa2-cs.v1. 64x | xkeysib-¤¤- 16 |
    dt0c01.FAKE0KEY1MADE2UP3FOR4TES. 64^ | CCIPAT_Fake0Key1Made_ 40x | nfp_ 36 | whsec_ 32 | pk_1234567_ 32^ clickup |
    oauth: 30z twitch | AIzaSy 33 | EAACEdEose0cBA 80 | sbp_v0_ 40x | re_Fake0Key_ 24 |
    ghs_ 36 | glpat- 20 | shpua_ 32x | rk_prod_ 24 | sk_prod_ 24 | lsv2_pt_¤_ 10x | ops_eyJ 110 | dp.audit. 43 |
    PMAK-0a1b2c3d4e5f6a7b8c9d0e1f- 34x | xoxe.xoxp-1- 160 | xoxe-1- 146 | xapp-1-A0-1- 60 | fm1r_ 100 | HRKU-AA 58";

/// Where a key appears: assigned to a name that says nothing, alone, and next to other text.
const KEY_PLACES: [&str; 4] = ["§", "value = \"§\"", "see §.", "a\\n§\\nb"];

/// One form per row; the secret is between `«` and `»`, `⏎` is a line break.
const FORMS: &str = include_str!("forms.txt");

/// Rows like `FORMS` for a token or a block in some encoding; `§` is a token.
const ENCODINGS: &str = include_str!("encodings.txt");

/// What is known to be missed, by the start of the row; `docs/security.md` has the reasons.
const MISSED_KEYS: &[&str] = &[];
const MISSED_FORMS: &[&str] = &["password: «hunt&er)2,2x»", "token=«abc)12345»", "API_KEY=«abcd,1234)efgh»"];
const MISSED_ENCODINGS: &[&str] = &[];

/// Neither half of the secret is left.
fn is_masked(text: &str, secret: &str) -> bool {
    let masked = REDACTOR.mask(text);
    let middle = (0..=secret.len() / 2).rev().find(|at| secret.is_char_boundary(*at)).unwrap_or(0);
    let (first, second) = secret.split_at(middle);
    !masked.contains(first) && !masked.contains(second)
}

struct Figures {
    planted: usize,
    missed: Vec<String>,
}

impl Figures {
    fn of<'r>(rows: impl Iterator<Item = (&'r str, Vec<(String, String)>)>) -> Figures {
        let mut figures = Figures { planted: 0, missed: Vec::new() };
        for (row, plants) in rows {
            for (text, secret) in plants {
                figures.planted += 1;
                if !is_masked(&text, &secret) {
                    figures.missed.push(format!("{row}  ->  {}", REDACTOR.mask(&text)));
                }
            }
        }
        figures
    }

    #[expect(clippy::print_stdout, clippy::disallowed_macros, reason = "figures are printed for people")]
    fn check(&self, name: &str, known: &[&str]) {
        let found = self.planted - self.missed.len();
        println!("{name}: {found} of {} masked", self.planted);
        let is_known = |row: &&String| !known.iter().any(|start| row.starts_with(start));
        let new: Vec<_> = self.missed.iter().filter(is_known).collect();
        assert!(new.is_empty(), "{name}: missed {}: {new:#?}", new.len());
        let stale: Vec<_> =
            known.iter().filter(|start| !self.missed.iter().any(|row| row.starts_with(*start))).collect();
        assert!(stale.is_empty(), "{name}: masked by now: {stale:?}");
    }
}

fn key_for(row: &str) -> (String, &str) {
    let mut words = row.split_whitespace();
    let (start, length) = (words.next().unwrap(), words.next().unwrap());
    let start = made_up(start);
    let key = match length.split_at(length.len() - 1) {
        ("", "u") => format!("{start}0a1b2c3d-4e5f-4a7b-8c9d-{}", "0e1f2a3b4c5d"),
        (count, "z") => format!("{start}{}", &MADE_UP.to_lowercase()[..count.parse::<usize>().unwrap()]),
        _ if length == "64x" => format!("{start}{}", "3f9a1c7e0b5d8246".repeat(4)),
        _ => key_of(&start, length),
    };
    (key, words.next().unwrap_or_default())
}

#[test]
fn keys_of_vendors() {
    let rows = MORE_KEYS.split('|').map(str::trim);
    let figures = Figures::of(rows.map(|row| {
        let (key, vendor) = key_for(row);
        let plants = KEY_PLACES.map(|place| (format!("{vendor} {}", place.replace('§', &key)), key.clone()));
        (row, plants.into())
    }));
    figures.check("keys of vendors", MISSED_KEYS);
}

fn plants(row: &str) -> Vec<(String, String)> {
    let row = made_up(row).replace('⏎', "\n");
    let text = row.replace(['«', '»'], "");
    let secrets = row.split('«').skip(1).filter_map(|part| part.split_once('»'));
    secrets.map(|(secret, _)| (text.clone(), secret.to_owned())).collect()
}

fn rows(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter(|row| !row.is_empty() && !row.starts_with("## "))
}

#[test]
fn forms() {
    Figures::of(rows(FORMS).map(|row| (row, plants(row)))).check("forms", MISSED_FORMS);
}

/// Tokens and blocks as they appear in raw lines, terminals, diffs and pages.
#[test]
fn encodings() {
    let token = super::key("ghp_", 36);
    let tokens = rows(ENCODINGS).map(|row| (row, plants(&row.replace("TOKEN", &token))));
    let escaped: String = token.bytes().map(|byte| format!("\\u00{byte:02x}")).collect();
    let first = format!("\\u0067{}", &token[1..]);
    let underscore = token.replace('_', "\\u005f");
    let capitals = escaped.to_uppercase().replace("\\U", "\\u");
    let unescaped = [&escaped, &first, &underscore, &capitals].map(|token| {
        let secret = token.get(token.len() - 20..).unwrap_or_default().to_owned();
        ("escaped token", vec![(format!("{{\"text\":\"see {token} there\"}}"), secret)])
    });
    let mut blocks = Vec::new();
    for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY"] {
        let whole = block(label, "\n");
        let lines: Vec<&str> = whole.lines().collect();
        let coloured = |code: &str, end: &str| {
            lines.iter().map(|line| format!("{code}{line}{end}")).collect::<Vec<_>>().join("\n")
        };
        let body = lines[1..lines.len() - 1].join("\n");
        blocks.push(("coloured block", coloured("\u{1b}[32m", "\u{1b}[0m")));
        blocks.push(("bold block", coloured("\u{1b}[1;38;5;10m", "\u{1b}[m\u{1b}[K")));
        blocks.push(("escaped colours", coloured("\\u001b[32m", "\\u001b[0m").replace('\n', "\\n")));
        blocks.push(("added in a diff", coloured("\u{1b}[32m+", "\u{1b}[m")));
        blocks.push(("quoted block", coloured("> ", "")));
        blocks.push(("block without its start", lines[1..].join("\n")));
        blocks.push(("block without its start, escaped", lines[1..].join("\\n")));
        blocks.push(("block without its end", lines[..lines.len() - 1].join("\n")));
        for start in
            ["b3BlbnNzaC1rZXktdjEAAAAA", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "MIIEpAIBAAKCAQEA", "MHcCAQEEI"]
        {
            blocks.push(("block without header", format!("{start}{body}")));
            blocks
                .push(("block without header, escaped", format!("\"{start}{}\"", body.replace('\n', "\\n"))));
        }
    }
    let secret = MADE_UP[20..60].to_owned();
    let blocks = blocks.into_iter().map(|(name, text)| (name, vec![(text, secret.clone())]));
    Figures::of(tokens.chain(unescaped).chain(blocks)).check("blocks and encodings", MISSED_ENCODINGS);
}
