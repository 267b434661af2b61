//! The scope of a request: every query to the store and the views starts with one.

use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::ids::{MemberId, OrganisationId};
use crate::stored::named;

/// Whose homes the caller may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The local user, and members with that role: the whole archive.
    Owner,
    /// An admin: the homes of all members of one organisation.
    Organisation(OrganisationId),
    /// A member: their own homes.
    Member(MemberId),
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
