//! Shared by Gemini CLI and its forks: chat files, tool calls, their results, and the prompt log.

pub(crate) mod authored;
pub(crate) mod blocks;
pub(crate) mod calls;
pub(crate) mod chat;
pub(crate) mod drift;
pub(crate) mod files;
pub(crate) mod logs;
pub(crate) mod people;
pub(crate) mod projects;
pub(crate) mod tape;
