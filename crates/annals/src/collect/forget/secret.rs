//! Finds the text of a secret by its mark, so that the text can be forgotten.

use std::collections::BTreeSet;

use super::archived_files;
use crate::collect::ingest::content::decoder;
use crate::collect::ingest::forgotten::each_unit;
use annals_core::Result;
use annals_redact::Redactor;
use annals_store::Store;

/// The texts that are shown as `mark`; `key` is the one that masks of this archive are made with.
pub fn secret_texts(store: &Store, key: [u8; 32], mark: &str) -> Result<Vec<String>> {
    let redactor = Redactor::new(key);
    let mut texts = BTreeSet::new();
    for archived in archived_files(store)? {
        let file = &archived.file;
        for version in store.versions(file.id)? {
            let Ok(content) = decoder(store.bytes(file.id, version.version), file.encoding) else { continue };
            each_unit(content, file.framing, &mut |_, unit| {
                let text = String::from_utf8_lossy(unit);
                redactor.each(&text, &mut |found| {
                    if found.to_string() == mark
                        && let Some(secret) = text.get(found.range)
                    {
                        texts.insert(unescaped(secret));
                    }
                });
            })?;
        }
    }
    Ok(texts.into_iter().collect())
}

/// A text without the escapes of the JSON that it was found in, as deep as they are.
fn unescaped(text: &str) -> String {
    let mut text = text.to_owned();
    while text.contains('\\') {
        match serde_json::from_str::<String>(&format!("\"{text}\"")) {
            Ok(plain) if plain != text => text = plain,
            Ok(_) | Err(_) => break,
        }
    }
    text
}
