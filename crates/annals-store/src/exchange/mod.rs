//! Archives that exchange bytes: what one has to offer, blobs on their way, and files that come with their versions.

mod hubs;
mod incoming;
mod manifest;
mod offered;
mod staged;

pub use hubs::HubState;
pub use incoming::{IncomingFile, KnownFile, ReceivedHome};
pub use manifest::{ContentHash, ExchangeFile, ExchangeVersion, HomeName, OwnerName};
pub use offered::{OfferedHome, SessionPlace, StampedFile};
pub use staged::PackedBlob;

use annals_core::MemberId;

/// Whose data it is.
pub(crate) fn holder(member: Option<MemberId>) -> i64 {
    member.map_or(0, |member| member.0)
}
