//! The `annals` program.

fn main() -> std::process::ExitCode {
    annals::run()
}
