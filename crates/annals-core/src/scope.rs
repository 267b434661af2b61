//! Who is asking: every question to the store and the views starts with one.

use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::stored::named;

/// Whose homes an asker may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The person at this machine, and members with that role: the whole archive.
    Owner,
    /// An admin: homes of every member of one organisation.
    Organisation(i64),
    /// A member: their own homes.
    Member(i64),
}

impl Scope {
    pub fn owner() -> Scope {
        Scope::Owner
    }
}

/// What a member may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum MemberRole {
    Owner,
    Admin,
    Member,
}

named!(MemberRole);
