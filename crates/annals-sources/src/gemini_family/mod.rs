//! What Gemini CLI and the clients that grew out of it write alike: chats, parts of requests, tools, folders of projects.

pub mod authored;
pub mod blocks;
pub mod call_lines;
pub mod calls;
pub mod chat;
mod chat_calls;
pub mod drift;
pub mod files;
pub mod logs;
pub mod people;
pub mod projects;
pub mod streams;
