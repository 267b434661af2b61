//! What people remember of their sessions, and what they type to find them: short hand-written sessions, each with
//! the queries that should find it.
//!
//! Longer than other files because it is a table.

use annals_testkit::corpora::codex::Step::{self, Assistant, Ran, User};

/// How a query relates to the text it looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Words of one message, as written.
    Exact,
    /// Words of one message, in another order and not adjacent.
    Order,
    /// Names, paths, hashes, error codes.
    Code,
    /// Scripts without spaces.
    Cjk,
    /// Quoted words, which must be adjacent.
    Phrase,
    /// As one would ask a person: other forms, other words, and many that mean nothing.
    Question,
}

pub use Kind::{Cjk, Code, Exact, Order, Phrase, Question};

pub struct Needle {
    pub steps: &'static [Step<'static>],
    pub queries: &'static [(Kind, &'static str)],
}

pub const NEEDLES: &[Needle] = &[
    Needle {
        steps: &[
            User("The login spec fails about once in ten runs on the build machines, can you look into it?"),
            Ran(
                "npx playwright test login.spec.ts --repeat-each 20",
                "18 passed\n2 failed: expected dashboard heading to be visible",
            ),
            Assistant(
                "Fixed the flaky login test: it clicked submit before hydration had finished, so now it waits for the form to be enabled.",
            ),
        ],
        queries: &[
            (Exact, "flaky login test"),
            (Order, "hydration submit login"),
            (Question, "where did we fix the flaky login test"),
        ],
    },
    Needle {
        steps: &[
            User("Send a fake payment event to the staging webhook so that I can watch the handler."),
            Ran(
                "curl -sS -X POST https://hooks.staging.example.com/stripe -H 'Stripe-Signature: t=1,v1=abc' -d @event.json",
                "{\"received\":true}",
            ),
            Assistant("The staging webhook answered 200 and the handler stored the event."),
        ],
        queries: &[
            (Code, "Stripe-Signature"),
            (Exact, "staging webhook"),
            (Question, "what was the curl command for the staging webhook"),
        ],
    },
    Needle {
        steps: &[
            User("Pods of the gateway get OOMKilled every night around three."),
            Ran(
                "kubectl describe pod gateway-7d9f",
                "Last State: Terminated\nReason: OOMKilled\nExit Code: 137",
            ),
            Assistant(
                "The nightly sitemap job loads every product at once. I raised the limit to 768Mi for now and made the job stream in batches of 500.",
            ),
        ],
        queries: &[
            (Code, "OOMKilled"),
            (Order, "batches sitemap nightly"),
            (Question, "why was the gateway running out of memory at night"),
        ],
    },
    Needle {
        steps: &[
            User("Which index does the slow orders query need?"),
            Ran(
                "psql -c 'explain analyze select * from orders where customer_id = 7 order by placed_at desc limit 20'",
                "Seq Scan on orders (cost=0.00..48211.00 rows=1) (actual time=812.4 ms)",
            ),
            Assistant(
                "A composite index on (customer_id, placed_at desc) turns the sequential scan into an index scan: 812 ms become 0.4 ms.",
            ),
        ],
        queries: &[
            (Exact, "composite index sequential scan"),
            (Phrase, "\"composite index on\""),
            (Question, "how did we speed up the slow query on orders"),
        ],
    },
    Needle {
        steps: &[
            User("Rust complains about a future that is not Send in the uploader."),
            Ran(
                "cargo check -p uploader",
                "error: future cannot be sent between threads safely\nnote: future is not `Send` as this value is used across an await: std::sync::MutexGuard",
            ),
            Assistant(
                "The MutexGuard lived across the await. I narrowed its scope with a block; tokio::sync::Mutex was not needed.",
            ),
        ],
        queries: &[
            (Code, "MutexGuard"),
            (Code, "tokio::sync::Mutex"),
            (Question, "how did I get rid of the error that a future is not Send"),
        ],
    },
    Needle {
        steps: &[
            User("Please write the runbook for rotating the signing certificate of the mobile app."),
            Assistant(
                "Runbook: create the certificate request in Keychain, upload it to the developer portal, download the new certificate, refresh both provisioning profiles, and tell the release captain before the old one expires on the ninth of June.",
            ),
        ],
        queries: &[
            (Exact, "provisioning profiles"),
            (Order, "certificate rotating runbook"),
            (Question, "when does the signing certificate for the app expire"),
        ],
    },
    Needle {
        steps: &[
            User(
                "I decided against Kafka for the audit trail, please note the reasons in docs/adr/0014-audit-trail.md.",
            ),
            Ran(
                "cat docs/adr/0014-audit-trail.md",
                "# 14. Audit trail in Postgres\n\nStatus: accepted\n\nA broker would be one more thing to operate for forty events a minute.",
            ),
            Assistant(
                "Written: the audit trail stays in Postgres with an outbox table; the broker would cost more to operate than it gives.",
            ),
        ],
        queries: &[
            (Code, "docs/adr/0014-audit-trail.md"),
            (Phrase, "\"outbox table\""),
            (Question, "why did we decide against using kafka"),
        ],
    },
    Needle {
        steps: &[
            User("登录页面在微信浏览器里显示空白,请帮我修复。"),
            Assistant("原因是旧版内核不支持可选链语法。我把构建目标改成了 es2015,空白页面的问题已经解决。"),
        ],
        queries: &[(Cjk, "可选链语法"), (Cjk, "微信浏览器"), (Cjk, "登录页面 空白")],
    },
    Needle {
        steps: &[
            User("請求書のPDFで日本語の文字化けが起きています。"),
            Assistant(
                "埋め込みフォントが不足していたので、Noto Sans CJKを追加しました。請求書の文字化けは直りました。",
            ),
        ],
        queries: &[(Cjk, "文字化け"), (Cjk, "埋め込みフォント"), (Cjk, "請求書 フォント")],
    },
    Needle {
        steps: &[
            User("결제 화면에서 할인 쿠폰이 두 번 적용되는 버그를 찾아줘."),
            Assistant(
                "쿠폰 적용 요청이 재시도될 때 중복 검사가 없었습니다. 멱등성 키를 추가해서 고쳤습니다.",
            ),
        ],
        queries: &[(Cjk, "멱등성"), (Cjk, "할인 쿠폰"), (Cjk, "중복 검사")],
    },
    Needle {
        steps: &[
            User("数据库迁移在生产环境卡住了,锁等待超时。"),
            Ran(
                "mysql -e 'show engine innodb status'",
                "Lock wait timeout exceeded; try restarting transaction",
            ),
            Assistant("迁移脚本给大表加列时拿不到元数据锁。我改用了 gh-ost 在线变更,凌晨两点执行。"),
        ],
        queries: &[(Cjk, "元数据锁"), (Cjk, "在线变更"), (Code, "gh-ost")],
    },
    Needle {
        steps: &[
            User("スケジューラーが夏時間の切り替えで二重に実行されました。"),
            Assistant(
                "時刻をUTCで保存し、表示するときだけ現地時間に変換するようにしました。夏時間でも一度だけ実行されます。",
            ),
        ],
        queries: &[(Cjk, "夏時間"), (Cjk, "現地時間に変換"), (Cjk, "二重に実行")],
    },
    Needle {
        steps: &[
            User("Migrate the logger from winston to pino, keep the request ids."),
            Ran(
                "npm uninstall winston && npm install pino pino-http",
                "added 14 packages, removed 22 packages",
            ),
            Assistant(
                "The logger is pino now. Request ids come out of AsyncLocalStorage and appear as reqId in every line.",
            ),
        ],
        queries: &[
            (Exact, "winston pino"),
            (Code, "AsyncLocalStorage"),
            (Question, "which session moved our logging over to pino"),
        ],
    },
    Needle {
        steps: &[
            User(
                "Deploy fails with x509: certificate signed by unknown authority when it pulls from our registry.",
            ),
            Assistant(
                "The runner's image has no copy of the internal root. I mounted ca-bundle.crt into /etc/docker/certs.d/registry.internal:5000 and the pull works.",
            ),
        ],
        queries: &[
            (Phrase, "\"certificate signed by unknown authority\""),
            (Code, "/etc/docker/certs.d/registry.internal:5000"),
            (Question, "how to make docker trust the certificates of our internal registry"),
        ],
    },
    Needle {
        steps: &[
            User("Add a dark mode toggle to the settings screen."),
            Ran(
                "git show --stat 9fceb02d0ae598e95dc970b74767f19372d61af8",
                "commit 9fceb02d0ae598e95dc970b74767f19372d61af8\n\n    settings: dark mode toggle, remembered per device",
            ),
            Assistant(
                "Done, it follows prefers-color-scheme until somebody chooses, and remembers the choice per device.",
            ),
        ],
        queries: &[
            (Code, "9fceb02d0ae598e95dc970b74767f19372d61af8"),
            (Code, "9fceb02*"),
            (Exact, "dark mode toggle"),
        ],
    },
    Needle {
        steps: &[
            User(
                "A customer says ticket 5f2b1c9e-8a41-4d0b-9a57-0c3de1f7ab62 shows somebody else's attachments.",
            ),
            Assistant(
                "The attachments endpoint looked up by filename alone. It joins on the tenant now, with a regression test for two tenants that upload invoice.pdf.",
            ),
        ],
        queries: &[
            (Code, "5f2b1c9e-8a41-4d0b-9a57-0c3de1f7ab62"),
            (Order, "tenant attachments regression"),
            (Question, "when did a customer see files belonging to another tenant"),
        ],
    },
    Needle {
        steps: &[
            User("What does ERR_OSSL_EVP_UNSUPPORTED mean in the old frontend build?"),
            Assistant(
                "Webpack 4 hashes with md4, which OpenSSL 3 dropped. Either set NODE_OPTIONS=--openssl-legacy-provider or upgrade to webpack 5; we upgraded.",
            ),
        ],
        queries: &[
            (Code, "ERR_OSSL_EVP_UNSUPPORTED"),
            (Code, "--openssl-legacy-provider"),
            (Question, "did we upgrade webpack because of openssl"),
        ],
    },
    Needle {
        steps: &[
            User("How much would it cost us to keep thirty days of traces instead of seven?"),
            Assistant(
                "At eleven gigabytes a day and the present price, thirty days of traces come to roughly 420 dollars a month, against 98 for seven. Tail sampling at ten percent would bring it to 51.",
            ),
        ],
        queries: &[
            (Exact, "tail sampling"),
            (Phrase, "\"thirty days of traces\""),
            (Question, "what did we estimate for the monthly costs of keeping traces longer"),
        ],
    },
    Needle {
        steps: &[
            User("The cron for the newsletter sent everything twice last Sunday."),
            Ran("crontab -l -u mailer", "0 6 * * 0 /opt/mailer/send --list weekly"),
            Assistant(
                "Two hosts carried the same crontab after the failover. A Postgres advisory lock now guards the newsletter, so the second host leaves at once.",
            ),
        ],
        queries: &[
            (Exact, "advisory lock newsletter"),
            (Order, "failover crontab hosts"),
            (Question, "why were newsletters being sent twice on sundays"),
        ],
    },
    Needle {
        steps: &[
            User("Draw the map tiles with clustering, five thousand markers freeze the browser."),
            Assistant(
                "Supercluster runs in a web worker and the markers are drawn on a canvas layer; five thousand of them pan at sixty frames a second.",
            ),
        ],
        queries: &[
            (Exact, "supercluster web worker"),
            (Order, "canvas markers pan"),
            (Question, "how did we stop the map from freezing with thousands of markers"),
        ],
    },
    Needle {
        steps: &[
            User("Parse the bank's MT940 statements, the balances are off by one day."),
            Assistant(
                "Field :61: carries a value date and an entry date; I read the wrong one. parse_statement_line takes the entry date now, and the balances agree with the bank.",
            ),
        ],
        queries: &[
            (Code, "parse_statement_line"),
            (Code, "MT940"),
            (Question, "which date of the bank statements was wrong for the balances"),
        ],
    },
    Needle {
        steps: &[
            User("Let's think about names for the command line tool, something with bees."),
            Assistant(
                "Candidates: apiary, waggle, honeycomb, nectar, drone. Waggle is free on the registry, easy to type, and the dance tells where things are.",
            ),
            User("waggle it is"),
        ],
        queries: &[
            (Exact, "apiary waggle honeycomb"),
            (Question, "what name did we choose for the command line tool about bees"),
        ],
    },
    Needle {
        steps: &[
            User("My ssh session to the bastion drops after a few idle minutes."),
            Assistant(
                "Put ServerAliveInterval 30 and ServerAliveCountMax 4 under the bastion host in ~/.ssh/config; the firewall forgets idle connections after five minutes.",
            ),
        ],
        queries: &[
            (Code, "ServerAliveInterval"),
            (Order, "idle firewall bastion"),
            (Question, "how do I keep ssh connections to the bastion from dropping"),
        ],
    },
    Needle {
        steps: &[
            User("Compare zstd and brotli for the asset bundle."),
            Ran(
                "bash bench-compress.sh dist/app.js",
                "brotli -q 11: 212 KB, 1.9 s\nzstd -19: 231 KB, 0.6 s\ngzip -9: 268 KB, 0.1 s",
            ),
            Assistant(
                "Brotli at quality 11 is nine percent smaller and takes three times as long; since assets are built once, I chose brotli.",
            ),
        ],
        queries: &[
            (Exact, "brotli quality asset"),
            (Code, "bench-compress.sh"),
            (Question, "which compression did I choose for the assets"),
        ],
    },
    Needle {
        steps: &[
            User("Terraform wants to destroy the production database because of the renamed module!"),
            Ran(
                "terraform state mv module.db module.primary_database",
                "Move \"module.db\" to \"module.primary_database\"\nSuccessfully moved 1 object(s).",
            ),
            Assistant(
                "After the state move the plan is empty. I also added prevent_destroy to the database.",
            ),
        ],
        queries: &[
            (Code, "prevent_destroy"),
            (Phrase, "\"terraform state mv\""),
            (Question, "how did we keep terraform from destroying the production database"),
        ],
    },
    Needle {
        steps: &[
            User("The accessibility audit says our modal traps screen readers."),
            Assistant(
                "The dialog had aria-hidden on its own parent. It uses the inert attribute on the background now, returns focus to the opener, and closes on Escape.",
            ),
        ],
        queries: &[
            (Code, "aria-hidden"),
            (Exact, "inert attribute background"),
            (Question, "what was wrong with our modal for people using screen readers"),
        ],
    },
    Needle {
        steps: &[
            User("Why is my Go service leaking goroutines?"),
            Ran(
                "go tool pprof -top http://localhost:6060/debug/pprof/goroutine",
                "18231 runtime.gopark\n18102 github.com/acme/feed.(*Poller).loop",
            ),
            Assistant(
                "Poller.loop waits for a ticker that nobody stops. Close cancels its context now, and goleak watches the tests.",
            ),
        ],
        queries: &[
            (Code, "goleak"),
            (Order, "ticker goroutines leaking"),
            (Question, "how was the leak of goroutines found"),
        ],
    },
    Needle {
        steps: &[
            User("Write a haiku for the retirement card of Margarethe from accounting."),
            Assistant("Ledgers closed at last,\nthe numbers rest in their rows -\nspring walks in early."),
        ],
        queries: &[
            (Exact, "Margarethe haiku"),
            (Phrase, "\"spring walks in early\""),
            (Question, "the poem for the colleague who retired from accounting"),
        ],
    },
    Needle {
        steps: &[
            User("Our GraphQL resolver makes one query per author, can we batch that?"),
            Assistant(
                "DataLoader collects the author ids of one tick and asks once; the page of fifty posts went from 51 queries to 2. The loader lives in the request context so that nothing leaks between users.",
            ),
        ],
        queries: &[
            (Code, "DataLoader"),
            (Order, "posts queries author resolver"),
            (Question, "how did we reduce the number of queries in graphql resolvers"),
        ],
    },
    Needle {
        steps: &[
            User("Set up the Raspberry Pi in the greenhouse: soil moisture every ten minutes into InfluxDB."),
            Ran("systemctl status moisture.timer", "Active: active (waiting)\nTriggers: moisture.service"),
            Assistant(
                "moisture.timer reads the ADS1115 over I2C every ten minutes and writes to the bucket greenhouse.",
            ),
        ],
        queries: &[
            (Code, "ADS1115"),
            (Code, "moisture.timer"),
            (Question, "how often does the raspberry pi measure the moisture of the soil"),
        ],
    },
    Needle {
        steps: &[
            User("The French translation breaks the pricing table, the strings are too long."),
            Assistant(
                "I let the plan column wrap, shortened 'Facturation annuelle anticipée' with the translators, and added a pseudo-locale to the visual tests that makes every string forty percent longer.",
            ),
        ],
        queries: &[
            (Exact, "pseudo-locale"),
            (Phrase, "\"Facturation annuelle\""),
            (Question, "which translations were too long for the pricing table"),
        ],
    },
    Needle {
        steps: &[
            User(
                "git push says the pack exceeds the maximum allowed size, I think somebody committed a video.",
            ),
            Ran(
                "git filter-repo --path media/intro.mp4 --invert-paths",
                "Parsed 4120 commits\nNew history written in 3.40 seconds",
            ),
            Assistant(
                "The video is out of the history; everybody has to clone again. I added a pre-commit check for files over five megabytes.",
            ),
        ],
        queries: &[
            (Code, "git filter-repo"),
            (Code, "media/intro.mp4"),
            (Question, "how did we remove the large video from git history"),
        ],
    },
    Needle {
        steps: &[
            User("How do I undo the last three commits but keep my changes staged?"),
            Assistant(
                "git reset --soft HEAD~3 moves the branch back and leaves everything in the index; --mixed would unstage it, and --hard would throw it away.",
            ),
        ],
        queries: &[
            (Code, "HEAD~3"),
            (Phrase, "\"git reset --soft\""),
            (Question, "command to undo my last commits while keeping changes"),
        ],
    },
    Needle {
        steps: &[
            User("Users behind the office proxy cannot open websockets."),
            Assistant(
                "The proxy strips the Upgrade header. The client falls back to server-sent events after two failed handshakes, and the status page shows which transport is used.",
            ),
        ],
        queries: &[
            (Exact, "server-sent events handshakes"),
            (Order, "header proxy upgrade"),
            (Question, "what happens for users whose proxy blocks websockets"),
        ],
    },
    Needle {
        steps: &[
            User("We need a feature flag for the new checkout, ten percent of visitors first."),
            Ran(
                "rg -n 'checkout_v2' apps/shop",
                "apps/shop/flags.ts:14: checkout_v2: { rollout: 10, sticky: 'visitorId' }",
            ),
            Assistant(
                "checkout_v2 is rolled out to ten percent, sticky by visitorId, with a kill switch in the admin.",
            ),
        ],
        queries: &[
            (Code, "checkout_v2"),
            (Exact, "kill switch"),
            (Question, "what share of visitors gets the new checkout"),
        ],
    },
    Needle {
        steps: &[
            User("The embedded build overflows flash by 3 KB after the new TLS stack."),
            Assistant(
                "Link-time optimisation, no floating point printf and one cipher suite less: 11 KB saved. The map file says mbedtls_x509 was the largest piece.",
            ),
        ],
        queries: &[
            (Code, "mbedtls_x509"),
            (Order, "printf cipher flash"),
            (Question, "how did I make the firmware small enough to fit into flash"),
        ],
    },
    Needle {
        steps: &[
            User("Reviewers keep asking for smaller pull requests; how would you split the billing rewrite?"),
            Assistant(
                "Four steps: introduce the Money type, move rounding behind it, switch invoices, then subscriptions. Each lands behind the same tests, and none is longer than four hundred lines.",
            ),
        ],
        queries: &[
            (Exact, "Money type rounding"),
            (Order, "subscriptions invoices rounding"),
            (Question, "in which order did we want to split up rewriting the billing"),
        ],
    },
    Needle {
        steps: &[
            User("Python import of our package takes four seconds, find out why."),
            Ran(
                "python -X importtime -c 'import harbor'",
                "import time: 2811402 | 3120044 | harbor.plotting\nimport time: 2740010 | 2790122 | matplotlib.pyplot",
            ),
            Assistant(
                "harbor.plotting pulled in matplotlib at import. It is imported lazily inside plot() now: 0.3 seconds.",
            ),
        ],
        queries: &[
            (Code, "matplotlib.pyplot"),
            (Code, "importtime"),
            (Question, "why was importing our python package so slow"),
        ],
    },
    Needle {
        steps: &[
            User("Explain eventual consistency to my product manager in three sentences."),
            Assistant(
                "Think of two shops that share one notebook by post: for a day, each may believe something older. Nothing is lost, and in the end both hold the same pages. We choose this so that neither shop has to close when the mail is late.",
            ),
        ],
        queries: &[
            (Phrase, "\"two shops that share one notebook\""),
            (Order, "sentences consistency product manager"),
            (Question, "how did I explain eventual consistency to a manager"),
        ],
    },
    Needle {
        steps: &[
            User("Backups: prove that a restore works, and write down how long it takes."),
            Ran(
                "pgbackrest --stanza=main --delta restore",
                "restore command end: completed successfully (1093412ms)",
            ),
            Assistant(
                "The rehearsal restored 212 GB in eighteen minutes; the steps are in ops/restore-rehearsal.md.",
            ),
        ],
        queries: &[
            (Code, "pgbackrest"),
            (Code, "ops/restore-rehearsal.md"),
            (Question, "how long did restoring the backups take when we rehearsed it"),
        ],
    },
];
