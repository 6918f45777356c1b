//! Package caches at home: writable with the network, and nothing else of the tools they belong to.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::{NetworkGrant, WriteGrant};
use attache_sandbox::Level;
use serde_json::json;
use sha2::Digest;

use crate::trial::{Alone, Trial, alone};

const LEVELS: [Level; 2] = [Level::Full, Level::Reduced];

/// Empty counts as not set: the caches are those of the trial's home.
const UNSET: [(&str, &str); 5] = [
    ("CARGO_HOME", ""),
    ("XDG_CACHE_HOME", ""),
    ("npm_config_cache", ""),
    ("NPM_CONFIG_CACHE", ""),
    ("PIP_CACHE_DIR", ""),
];

/// Output and exit code.
async fn run(trial: &Trial, command: &str, network: NetworkGrant, writes: WriteGrant) -> (String, i64) {
    let mut runtime = trial.runtime();
    (runtime.network, runtime.writes) = (network, writes);
    let home = trial.base.join("home");
    let command = format!("export HOME={}; {command}", home.display());
    match trial.tool("bash").run(json!({"command": command}), runtime).await {
        ToolOutcome::Output { data, presentation } => {
            let code = presentation.metadata.unwrap().exit_code.unwrap();
            (data.as_str().unwrap().to_owned(), code.into())
        }
        ToolOutcome::Error { text, .. } => panic!("{command}: {text}"),
        picture @ ToolOutcome::Picture { .. } => panic!("{command}: {picture:?}"),
    }
}

#[tokio::test]
async fn caches_are_writable_with_the_network_and_their_tools_never() {
    if alone("caches::caches_are_writable_with_the_network_and_their_tools_never", &UNSET) == Alone::Done {
        return;
    }
    for level in LEVELS {
        let trial = Trial::held(level);
        let home = trial.base.join("home");
        for directory in [".cargo/registry", ".cargo/bin", ".npm/_npx", ".cache/pip"] {
            std::fs::create_dir_all(home.join(directory)).unwrap();
        }
        let inside = [".cargo/registry/a", ".cargo/git/a", ".npm/_cacache/a", ".cache/pip/a"];
        let outside =
            [".cargo/bin/a", ".cargo/config.toml", ".cargo/a", ".npm/_npx/a", ".cache/a", ".m2/a", "a"];
        let command: String =
            inside.iter().chain(&outside).map(|path| format!("echo x > ~/{path}; ")).collect();
        for (network, writes) in [
            (NetworkGrant::Withheld, WriteGrant::Granted),
            (NetworkGrant::Withheld, WriteGrant::Withheld),
            (NetworkGrant::Granted, WriteGrant::Withheld),
            (NetworkGrant::GrantedByName, WriteGrant::Withheld),
        ] {
            run(&trial, &command, network, writes).await;
            for path in inside.iter().chain(&outside) {
                assert!(!home.join(path).exists(), "{level:?} {network:?} {writes:?}: {path}");
            }
            assert!(!home.join(".cargo/git").exists(), "made for nothing");
        }
        for network in [NetworkGrant::Granted, NetworkGrant::GrantedByName] {
            let (output, _) = run(&trial, &command, network, WriteGrant::Granted).await;
            for path in inside {
                std::fs::remove_file(home.join(path))
                    .unwrap_or_else(|_| panic!("{level:?}: {path}: {output}"));
            }
            for path in outside {
                assert!(!home.join(path).exists(), "{level:?} {network:?}: {path}");
            }
        }
    }
}

#[tokio::test]
async fn a_cache_that_is_a_link_or_holds_more_is_not_writable() {
    const TEST: &str = "caches::a_cache_that_is_a_link_or_holds_more_is_not_writable";
    let place = tempfile::tempdir().unwrap();
    let base = place.path().canonicalize().unwrap();
    // The whole home, which holds keys and what shells run.
    let home = base.join("home").to_string_lossy().into_owned();
    let kept = ("PLACE_OF_TRIAL", base.to_str().unwrap());
    let environment: Vec<_> = UNSET[..4].iter().copied().chain([("PIP_CACHE_DIR", &*home), kept]).collect();
    if alone(TEST, &environment) == Alone::Done {
        return;
    }
    let base = std::path::PathBuf::from(std::env::var_os("PLACE_OF_TRIAL").unwrap());
    for level in LEVELS {
        std::fs::create_dir_all(base.join("root")).unwrap();
        let trial = Trial::beneath(base.clone()).hold(level);
        let home = base.join("home");
        std::fs::create_dir_all(home.join(".cargo")).unwrap();
        std::fs::create_dir_all(home.join("elsewhere/registry")).unwrap();
        if level == LEVELS[0] {
            std::os::unix::fs::symlink(home.join("elsewhere"), home.join(".cargo/registry")).unwrap();
            std::os::unix::fs::symlink(home.join("elsewhere"), home.join(".m2")).unwrap();
        }
        let command = "echo x > ~/.cargo/registry/a; echo x > ~/.m2/repository/a; echo x > ~/.bashrc; echo x > ~/a; \
                       echo x > ~/.cargo/git/a";
        run(&trial, command, NetworkGrant::Granted, WriteGrant::Granted).await;
        for path in ["elsewhere/a", "elsewhere/repository", ".bashrc", "a"] {
            assert!(!home.join(path).exists(), "{level:?}: {path}");
        }
        assert!(home.join(".cargo/git/a").exists(), "{level:?}: the others are not affected");
    }
}

