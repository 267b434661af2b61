//! No exit shows a secret: every verb, every route and every page is asked about homes that are full of them.

mod exits;
mod http;
mod pages;
