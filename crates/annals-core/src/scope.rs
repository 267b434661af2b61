//! The scope of a request: every query to the store and the views starts with one.

use strum::{EnumString, FromRepr, IntoStaticStr, VariantNames};

use crate::ids::{MemberId, OrganisationId};
use crate::stored::{named, stored_by_number};

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

/// How somebody read a session that is not theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromRepr, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[repr(i64)]
pub enum AccessKind {
    /// Its conversation, on a page, with a program or by an agent.
    Conversation = 0,
    /// A passage that a search found.
    Search = 1,
    /// Records of its messages, calls and outputs.
    Records = 2,
}

stored_by_number!(AccessKind else Conversation);
