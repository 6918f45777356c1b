//! A container with nothing in it but the libraries of C: the program is put there as docs/installing.md says,
//! finds a model server, and talks.

use std::path::Path;
use std::process::{Command, Output};

use crate::stage::{chat_server, says};

const PROGRAM: &str = env!("CARGO_BIN_EXE_attache");

/// The libraries that the program names, at their places below `root`.
fn copy_libraries(root: &Path) -> Vec<String> {
    let output = Command::new("ldd").arg(PROGRAM).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let paths = said.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    let mut names = Vec::new();
    for path in paths {
        let place = root.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::copy(path, &place).unwrap();
        names.push(place.file_name().unwrap().to_string_lossy().into_owned());
    }
    names
}

fn run(root: &Path, server: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("bwrap");
    command.arg("--bind").arg(root).arg("/").args(["--ro-bind", PROGRAM, "/usr/local/bin/attache"]);
    command.args(["--dev", "/dev", "--proc", "/proc", "--clearenv", "--setenv", "HOME", "/home/ada"]);
    command.args(["--setenv", "OLLAMA_BASE_URL", &format!("{server}/v1"), "--chdir", "/home/ada/project"]);
    // Like the machines of the other tests: no server but this one.
    for vendor in ["LLAMACPP", "VLLM", "LMSTUDIO"] {
        command.args(["--setenv", &format!("{vendor}_BASE_URL"), "http://127.0.0.1:9/v1"]);
    }
    command.arg("/usr/local/bin/attache").args(arguments).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn with_nothing_but_libc_it_finds_a_server_and_talks() {
    let server = chat_server().await;
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    for directory in ["usr/local/bin", "home/ada/project", "tmp", "dev", "proc"] {
        std::fs::create_dir_all(root.join(directory)).unwrap();
    }
    std::fs::write(root.join("usr/local/bin/attache"), "").unwrap();
    for library in copy_libraries(root) {
        let is_c =
            ["libc.so", "libm.so", "libgcc_s.so", "ld-linux"].iter().any(|name| library.starts_with(name));
        assert!(is_c, "docs/installing.md does not name {library}");
    }

    let text = |output: &Output| {
        let all = [&output.stdout[..], &output.stderr[..]].concat();
        String::from_utf8_lossy(&all).into_owned()
    };
    let doctor = run(root, &server.url(), &["doctor"]);
    let said = text(&doctor);
    assert_eq!(doctor.status.code(), Some(0), "{said}");
    says(
        &said,
        &[
            "warn  shell          neither bash nor sh on this machine",
            "warn  sandbox        none: each command asks",
            "ok    model          ollama/qwen3-coder",
            "Ready.",
        ],
    );
    let talk = run(root, &server.url(), &["chat", "-p", "Are you there?"]);
    assert_eq!((talk.status.code(), text(&talk).as_str()), (Some(0), "hello\n"));
    let demo = run(root, &server.url(), &["demo"]);
    assert_eq!(demo.status.code(), Some(1), "{}", text(&demo));
    says(
        &text(&demo),
        &["attache: the demo runs a command, and there is neither bash nor sh on this machine"],
    );
}
