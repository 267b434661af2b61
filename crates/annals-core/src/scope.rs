//! Who is asking: every question to the store and the views starts with one.

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberRole {
    Owner,
    Admin,
    Member,
}

impl MemberRole {
    pub const ALL: [MemberRole; 3] = [MemberRole::Owner, MemberRole::Admin, MemberRole::Member];

    pub fn name(self) -> &'static str {
        match self {
            MemberRole::Owner => "owner",
            MemberRole::Admin => "admin",
            MemberRole::Member => "member",
        }
    }

    pub fn from_name(name: &str) -> Option<MemberRole> {
        MemberRole::ALL.into_iter().find(|role| role.name() == name)
    }
}
