//! The table of vendors' keys, by shape.

use super::rules::{Behind, Shape};

/// A pattern must fail at the first byte outside its classes, and match anything that is long enough, so that many
/// false starts take linear time.
#[rustfmt::skip]
pub(super) const SHAPES: &[Shape] = &[
    // Assistants and models.
    ("anthropic", &["sk-ant-"], r"[\w-]{20,}"),
    ("openrouter", &["sk-or-v1-", "sk-or-"], r"[0-9a-f]{32,}"),
    ("langfuse", &["sk-lf-"], r"[0-9a-f-]{36}"),
    ("openai", &["sk-"], r"(?:proj|svcacct|admin|None)-[\w-]{20,}|[A-Za-z0-9]{20}[\w-]*"),
    ("openai", &["sess-"], r"[A-Za-z0-9]{40,}"),
    ("huggingface", &["hf_", "api_org_"], r"[A-Za-z0-9]{30,}"),
    ("groq", &["gsk_"], r"[A-Za-z0-9]{40,}"),
    ("perplexity", &["pplx-"], r"[A-Za-z0-9]{40,}"),
    ("xai", &["xai-"], r"[A-Za-z0-9]{60,}"),
    ("replicate", &["r8_"], r"[A-Za-z0-9]{30,}"),
    ("nvidia", &["nvapi-"], r"[\w-]{40,}"),
    ("cerebras", &["csk-"], r"[a-z0-9]{40,}"),
    ("pinecone", &["pcsk_"], r"\w{40,}"),
    ("langsmith", &["lsv2_"], r"(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    ("tavily", &["tvly-"], r"(?:dev-|prod-)?[A-Za-z0-9]{20,}"),
    ("firecrawl", &["fc-"], r"[0-9a-f]{32}\b"),
    ("jina", &["jina_"], r"[A-Za-z0-9]{32}[\w-]*"),
    ("e2b", &["e2b_"], r"[0-9a-f]{40}\b"),
    ("elevenlabs", &["sk_"], r"[0-9a-f]{48}\b"),
    // Code and packages.
    ("github", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"[A-Za-z0-9]{30,}"),
    // Since 2026 an installation token may also be a number and a JWT.
    ("github", &["ghs_"], r"[A-Za-z0-9]{1,20}_eyJ[\w-]+\.[\w-]+\.[\w-]+"),
    ("github", &["github_pat_"], r"\w{30,}"),
    ("gitlab", &["glpat-", "glptt-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glsoat-", "glft-", "glimt-", "glagent-",
        "gloas-", "glffct-"], r"[\w-]{20,}(?:\.[a-z0-9]{2}\.[a-z0-9]{9})?"),
    ("gitlab", &["GR1348941"], r"[\w-]{20}"),
    ("bitbucket", &["ATBB", "BBDC-"], r"[A-Za-z0-9]{28,}=?|[A-Za-z0-9+/]{44}"),
    ("atlassian", &["ATATT3", "ATCTT3"], r"[\w=-]{60,}"),
    ("npm", &["npm_"], r"[A-Za-z0-9]{30,}"),
    ("pypi", &["pypi-AgE"], r"[\w-]{40,}"),
    ("rubygems", &["rubygems_"], r"[0-9a-f]{40,}"),
    ("crates", &["cio"], r"[A-Za-z0-9]{32}\b"),
    ("nuget", &["oy2"], r"[a-z0-9]{43}\b"),
    ("clojars", &["CLOJARS_"], r"[a-z0-9]{60}"),
    ("docker", &["dckr_pat_", "dckr_oat_"], r"[\w-]{20,}"),
    ("jfrog", &["AKCp"], r"[A-Za-z0-9]{60,}"),
    ("sonar", &["sqp_", "squ_", "sqa_"], r"[0-9a-f]{40}\b"),
    ("sourcegraph", &["sgp_"], r"(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}\b"),
    ("postman", &["PMAK-"], r"[0-9a-f]{24}-[0-9a-f]{34}"),
    ("buildkite", &["bkua_"], r"[0-9a-f]{40}\b"),
    ("circleci", &["CCIPAT_"], r"[A-Za-z0-9]{10,}_[0-9a-f]{40}"),
    // Clouds and hosting.
    ("aws", &["AKIA", "ASIA", "ABIA", "ACCA"], r"[A-Z0-9]{16}\b"),
    ("aws", &["IQoJb3JpZ2lu", "FwoGZXIvYXdz", "FQoGZXIvYXdz"], r"(?:[A-Za-z0-9+/=]|%2[BFbf]|%3[Dd]){100,}"),
    ("aws", &["bedrock-api-key-", "ABSKQmVkcm9ja0FQSUtleS"], r"[A-Za-z0-9+/=]{60,}"),
    ("google", &["AIza"], r"[\w-]{35,40}"),
    ("google", &["GOCSPX-"], r"[\w-]{24,}"),
    ("google", &["ya29."], r"[\w-]{20,}(?:\.[\w-]+)*"),
    ("google", &["1//0"], r"[\w-]{40,}"),
    ("alibaba", &["LTAI"], r"[A-Za-z0-9]{17,20}\b"),
    ("digitalocean", &["dop_v1_", "doo_v1_", "dor_v1_"], r"[0-9a-f]{60,}"),
    ("databricks", &["dapi"], r"[0-9a-f]{32}(?:-[0-9])?\b"),
    ("doppler", &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
        r"(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}"),
    ("fly", &["fm1r_", "fm1a_", "fm2_", "fo1_"], r"[A-Za-z0-9+/=_-]{40,}"),
    ("heroku", &["HRKU-"], r"[\w-]{36,}"),
    ("netlify", &["nfp_", "nfo_", "nfc_", "nfu_", "nfb_"], r"[A-Za-z0-9]{36,}"),
    ("render", &["rnd_"], r"[A-Za-z0-9]{28,}"),
    ("supabase", &["sbp_"], r"(?:oauth_|v0_)?[0-9a-f]{40}\b"),
    ("supabase", &["sb_secret_"], r"[\w-]{20,}"),
    ("neon", &["napi_"], r"[a-z0-9]{60,}"),
    ("planetscale", &["pscale_tkn_", "pscale_pw_", "pscale_oauth_"], r"[\w-]{30,}(?:[.=][\w-]+)*"),
    ("pulumi", &["pul-"], r"[0-9a-f]{40}\b"),
    ("tailscale", &["tskey-"], r"[a-z]{3,10}-[A-Za-z0-9-]{16,}"),
    ("vault", &["hvs.", "hvb.", "hvr."], r"[\w-]{20,}"),
    ("vault", &["s."], r"[A-Za-z0-9]{24}\b"),
    ("age", &["AGE-SECRET-KEY-1"], r"[A-Z0-9]{50,}"),
    ("onepassword", &["ops_eyJ"], r"[\w+/=-]{100,}"),
    ("onepassword", &["A3-"], r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}"),
    // Monitoring.
    ("grafana", &["glsa_"], r"[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    ("grafana", &["glc_"], r"[A-Za-z0-9]{32,}={0,2}|[A-Za-z0-9+/]{60,}={0,2}"),
    ("grafana", &["eyJrIjoi"], r"[A-Za-z0-9]{40,}={0,2}"),
    ("newrelic", &["NRAK-", "NRII-", "NRJS-"], r"[A-Za-z0-9-]{19,}"),
    ("sentry", &["sntrys_"], r"[A-Za-z0-9+/=_-]{60,}"),
    ("sentry", &["sntryu_"], r"[0-9a-f]{60,}"),
    ("dynatrace", &["dt0c01.", "dt0s01."], r"[A-Z0-9]{24}\.[A-Z0-9]{60,}"),
    ("posthog", &["phx_"], r"[A-Za-z0-9]{40,}"),
    // Messages.
    ("slack", &["xox"], r"[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}"),
    ("slack", &["xapp-", "xwfp-"], r"[0-9]-?[A-Za-z0-9-]{10,}"),
    ("discord", &["MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"],
        r"[AEIMQUYcgk][w-z0-5][A-Za-z0-9]{20,26}\.[\w-]{6}\.[\w-]{27,}"),
    ("sendgrid", &["SG."], r"[\w-]{16,}\.[\w-]{32,}"),
    ("mailgun", &["key-"], r"[0-9a-f]{32}\b"),
    ("brevo", &["xkeysib-", "xsmtpsib-"], r"[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    ("resend", &["re_"], r"[A-Za-z0-9]{8}_[A-Za-z0-9]{24}\b"),
    ("twilio", &["SK"], r"[0-9a-f]{32}\b"),
    ("facebook", &["EAA"], r"[A-Za-z0-9]{80,}"),
    // Payments and commerce.
    ("stripe", &["sk_", "rk_"], r"(?:live|test|prod)_[A-Za-z0-9]{16,}"),
    ("stripe", &["whsec_"], r"[A-Za-z0-9+/]{43}=|[A-Za-z0-9]{32,}|[A-Za-z0-9+/]{32}|[A-Za-z0-9]{24,}"),
    ("shopify", &["shpat_", "shpca_", "shppa_", "shpss_", "shpua_"], r"[0-9a-fA-F]{32}"),
    ("square", &["sq0atp-", "sq0csp-", "sq0idp-"], r"[\w-]{22,}"),
    ("square", &["EAAA"], r"[\w-]{58,}"),
    ("easypost", &["EZAK", "EZTK"], r"[A-Za-z0-9]{54}\b"),
    ("flutterwave", &["FLWSECK-", "FLWSECK_TEST-"], r"[A-Za-z0-9-]{12,}"),
    ("shippo", &["shippo_live_", "shippo_test_"], r"[0-9a-f]{40}\b"),
    // Productivity.
    ("linear", &["lin_api_", "lin_oauth_"], r"[A-Za-z0-9]{32,}"),
    ("notion", &["secret_"], r"[A-Za-z0-9]{43}\b"),
    ("notion", &["ntn_"], r"[A-Za-z0-9]{40,}"),
    ("figma", &["figd_", "figo_", "figu_"], r"[\w-]{36,}"),
    ("airtable", &["pat"], r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("dropbox", &["sl."], r"(?:[a-z]\.)?[\w-]{120,}"),
    ("typeform", &["tfp_"], r"[\w-]{40,}(?:[.=][\w-]+)*"),
    ("contentful", &["CFPAT-"], r"[\w-]{40,}"),
    ("prefect", &["pnu_", "pnb_"], r"[A-Za-z0-9]{36}"),
    ("readme", &["rdme_"], r"[a-z0-9]{60,}"),
    ("infracost", &["ico-"], r"[A-Za-z0-9]{32}\b"),
    // Formats without a vendor.
    ("jwt", &["eyJ"], r"[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    // Five parts: encrypted instead of signed.
    ("jwt", &["eyJ"], r"[\w-]{8,}\.[\w-]*\.[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"),
    // A block without spaces or with a line of Base64, and the start of a truncated block. Line numbers, diff markers
    // and escaped newlines may be between the lines.
    ("private-key", &["-----BEGIN "],
        "[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?:-{0,4}[^- \\[])*[A-Za-z0-9]{6}(?:-{0,4}[^- \\[])*\
         |(?:-{0,4}[^-\\[])*[A-Za-z0-9+/=]{24}(?:-{0,4}[^-\\[])*)-----END [A-Z0-9 ]+-{0,5}"),
    ("private-key", &["-----BEGIN "],
        "[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:-?[^-\\[]){0,160}?[A-Za-z0-9+/=]{40,}\
         (?:[^-\\[]{1,16}?[A-Za-z0-9+/=]{16,})*(?:[^-\\[]{1,16}?[A-Za-z0-9+/=]+\\z)?"),
    // The same for PuTTY, which states the number of lines.
    ("private-key", &["Private-Lines: "], r"[0-9]+(?:\\[rn]|\s)+(?:[A-Za-z0-9+/=]{60,64}(?:\\[rn]|\s)+)+[A-Za-z0-9+/=]{1,64}"),
];

/// Shapes that are too weak alone, and the word that must come shortly before them.
pub(super) const REQUIRED_WORDS: &[(&str, &str)] = &[("SK", "twilio"), ("s.", "vault")];

/// Keys recognised by their middle: the bytes before the anchor are checked too.
pub(super) const BEHIND: &[Behind] = &[
    Behind {
        kind: "telegram",
        anchor: ":AA",
        class: |byte| byte.is_ascii_digit(),
        length: 8..=10,
        rest: r"[\w-]{32,34}\b",
    },
    Behind {
        kind: "terraform",
        anchor: ".atlasv1.",
        class: |byte| byte.is_ascii_alphanumeric(),
        length: 14..=14,
        rest: r"[\w=-]{60,}",
    },
    Behind { kind: "mailchimp", anchor: "-us", class: is_small_hex, length: 32..=32, rest: r"[0-9]{1,2}\b" },
    Behind {
        kind: "azure",
        anchor: "8Q~",
        class: |byte| byte.is_ascii_alphanumeric() || b"_~.-".contains(&byte),
        length: 3..=3,
        rest: r"[\w~.-]{31,34}",
    },
];

fn is_small_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}
