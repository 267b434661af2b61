//! Streams of gaps: what could not be read or fetched is listed by kind.

/// What a gap is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GapStream<'n> {
    /// Files of a home that could not be read, by path.
    Files,
    /// Files whose content could not be decoded, by path.
    Content,
    /// Directories that could not be listed, by path.
    Folders,
    /// Tables of a client's databases, by the pattern that declares them.
    Databases,
    /// Members of an import, by name.
    Imports,
    /// Conversations of a provider, by id.
    Conversations,
    /// What belongs to a conversation and is not part of it, by the id of the conversation.
    ConversationDocuments,
    /// Lists of a provider that could not be walked to the end, by name.
    Lists,
    /// Documents of a provider, by name.
    Documents,
    /// A stream of a connector.
    Connector(&'n str),
}

impl<'n> GapStream<'n> {
    /// The name in archives and answers.
    pub fn name(self) -> &'n str {
        match self {
            GapStream::Files => "files",
            GapStream::Content => "content",
            GapStream::Folders => "folders",
            GapStream::Databases => "databases",
            GapStream::Imports => "imports",
            GapStream::Conversations => "conversations",
            GapStream::ConversationDocuments => "conversation_documents",
            GapStream::Lists => "lists",
            GapStream::Documents => "documents",
            GapStream::Connector(name) => name,
        }
    }

    /// Whether a stored name is this stream.
    pub fn is(self, name: &str) -> bool {
        self.name() == name
    }
}
