//! Access tokens for programs and browsers: unguessable, and stored only as keyed hashes.

use super::door::random_bytes;
use annals_core::{Error, Result, Time, to_hex};
use annals_store::Store;

const PREFIX: &str = "annals_";

pub fn new_token() -> String {
    format!("{PREFIX}{}", to_hex(&random_bytes()))
}

/// The token of the local user: one per archive, so that bookmarks keep working.
pub fn local_token(store: &Store) -> Result<String> {
    let stored = store.setting_or_make("local_token", || new_token().into_bytes())?;
    // An archive that cannot be written gets another one each time it is served.
    Ok(stored.map_or_else(new_token, |stored| String::from_utf8_lossy(&stored).into_owned()))
}

/// The same, if the archive has one.
pub fn stored_local_token(store: &Store) -> Result<Option<String>> {
    let stored = store.setting("local_token")?;
    Ok(stored.map(|stored| String::from_utf8_lossy(&stored).into_owned()))
}

/// Replaces the token of the local user, and logs out the browsers that had it.
pub fn rotate_local_token(store: &Store) -> Result<String> {
    let token = new_token();
    store.replace_local_token(token.as_bytes())?;
    Ok(token)
}

/// Microseconds until a link that was not opened expires.
const LINK_LIFE: i64 = 24 * 3_600_000_000;

/// The secret part of a link that logs a browser of the owner in, once.
pub fn new_link(store: &Store, now: Time) -> Result<String> {
    new_link_with(&TokenKey::of(store)?, store, now)
}

/// The same with the key of another archive.
pub fn new_link_with(key: &TokenKey, store: &Store, now: Time) -> Result<String> {
    let link = new_token();
    let expires_at = Time::from_micros(now.micros().saturating_add(LINK_LIFE));
    store.add_browser_link(&key.hash(&link), None, expires_at)?;
    Ok(link)
}

/// The key that tokens are hashed with: without it, the stored hashes cannot be brute-forced.
#[derive(Clone, Copy)]
pub struct TokenKey([u8; 32]);

impl TokenKey {
    pub fn of(store: &Store) -> Result<TokenKey> {
        let key = store.setting_or_make("token_key", || random_bytes().to_vec())?;
        let key = key.unwrap_or_else(|| random_bytes().to_vec());
        let damaged = |_| {
            Error::new("the token key of this archive is damaged").hint("restore annals.db from a backup")
        };
        Ok(TokenKey(key.try_into().map_err(damaged)?))
    }

    pub fn hash(&self, token: &str) -> [u8; 32] {
        *blake3::keyed_hash(&self.0, token.as_bytes()).as_bytes()
    }
}
