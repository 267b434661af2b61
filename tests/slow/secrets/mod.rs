//! No output shows a secret: every verb, every route and every page is tried on homes full of them.

mod exits;
mod groups;
mod http;
mod pages;
