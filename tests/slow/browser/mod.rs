//! The pages in a real Chromium: walked through, made hostile, very long, and accessible.

mod axe;
mod hostile;
mod long;
mod walk;
