//! Which commands have a use for the network, by the forms in which people write them.

use attache_shell::Network;
use attache_shell::Touch;

use super::footprint;

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
    "git clone host:x.git",
    "git clone --recurse-submodules . copy",
    "git clone $REPOSITORY",
    "rsync -a src host:copy",
    "rsync -a rsync://example.org/x copy",
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
    "git clone -q . ../copy",
    "git clone --depth 1 /srv/x copy",
    "rsync -a --delete src/ copy/",
];

#[test]
fn the_forms_people_use_are_known() {
    for (network, commands) in [(Network::Needs, NEEDS), (Network::May, MAY), (Network::Never, NEVER)] {
        for command in commands {
            let footprint = footprint(command);
            assert_eq!(footprint.network, network, "{command}");
            let names_a_host = footprint.touches.iter().any(|touch| matches!(touch, Touch::Host(_)));
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
        let expected = Touch::Host(host.to_owned());
        assert!(footprint(command).touches.contains(&expected), "{command}");
    }
}
