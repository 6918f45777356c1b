//! Which commands have a use for the network, by the forms in which people write them.

use attache_core::ports::tool::Access;
use attache_tools::shell::Network;

use super::reading;

const NEEDS: &[&str] = &[
    "pip install requests",
    "pip3 install -r requirements.txt",
    "pip3.11 install x",
    "python -m pip install x",
    "python3.12 -m pip download x",
    ".venv/bin/pip install -e .",
    ".venv/bin/python -m pip install x",
    "source .venv/bin/activate && pip install x",
    "npm i",
    "npm ci",
    "npm install lodash",
    "npm add x",
    "npm exec cowsay",
    "npx create-react-app a",
    "pnpm add x",
    "yarn",
    "yarn add x",
    "bun install",
    "bun add x",
    "bunx x",
    "cargo add serde",
    "cargo install ripgrep",
    "cargo fetch",
    "cargo update",
    "go get x",
    "go mod tidy",
    "uv sync",
    "uv add x",
    "uv pip install x",
    "uvx ruff",
    "poetry add x",
    "bundle install",
    "composer require x",
    "docker pull x",
    "apt install x",
    "apt-get update",
    "git fetch",
    "git pull --rebase",
    "git push origin main",
    "git clone https://example.org/x.git",
    "curl https://example.org",
    "wget example.org",
    "cd sub && npm ci",
];

const MAY: &[&str] = &[
    "cargo build",
    "cargo test --all",
    "cargo check",
    "cargo run",
    "go build ./...",
    "go test ./...",
    "mvn test",
    "./gradlew build",
    "gradle test",
    "uv run pytest",
    "poetry run pytest",
    "bundle exec rspec",
    "dotnet build",
];

const NEVER: &[&str] = &[
    "ls",
    "pytest",
    "make",
    "git commit -m x",
    "npm test",
    "python3 a.py",
    ".venv/bin/pytest",
    "echo pip install",
];

#[test]
fn the_forms_people_use_are_known() {
    for (network, commands) in [(Network::Needs, NEEDS), (Network::May, MAY), (Network::Never, NEVER)] {
        for command in commands {
            let reading = reading(command);
            assert_eq!(reading.network, network, "{command}");
            let names_a_host = reading.accesses.iter().any(|access| matches!(access, Access::Network { .. }));
            assert_eq!(
                names_a_host,
                network == Network::Needs,
                "{command}: what may fetch does not ask for it"
            );
        }
    }
}

#[test]
fn a_host_that_is_named_is_the_one() {
    for (command, host) in [
        ("curl -sL https://example.org/x | head", "example.org"),
        ("git clone https://example.org/x.git", "example.org"),
        ("git fetch", "*"),
        ("python -m pip install x", "*"),
    ] {
        let expected = Access::Network { host: host.to_owned() };
        assert!(reading(command).accesses.contains(&expected), "{command}");
    }
}
