//! The order in which files arrive changes nothing: of copies, forks, titles and prompts in several files, the same
//! one counts.

use annals_testkit::Bench;
use annals_testkit::checks::assert_same;
use annals_testkit::corpora::generator::Random;
use annals_testkit::files::{copy_file, files_below};
use annals_testkit::homes::ClientHome;

annals_testkit::over_homes! { rows_do_not_depend_on_the_order_of_arrival }

const ORDERS: u64 = 3;
const RUNS: u64 = 3;

fn rows_do_not_depend_on_the_order_of_arrival(homes: &[ClientHome]) {
    for home in homes {
        let at_once = Bench::with_home(home.source, &home.path);
        at_once.sync_of(home.source);
        let expected = rows(&at_once);
        for seed in 1..=ORDERS {
            println!("{} in order {seed}", home.path.display());
            assert_same(&expected, &rows(&arrived_in_parts(home, seed)));
        }
    }
}

/// A bench that synced several times while the files of a home arrived one after another.
fn arrived_in_parts(home: &ClientHome, seed: u64) -> Bench {
    let (bench, mut random) = (Bench::new(), Random(seed));
    let mut files: Vec<(u64, _)> =
        files_below(&home.path).into_iter().map(|file| (random.below(RUNS), file)).collect();
    files.sort();
    for run in 0..RUNS {
        for (_, file) in files.iter().filter(|(arrives, _)| *arrives == run) {
            copy_file(file, &bench.home_of(home.source).join(file.strip_prefix(&home.path).unwrap()));
        }
        bench.sync_of(home.source);
    }
    bench
}

/// All rows, without the bench's own folder. How often a document was made of files that arrive in parts is another matter.
fn rows(bench: &Bench) -> String {
    let made = regex::Regex::new(r#"("path":"together/[^"]*","store":"[^"]*","versions":)\d+"#).unwrap();
    let text = bench.everything().replace(bench.folder.path().to_str().unwrap(), "");
    made.replace_all(&text, "${1}0").into_owned()
}
