//! Homes that many checks run on: always the fixtures, and homes written by real clients if a directory of them is
//! given.

use std::path::{Path, PathBuf};

use crate::sources;

/// A home of a source's client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientHome {
    pub source: &'static str,
    pub path: PathBuf,
}

/// Homes of one source.
pub fn of<'h>(homes: &'h [ClientHome], source: &'h str) -> impl Iterator<Item = PathBuf> + 'h {
    homes.iter().filter(move |home| home.source == source).map(|home| home.path.clone())
}

/// The homes of all fixtures.
pub fn fixtures() -> Vec<ClientHome> {
    let cases = crate::fixtures::with_home().into_iter();
    cases.map(|(source, case)| ClientHome { source, path: case.join("home") }).collect()
}

/// Without the fixture whose shapes are so odd that a plain count gives another result.
pub fn regular(homes: &[ClientHome]) -> impl Iterator<Item = &ClientHome> {
    homes.iter().filter(|home| !home.path.ends_with("unknown_shapes/home"))
}

/// The homes below `ANNALS_REAL_HOMES`, by source and version; prints how many there are.
pub fn real(check: &str) -> Vec<ClientHome> {
    let folder = std::env::var_os("ANNALS_REAL_HOMES").expect("ANNALS_REAL_HOMES names a folder of homes");
    let folder = Path::new(&folder);
    let mut homes = Vec::new();
    for source in sources::with_home() {
        let Ok(versions) = std::fs::read_dir(folder.join(source)) else { continue };
        for version in versions {
            let version = version.unwrap().path();
            // Some are the client's directory itself, some the user's home around it.
            let inner = sources::home_of(source, &version);
            homes.push(ClientHome { source, path: if inner.is_dir() { inner } else { version } });
        }
    }
    homes.sort();
    assert!(!homes.is_empty(), "no homes of {:?} below {}", sources::with_home(), folder.display());
    println!("{check}: {} homes of real clients", homes.len());
    homes
}

/// `over_homes! { check, another }` for functions of `&[ClientHome]`: each becomes a test on the fixtures, and one on real
/// homes that `make test-real` runs; without a directory of homes it is listed as ignored.
#[macro_export]
macro_rules! over_homes {
    ($($name:ident),+) => {
        mod of_fixtures {
            $(
                #[test]
                fn $name() {
                    super::$name(&$crate::homes::fixtures());
                }
            )+
        }

        mod of_real_homes {
            $(
                #[test]
                #[ignore = "needs homes of real clients: ANNALS_REAL_HOMES=DIR make test-real"]
                fn $name() {
                    super::$name(&$crate::homes::real(stringify!($name)));
                }
            )+
        }
    };
}
