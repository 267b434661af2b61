//! Generated homes of any size, the same bytes for the same plan: what benches measure on and tests need in bulk.

pub mod chatgpt;
pub mod claude;
pub mod codex;
pub mod words;
