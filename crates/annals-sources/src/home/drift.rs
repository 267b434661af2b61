//! Fields that no version of a client was seen to write.

use crate::json::{Object, unescape};
use annals_core::Item;

/// Reports every field of an object that is in none of the lists.
pub fn each_unknown(object: &Object<'_>, known: &[&[&str]], what: &str, out: &mut Vec<Item>) {
    for (name, _) in object.fields() {
        if !known.iter().any(|names| names.iter().any(|known| known.as_bytes() == *name)) {
            out.push(Item::Drift(format!("{what} field {}", unescape(name))));
        }
    }
}