#[tokio::test]
async fn npm_adds_a_dependency_through_the_users_cache() {
    if alone("caches::npm_adds_a_dependency_through_the_users_cache", &UNSET) == Alone::Done {
        return;
    }
    let trial = Trial::held(Level::Full);
    let home = trial.base.join("home");
    std::fs::create_dir_all(home.join(".npm")).unwrap();
    let archive = packed(&trial.base);
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    std::thread::spawn(move || serve(&server, |_| Some(archive.clone())));
    trial.put("package.json", r#"{"name": "project", "version": "1.0.0"}"#);
    let command = format!(
        "npm install --no-audit --no-fund --no-update-notifier http://{address}/tiny-1.0.0.tgz 2>&1 && \
         node -e 'console.log(require(\"tiny\"))'"
    );
    let (output, code) = run(&trial, &command, NetworkGrant::Granted, WriteGrant::Granted).await;
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("it works"), "{output}");
    assert!(trial.text("package.json").contains("tiny"), "the dependency was added");
    assert!(home.join(".npm/_cacache/index-v5").is_dir(), "what was fetched is in the user's cache");
    assert!(!trial.workspace.scratch.join("cache/npm").exists(), "and not in the scratch");
}

/// A registry of one crate, as cargo asks for it: the index, then what it leads to.
#[tokio::test]
async fn cargo_adds_a_dependency_through_the_users_cache() {
    if alone("caches::cargo_adds_a_dependency_through_the_users_cache", &UNSET) == Alone::Done {
        return;
    }
    let trial = Trial::held(Level::Full);
    let home = trial.base.join("home");
    std::fs::create_dir_all(home.join(".cargo")).unwrap();
    let archive = packed_crate(&trial.base);
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let digest =
        sha2::Sha256::digest(&archive).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let entry = json!({
        "name": "tiny", "vers": "1.0.0", "deps": [], "cksum": digest, "features": {}, "yanked": false
    });
    std::thread::spawn(move || {
        serve(&server, |path| match path {
            "/config.json" => Some(json!({ "dl": format!("http://{address}/dl") }).to_string().into_bytes()),
            "/ti/ny/tiny" => Some(format!("{entry}\n").into_bytes()),
            "/dl/tiny/1.0.0/download" => Some(archive.clone()),
            _ => None,
        });
    });
    trial.put(
        "Cargo.toml",
        "[package]\nname = \"project\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n\
         [dependencies]\ntiny = { version = \"1\", registry = \"here\" }\n",
    );
    trial.put("src/main.rs", "fn main() { println!(\"{}\", tiny::WORDS); }\n");
    // The toolchain is where its user has it, not in the home of this trial.
    let rustup = std::env::var_os("RUSTUP_HOME").map_or_else(
        || std::path::PathBuf::from(std::env::var_os("HOME").unwrap()).join(".rustup"),
        Into::into,
    );
    let command = format!(
        "export RUSTUP_HOME={}; unset CARGO_HOME; \
         cargo --config 'registries.here.index=\"sparse+http://{address}/\"' run -q 2>&1",
        rustup.display()
    );
    let (output, code) = run(&trial, &command, NetworkGrant::Granted, WriteGrant::Granted).await;
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("it works"), "{output}");
    assert!(trial.text("Cargo.lock").contains("tiny"), "the dependency was added");
    let cached =
        std::process::Command::new("find").arg(home.join(".cargo/registry")).output().unwrap().stdout;
    let cached = String::from_utf8(cached).unwrap();
    assert!(cached.contains("tiny-1.0.0.crate"), "what was fetched is in the user's cache: {cached}");
}

fn packed_crate(base: &Path) -> Vec<u8> {
    let package = base.join("tiny-1.0.0");
    std::fs::create_dir_all(package.join("src")).unwrap();
    let manifest = "[package]\nname = \"tiny\"\nversion = \"1.0.0\"\nedition = \"2021\"\n";
    std::fs::write(package.join("Cargo.toml"), manifest).unwrap();
    std::fs::write(package.join("src/lib.rs"), "pub const WORDS: &str = \"it works\";\n").unwrap();
    let tar = std::process::Command::new("tar").current_dir(base).args(["-czf", "-", "tiny-1.0.0"]).output();
    tar.unwrap().stdout
}

/// A package as registries have it.
fn packed(base: &Path) -> Vec<u8> {
    let package = base.join("package");
    std::fs::create_dir(&package).unwrap();
    std::fs::write(package.join("package.json"), r#"{"name": "tiny", "version": "1.0.0"}"#).unwrap();
    std::fs::write(package.join("index.js"), "module.exports = 'it works';\n").unwrap();
    let tar = std::process::Command::new("tar").current_dir(base).args(["-czf", "-", "package"]).output();
    tar.unwrap().stdout
}

/// Answers requests with what there is at their path.
fn serve(server: &TcpListener, found: impl Fn(&str) -> Option<Vec<u8>>) {
    for connection in server.incoming() {
        let mut connection = connection.unwrap();
        let (mut asked, mut piece) = (Vec::new(), [0; 1024]);
        while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
            match connection.read(&mut piece) {
                Ok(0) | Err(_) => break,
                Ok(count) => asked.extend_from_slice(&piece[..count]),
            }
        }
        let asked = String::from_utf8_lossy(&asked);
        let (status, body) = match found(asked.split(' ').nth(1).unwrap_or_default()) {
            Some(body) => ("200 OK", body),
            None => ("404 Not Found", Vec::new()),
        };
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        let answered = connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(&body));
        if let Err(error) = answered {
            eprintln!("the client went away: {error}");
        }
    }
}
