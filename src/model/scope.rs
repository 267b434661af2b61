//! Who is asking: every question to the store and the views starts with one.

/// Local use has one owner, who sees the whole archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Owner,
}

impl Scope {
    pub fn owner() -> Scope {
        Scope::Owner
    }
}
