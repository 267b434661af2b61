//! Access tokens of programs and browsers: unguessable, and stored only as a keyed hash.

use super::door::random_bytes;
use annals_core::{Error, Result, to_hex};
use annals_store::Store;

const PREFIX: &str = "annals_";

pub fn new_token() -> String {
    format!("{PREFIX}{}", to_hex(&random_bytes()))
}

/// The token of the person at this machine; one for each archive, so that a bookmark keeps working.
pub fn local_token(store: &Store) -> Result<String> {
    let made = store.setting_or_make("local_token", || new_token().into_bytes())?;
    Ok(String::from_utf8_lossy(&made).into_owned())
}

/// What turns tokens into what the archive keeps of them: without it they cannot even be guessed at.
#[derive(Clone, Copy)]
pub struct TokenKey([u8; 32]);

impl TokenKey {
    pub fn of(store: &Store) -> Result<TokenKey> {
        let key = store.setting_or_make("token_key", || random_bytes().to_vec())?;
        let broken = |_| {
            Error::new("the token key of this archive is damaged").hint("restore annals.db from a backup")
        };
        Ok(TokenKey(key.try_into().map_err(broken)?))
    }

    pub fn hash(&self, token: &str) -> [u8; 32] {
        *blake3::keyed_hash(&self.0, token.as_bytes()).as_bytes()
    }
}
