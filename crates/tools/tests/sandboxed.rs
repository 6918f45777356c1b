//! The sandbox's helper and nothing else, for the tests.

fn main() -> std::process::ExitCode {
    attache_sandbox::run_if_asked().unwrap_or(std::process::ExitCode::FAILURE)
}
