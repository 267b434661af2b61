//! The pages in a real Chromium: navigation, hostile content, very long sessions, and accessibility.

mod axe;
mod hostile;
mod live;
mod long;
mod reading;
mod walk;
