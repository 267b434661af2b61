//! Keys of rows in an archive. Each kind is a type, so that a file cannot be taken for a session.

/// Declares id types; 0 is before every row. With the feature `sqlite` they are bound to and read from statements like the integers they are.
macro_rules! ids {
    ($($(#[$attribute:meta])* $name:ident;)*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub i64);

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(out)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_i64(self.0)
            }
        }

        #[cfg(feature = "sqlite")]
        impl rusqlite::ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
                self.0.to_sql()
            }
        }

        #[cfg(feature = "sqlite")]
        impl rusqlite::types::FromSql for $name {
            fn column_result(value: rusqlite::types::ValueRef<'_>) -> rusqlite::types::FromSqlResult<$name> {
                i64::column_result(value).map($name)
            }
        }
    )*};
}

ids! {
    /// A home of one source on one machine.
    InstanceId;
    /// A file of an instance, with all its versions.
    FileId;
    /// A session of an instance.
    SessionId;
    /// A person with access to the archive.
    MemberId;
    /// A group of members.
    OrganisationId;
}

impl SessionId {
    /// Of passages that belong to a file only.
    pub const NONE: SessionId = SessionId(0);
}
