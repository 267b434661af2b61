//! Streams that the clients of the family have in common, besides those of all homes.

use crate::home::streams::transcript;
use annals_core::{Family, Field, Rows, Semantics, Stream};

pub const HISTORY: Stream = transcript(
    "history",
    "every prompt typed in the interactive client, including those of deleted sessions",
    Rows::Records,
    Semantics::AppendOnly,
    "at",
    &[
        Field::new("sessionId", "string", "session"),
        Field::new("messageId", "integer", "number of the prompt in its session"),
        Field::new("type", "string|null", "always user"),
        Field::preview("message", "string", "what was typed", "records … --key KEY --full"),
        Field::new("timestamp", "string", "RFC 3339 UTC"),
    ],
);

pub const CHECKPOINTS: Stream = Stream::mutable_records(
    "checkpoints",
    "conversations saved with /chat save",
    Family::Authored,
    &[
        Field::new("id", "string", "project and tag"),
        Field::new("tag", "string", "name given by the user"),
        Field::new("messages", "integer", "messages of the saved conversation"),
        Field::preview(
            "history",
            "array",
            "the conversation as the model saw it",
            "records … --key ID --full",
        ),
        Field::new("bytes", "integer", "length in bytes"),
    ],
);
